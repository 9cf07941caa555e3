"""Paired tests and differences on the same documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mragaudit.errors import DataError
from mragaudit.stats.intervals import Interval
from mragaudit.stats.paired import (
    PairedCounts,
    count_pairs,
    least_attainable_p,
    mcnemar_exact,
    mcnemar_p_values,
    paired_difference,
    paired_differences,
)


def difference(only_a, only_b, n):
    pair = PairedCounts(n_documents=n, only_a=only_a, only_b=only_b)
    return paired_difference(pair, generator=np.random.default_rng(5))


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (0, 2, 0.5), (1, 1, 1.0), (8, 0, 0.0078125), (1, 8, 0.0390625), (3, 3, 1.0)],
)
def test_exact_mcnemar_gives_the_hand_values(only_a, only_b, p):
    assert mcnemar_exact(only_a, only_b).p_value == pytest.approx(p, rel=1e-12)


def test_exact_mcnemar_equals_the_binomial_test_on_many_tables():
    a, b = np.array([5, 40, 700, 0, 29_000]), np.array([9, 11, 640, 31, 30_000])
    expected = [stats.binomtest(int(x), int(x + y)).pvalue for x, y in zip(a, b, strict=True)]
    assert mcnemar_p_values(a, b) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("discordant", "p"), [(0, 1.0), (1, 1.0), (2, 0.5), (8, 0.0078125)])
def test_the_least_attainable_p_halves_with_each_discordant_document(discordant, p):
    assert least_attainable_p(discordant) == p


def test_mcnemar_reports_the_least_p_of_its_discordant_documents():
    result = mcnemar_exact(1, 8)
    assert (result.n_discordant, result.least_p) == (9, 0.00390625)


def test_swapping_the_outcomes_keeps_the_p_value():
    assert mcnemar_exact(2, 9) == mcnemar_exact(9, 2)


def test_pairs_are_counted_on_documents_evaluated_under_both_outcomes():
    pair = count_pairs([1, 1, 0, 0, 1], [1, 0, 1, 0, 0], evaluated=[1, 1, 1, 1, 0])
    assert pair == PairedCounts(n_documents=4, only_a=1, only_b=1)


def test_pairs_are_counted_alike_in_any_order_of_documents():
    a, b, order = np.array([1, 1, 0, 1]), np.array([0, 0, 1, 1]), [2, 0, 3, 1]
    assert count_pairs(a, b) == count_pairs(a[order], b[order]) == PairedCounts(n_documents=4, only_a=2, only_b=1)


def test_unequal_outcomes_are_refused():
    with pytest.raises(DataError, match="one shape"):
        count_pairs([1, 0], [1])


def test_the_difference_of_one_sided_discordance_has_binomial_limits():
    cell = difference(20, 0, 40)
    assert (cell.rate, cell.method) == (0.5, "bootstrap_paired")
    assert (cell.low, cell.high) == (0.35, 0.65)


def test_the_difference_equals_explicit_draws_of_documents_within_one_document():
    outcome = np.repeat([1, -1, 0], [20, 10, 70])
    drawn = outcome[np.random.default_rng(2).integers(0, 100, size=(20_000, 100))].mean(axis=1)
    cell = difference(20, 10, 100)
    assert cell.rate == 0.1
    assert (cell.low, cell.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01 + 1e-12)


def test_swapping_the_outcomes_mirrors_the_difference():
    there, back = difference(9, 4, 30), difference(4, 9, 30)
    assert (back.rate, back.low, back.high) == (-there.rate, -there.high, -there.low)


def test_no_documents_have_no_difference():
    assert difference(0, 0, 0) == Interval(rate=None, low=None, high=None, method="")


@pytest.mark.parametrize(
    ("counts", "rate", "low", "high", "method"),
    [
        ((0, 0, 40), 0.0, -0.0634, 0.0634, "wilson_one_sided_upper"),
        ((4, 0, 4), 1.0, 0.1930, 1.0, "wilson_one_sided_lower"),
        ((0, 4, 4), -1.0, -1.0, -0.1930, "wilson_one_sided_lower"),
        ((1, 0, 1), 1.0, -0.4603, 1.0, "wilson_one_sided_lower"),
    ],
)
def test_a_difference_without_width_takes_wilson_limits(counts, rate, low, high, method):
    cell = difference(*counts)
    assert (cell.rate, cell.low, cell.high) == pytest.approx((rate, low, high), abs=5e-5)
    assert cell.method == method


def test_two_documents_that_cancel_span_the_whole_range():
    cell = difference(1, 1, 2)
    assert (cell.rate, cell.low, cell.high) == (0.0, -1.0, 1.0)


def test_a_pair_has_the_same_limits_whichever_pairs_stand_beside_it():
    cells = paired_differences([9, 20, 9], [4, 0, 4], n_documents=[30, 40, 30], generator=np.random.default_rng(5))
    assert cells.records() == [difference(9, 4, 30), difference(20, 0, 40), difference(9, 4, 30)]


@pytest.mark.parametrize(("only_a", "only_b", "n"), [(3, 3, 5), (-1, 0, 5), (0, -1, 5)])
def test_impossible_pairs_are_refused(only_a, only_b, n):
    with pytest.raises(DataError, match="0 <= k <= n"):
        difference(only_a, only_b, n)


@pytest.mark.parametrize(("only_a", "only_b"), [(-1, 3), (3, -1), (0.5, 1)])
def test_mcnemar_refuses_impossible_counts(only_a, only_b):
    with pytest.raises(DataError, match="0 <= k <= n"):
        mcnemar_p_values(only_a, only_b)
