"""Candidates of membership inference and the blind check of their split."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from mragaudit.corpus.grid_documents import SyntheticSource
from mragaudit.corpus.grid_templates import load_grid_templates
from mragaudit.corpus.realisation import realise
from mragaudit.errors import ConfigError, DataError
from mragaudit.grid.splits import check_split, draw_candidates

FOLDER = Path(__file__).parents[3] / "resources" / "hook_audit" / "corpora"
TEMPLATES = load_grid_templates(FOLDER, "email")


def documents(seed=1, *, n_indexed=20, n_held_out=20):
    return realise(SyntheticSource(templates=TEMPLATES), seed=seed, n_indexed=n_indexed, n_held_out=n_held_out)


def check(rows, seed=1):
    return check_split(rows, generator=np.random.default_rng(seed), permutations=99)


def changed(rows, change):
    return [msgspec.structs.replace(row, text=change(row.text)) if row.split == "indexed" else row for row in rows]


def test_candidates_are_so_many_of_either_side_drawn_by_the_generator_alone():
    rows = documents()
    one, same, other = (
        draw_candidates(given, n_members=5, n_non_members=9, rng=np.random.default_rng(seed))
        for given, seed in ((rows, 1), (rows[::-1], 1), (rows, 2))
    )
    assert [row.split for row in one].count("indexed") == 5
    assert len(one) == len({row.doc_id for row in one}) == 14
    assert one == same
    assert one != other


def test_more_candidates_than_documents_are_refused():
    with pytest.raises(ConfigError, match="21 held_out candidates are asked for and the realisation has 20"):
        draw_candidates(documents(), n_members=5, n_non_members=21, rng=np.random.default_rng(1))


def test_a_split_whose_members_share_a_phrase_is_rejected_and_says_so():
    found = check(changed(documents(), lambda text: text + " The archive has a copy."))
    assert (found.verdict, found.realisation, found.n_members, found.n_non_members) == ("rejected", "email.s1", 20, 20)
    assert found.auc > 0.9
    assert found.low > 0.6
    assert found.reason == (
        f"texts alone tell members from non-members: blind AUC {found.auc:.3f}, lower bound {found.low:.3f}"
    )


def test_a_split_whose_members_are_longer_is_rejected():
    found = check(changed(documents(), lambda text: text + " " + text.partition("\n\n")[2]))
    assert found.verdict == "rejected"


def test_a_split_whose_members_have_other_punctuation_is_rejected():
    assert check(changed(documents(), lambda text: text.replace(". ", "!! "))).verdict == "rejected"


def test_of_ten_splits_drawn_at_random_at_most_one_is_rejected():
    verdicts = [check(documents(seed), seed).verdict for seed in range(10)]
    assert verdicts.count("accepted") >= 9


def test_the_verdict_does_not_depend_on_the_order_of_candidates():
    rows = documents(3)
    assert check(rows) == check(rows[::-1])


def test_too_few_documents_are_not_checked_which_is_no_acceptance():
    found = check(documents(n_indexed=3, n_held_out=20))
    assert (found.verdict, found.auc, found.low) == ("not_checked", None, None)
    assert found.reason == "a side has fewer than 4 documents"


def test_documents_of_two_realisations_are_no_split():
    with pytest.raises(DataError, match=r"a split belongs to one realisation; got \['email.s1', 'email.s2'\]"):
        check([*documents(1), *documents(2)])
