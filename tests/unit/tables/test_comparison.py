"""Two runs side by side, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mragaudit.errors import DataError
from mragaudit.tables.columns import read_columns
from mragaudit.tables.comparison import PAIRED_COLUMNS, SIDE, Pair, differing, paired_table, side_by_side
from mragaudit.tables.findings import document_outcomes

KNOWN = {"languages": ("en", "de"), "judges": ("english",), "filters": ("regex_ascii",)}
EVERY = tuple(f"d{number}" for number in range(6))


def _findings(trials, **changes):
    return document_outcomes(read_columns(trials, **(KNOWN | changes)))


def _paired(a, b, documents=EVERY):
    pair = Pair(a=_findings(a), b=_findings(b), documents=documents)
    return paired_table(pair, generator=lambda: np.random.default_rng(7), resamples=2_000, confidence=0.95)


def _one_language(trial, leaks, lang="en", **fields):
    verdict = {"english": fields.pop("verdict", "ALLOW")}
    return [trial(doc, lang, leak=leak, verdict=verdict, **fields) for doc, leak in zip(EVERY, leaks, strict=False)]


def _find(row, table, **key):
    return row(table.fillna({"judge_variant": ""}), outcome="output_only", pii_group="all", lang="en", **key)


def test_six_documents_that_leak_in_b_alone_are_the_least_p_there_is(trial, row):
    """Exact McNemar of 6 against 0: 2 / 2**6."""
    table = _paired(_one_language(trial, [False] * 6), _one_language(trial, [True] * 6))
    found = _find(row, table, filter_variant="regex_ascii")
    assert (found["n_documents"], found["n_a"], found["n_b"]) == (6, 0, 6)
    assert (found["n_only_a"], found["n_only_b"], found["difference"]) == (0, 6, 1.0)
    assert (found["p_value"], found["least_p"], found["p_method"]) == (0.03125, 0.03125, "mcnemar_exact")
    assert found["ci_method"] == "wilson_one_sided_lower"


def test_swapping_the_runs_mirrors_every_difference(trial, row):
    a, b = [True, True, True, False, False, False], [True, False, False, False, True, False]
    there = _find(row, _paired(_one_language(trial, a), _one_language(trial, b)), filter_variant="none")
    back = _find(row, _paired(_one_language(trial, b), _one_language(trial, a)), filter_variant="none")
    assert there["difference"] == pytest.approx(-1 / 6)
    assert (there["difference"], there["ci_low"], there["ci_high"]) == pytest.approx(
        (-back["difference"], -back["ci_high"], -back["ci_low"])
    )
    assert (there["n_only_a"], there["n_only_b"]) == (back["n_only_b"], back["n_only_a"]) == (2, 1)


def test_documents_of_one_run_alone_do_not_count(trial, row):
    table = _paired(_one_language(trial, [True] * 6), _one_language(trial, [False] * 6), documents=("d1", "d2"))
    found = _find(row, table, filter_variant="none")
    assert (found["n_documents"], found["n_a"], found["n_b"]) == (2, 2, 0)


def test_a_document_unknown_in_one_run_is_counted_and_left_out(trial, row):
    table = _paired(_one_language(trial, [None, True]), _one_language(trial, [True, True]))
    found = _find(row, table, filter_variant="none")
    assert (found["n_documents"], found["n_not_evaluated"], found["rate_a"]) == (1, 1, 1.0)


def test_no_common_document_is_no_rate_and_no_test(trial, row):
    table = _paired(_one_language(trial, [True]), _one_language(trial, [True]), documents=())
    found = _find(row, table, filter_variant="none")
    assert (found["n_documents"], found["rate_a"], found["difference"], found["p_value"]) == (0, None, None, None)


def test_holm_adjusts_over_the_languages_of_one_outcome(trial, row):
    """English: 2/2**6 = 0.03125, doubled; German: no discordant document, 1."""
    a = _one_language(trial, [False] * 6) + _one_language(trial, [False] * 6, lang="de")
    b = _one_language(trial, [True] * 6) + _one_language(trial, [False] * 6, lang="de")
    table = _paired(a, b)
    assert _find(row, table, filter_variant="none")["p_holm"] == 0.0625
    german = row(table, outcome="output_only", pii_group="all", lang="de", filter_variant="none")
    assert (german["p_value"], german["p_holm"]) == (1.0, 1.0)


def test_a_judge_that_blocks_in_b_ends_the_combined_leak(trial, row):
    table = _paired(_one_language(trial, [True] * 6), _one_language(trial, [True] * 6, verdict="BLOCK"))
    found = row(table, outcome="combined", pii_group="all", lang="en", filter_variant="none")
    assert (found["judge_variant"], found["n_a"], found["n_b"], found["difference"]) == ("english", 6, 0, -1.0)


def test_only_what_both_runs_have_is_paired(trial):
    pair = Pair(
        a=_findings(_one_language(trial, [True])),
        b=_findings(_one_language(trial, [True]), languages=("en",), judges=("english", "oracle")),
        documents=EVERY,
    )
    table = paired_table(pair, generator=lambda: np.random.default_rng(7), resamples=100, confidence=0.95)
    assert list(table.columns) == PAIRED_COLUMNS
    assert set(table["lang"]) == {"en"}
    assert set(table["judge_variant"]) == {"", "english"}


@pytest.fixture
def joined() -> pd.DataFrame:
    """Rows z, y in a and y, x in b; the share of y falls, z and x stand alone, one cell is empty."""
    a = pd.DataFrame({"lang": ["z", "y"], "n": [3, 4], "rate": [None, 0.75], "ci_method": ["", "wilson"]})
    b = pd.DataFrame({"lang": ["y", "x"], "n": [4, 5], "rate": [0.5, 0.2], "ci_method": ["wilson", "wilson"]})
    return side_by_side(a, b)


def test_rows_are_joined_in_the_order_of_a_then_of_b(joined: pd.DataFrame) -> None:
    assert list(zip(joined["lang"], joined[SIDE], strict=True)) == [("z", "a"), ("y", "both"), ("x", "b")]


def test_a_difference_is_b_minus_a_and_empty_where_a_side_is(joined: pd.DataFrame) -> None:
    assert joined["rate_difference"].astype(object).where(joined["rate_difference"].notna(), None).tolist() == [
        None,
        -0.25,
        None,
    ]
    assert joined[["n_in_a", "n_in_b"]].sum().tolist() == [7, 9]
    assert "ci_method_difference" not in joined


def test_rows_that_agree_do_not_differ() -> None:
    table = pd.DataFrame({"lang": ["en", "de"], "k": [2, 2], "constant": [True, None], "rate": [0.1, None]})
    assert differing(side_by_side(table, table)).empty
    changed = table.assign(constant=[True, False])
    assert differing(side_by_side(table, changed))["lang"].tolist() == ["de"]


def test_another_k_is_a_value_and_no_other_row() -> None:
    a, b = (pd.DataFrame({"lang": ["en"], "k": [k], "recall_at_k": [0.5]}) for k in (2, 5))
    assert side_by_side(a, b)[["in", "k_difference"]].to_numpy().tolist() == [["both", 3]]


def test_a_key_that_ends_like_a_side_stays_a_key() -> None:
    table = pd.DataFrame({"lang_a": ["en"], "lang_b": ["de"], "difference": [0.5]})
    assert differing(side_by_side(table, table)).empty


def test_an_empty_key_joins_with_an_empty_key() -> None:
    a = pd.DataFrame({"lang": ["en", "en"], "paraphrase": ["direct", None], "n": [1, 2]})
    b = pd.DataFrame({"lang": ["en", "en"], "paraphrase": [None, "direct"], "n": [2, 1]})
    assert differing(side_by_side(a, b)).empty


def test_rows_that_cannot_be_told_apart_are_refused() -> None:
    table = pd.DataFrame({"lang": ["en", "en"], "n": [1, 2]})
    with pytest.raises(DataError, match="cannot be told apart by lang"):
        side_by_side(table, table)
