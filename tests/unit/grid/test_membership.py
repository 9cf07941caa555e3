"""Membership inference in one cell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mragaudit.errors import DataError
from mragaudit.grid.membership import membership_row
from mragaudit.grid.resampling import Resampling
from mragaudit.records.grid import CandidateScore, Cell, SplitCheck

RESAMPLING = Resampling(seed=1, resamples=500, confidence=0.95)
CELL = Cell(
    cell_id="mi-1",
    purpose="grid",
    corpus="email",
    realisation="email.s1",
    seed=1,
    mode="targeted_queries",
    arm="pad",
    attack="mi",
    budget=60,
)


def check(verdict="accepted", realisation="email.s1"):
    return SplitCheck(
        realisation=realisation,
        n_members=4,
        n_non_members=20,
        n_folds=2,
        auc=0.5,
        low=0.3,
        interval="permutation_one_sided_lower",
        verdict=verdict,
        reason=None,
    )


def score(number, value, *, member, control=0.0, retrieved=True):
    return CandidateScore(
        cell_id="mi-1",
        doc_id=f"g{number:03d}",
        member=member,
        score=value,
        control_score=control,
        retrieved=retrieved if member else None,
    )


def scores():
    members = [score(i, value, member=True, control=value) for i, value in enumerate((3.0, 2.0, 1.0, 0.0))]
    return [*members, *(score(100 + i, 1.0, member=False) for i in range(20))]


def row_of(rows, verdict="accepted"):
    return membership_row(CELL, rows, check=check(verdict), resampling=RESAMPLING)


def test_a_row_has_the_signed_auc_its_control_and_what_lies_beyond():
    row = row_of(scores())
    assert row.auc == (20 + 20 + 10 + 0) / 80
    assert row.control_auc == (20 + 20 + 20 + 10) / 80
    assert row.beyond_control == pytest.approx(row.auc - row.control_auc)
    assert (row.interval, row.beyond_control_interval) == ("bootstrap_two_sample", "bootstrap_two_sample")
    assert (row.folded, row.split) == (row.auc, "accepted")
    assert row.folded_p is not None


def test_a_true_positive_rate_needs_its_number_of_non_members():
    row = row_of(scores())
    assert (row.tpr_at_5, row.tpr_at_1, row.tpr_interval) == (0.5, None, "clopper_pearson")


def test_recall_counts_the_members_whose_document_was_retrieved():
    rows = [
        score(1, 1.0, member=True),
        score(2, 1.0, member=True, retrieved=False),
        score(3, None, member=True, retrieved=None),
        score(4, 1.0, member=False),
    ]
    row = row_of(rows)
    assert (row.recall.k, row.recall.n, row.recall.not_evaluated) == (1, 2, 1)
    assert (row.n_members, row.members_not_evaluated) == (2, 1)


def test_a_rejected_split_has_counts_and_recall_but_no_auc():
    row = row_of(scores(), "rejected")
    assert (row.split, row.auc, row.folded, row.control_auc, row.tpr_at_5) == ("rejected", None, None, None, None)
    assert (row.n_members, row.recall.k) == (4, 4)


def test_the_order_of_scores_does_not_matter():
    assert row_of(scores()) == row_of(scores()[::-1])


def test_scores_of_another_realisation_or_none_are_refused():
    with pytest.raises(DataError, match=r"is of email\.s1, its split check of email\.s2"):
        membership_row(CELL, scores(), check=check(realisation="email.s2"), resampling=RESAMPLING)
    with pytest.raises(DataError, match="has no score of a candidate"):
        membership_row(CELL, [], check=check(), resampling=RESAMPLING)


def test_limits_are_of_the_level_asked_for():
    usual, narrower = (
        membership_row(CELL, scores(), check=check(), resampling=replace(RESAMPLING, confidence=level))
        for level in (0.95, 0.8)
    )
    assert usual.low <= narrower.low < narrower.high <= usual.high
    assert (narrower.recall.low, narrower.tpr_at_5_low) == pytest.approx((0.1 ** (1 / 4), 0.1426), abs=5e-5)
