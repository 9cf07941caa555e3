"""Exact permutation tests over seeds, and the hand values of the exact tests that go with them."""

from __future__ import annotations

import pytest

from mragaudit.errors import DataError
from mragaudit.stats.exact import fisher_exact
from mragaudit.stats.intervals import clopper_pearson
from mragaudit.stats.multiplicity import holm_adjust
from mragaudit.stats.permutation import compare_arms, least_p_of_arms, sign_flip


@pytest.mark.parametrize(("size", "least"), [(5, 1 / 252), (3, 1 / 20)])
def test_two_arms_that_do_not_overlap_reach_the_least_p(size, least):
    found = compare_arms([0.3 + seed / 100 for seed in range(size)], [seed / 100 for seed in range(size)])
    assert found.p_value == pytest.approx(least)
    assert found.least_p == pytest.approx(least)
    assert found.difference == pytest.approx(0.3)


def test_a_two_sided_test_doubles_the_rarer_side_and_its_least_p():
    found = compare_arms([0.0] * 5, [0.4] * 5, alternative="two-sided")
    assert (found.p_value, found.least_p) == (pytest.approx(2 / 252), pytest.approx(2 / 252))
    assert compare_arms([0.2, 0.2], [0.2, 0.2], alternative="two-sided").p_value == 1.0


def test_ties_within_an_arm_do_not_raise_the_least_p():
    assert compare_arms([0.4] * 5, [0.0] * 5).p_value == pytest.approx(1 / 252)


def test_ties_between_arms_count_as_reached():
    # Sums of two of {1, 1, 1, 0}: three arrangements have 2 and three have 1; the observed one has 2.
    assert compare_arms([1.0, 1.0], [1.0, 0.0]).p_value == pytest.approx(3 / 6)


def test_shares_that_differ_by_rounding_alone_are_tied():
    assert compare_arms([0.1 + 0.2, 0.3], [0.3, 0.3]).p_value == 1.0


def test_arms_without_any_recovery_have_the_p_of_one():
    assert compare_arms([0.0] * 5, [0.0] * 5).p_value == 1.0


def test_the_wrong_direction_has_a_large_p():
    assert compare_arms([0.0, 0.1, 0.2], [0.5, 0.6, 0.7]).p_value == 1.0


def test_unequal_sizes_are_compared_by_means():
    found = compare_arms([0.9, 0.8], [0.1, 0.0, 0.2, 0.3])
    assert (found.p_value, found.least_p) == (pytest.approx(1 / 15), pytest.approx(1 / 15))
    # 3 of the 10 ways to choose two of {4, 3, 0, 0, 5} have a mean of at least 3.5 above the rest's 5/3.
    assert compare_arms([4.0, 3.0], [0.0, 0.0, 5.0]).p_value == pytest.approx(3 / 10)


def test_the_order_of_seeds_does_not_matter():
    assert compare_arms([0.4, 0.1, 0.3], [0.2, 0.0]) == compare_arms([0.1, 0.3, 0.4], [0.0, 0.2])


def test_five_paired_seeds_reach_one_in_32_and_holm_puts_it_above_five_percent():
    found = sign_flip([0.2, 0.3, 0.1, 0.4, 0.2])
    assert (found.p_value, found.least_p) == (1 / 32, 1 / 32)
    assert holm_adjust([found.p_value, found.p_value])[0] == 0.0625


def test_a_sign_flip_counts_ties():
    # Of the eight sign patterns of (2, 1, 0), 2 + 1 is reached by two: the sign of 0 is free.
    assert sign_flip([2.0, 1.0, 0.0]).p_value == pytest.approx(2 / 8)
    # 2 - 1 = 1 is reached by (2, 1) and (2, -1).
    assert sign_flip([2.0, -1.0]).p_value == pytest.approx(2 / 4)


@pytest.mark.parametrize("bad", [[], [0.5], [0.1, float("nan")], [0.1, float("inf")]])
def test_an_arm_of_fewer_than_two_numbers_is_refused(bad):
    with pytest.raises(DataError, match="an arm needs at least 2 seeds"):
        compare_arms([0.1, 0.2], bad)
    with pytest.raises(DataError, match="an arm needs at least 2 seeds"):
        sign_flip(bad)


def test_more_arrangements_than_can_be_gone_through_are_refused():
    with pytest.raises(DataError, match="2704156 arrangements of seeds are more than 1000000"):
        compare_arms([0.0] * 12, [0.0] * 12)


def test_the_least_p_of_unequal_arms():
    assert least_p_of_arms(5, 3) == pytest.approx(1 / 56)


def test_fisher_gives_the_recomputed_p_of_the_published_canaries():
    assert fisher_exact([[53, 97], [0, 150]], alternative="greater") == pytest.approx(4.06e-19, rel=2e-3)
    assert fisher_exact([[0, 150], [53, 97]], alternative="greater") == 1.0


@pytest.mark.parametrize(
    ("k", "n", "side", "low", "high"),
    [
        (53, 150, "two", 0.277, 0.435),
        (0, 150, "two", 0.0, 0.0243),
        (0, 150, "upper", 0.0, 0.0198),
        (10, 10, "lower", 0.741, 1.0),
        (20, 20, "lower", 0.861, 1.0),
        (0, 59, "upper", 0.0, 0.0495),
        (0, 58, "upper", 0.0, 0.0503),
    ],
)
def test_clopper_pearson_gives_the_reference_values_and_names_its_side(k, n, side, low, high):
    found = clopper_pearson(k, n, side=side)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-4)
    names = {"two": "clopper_pearson"}
    assert found.method == names.get(side, f"clopper_pearson_one_sided_{side}")
