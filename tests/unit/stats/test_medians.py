"""Medians with limits between order statistics, also of values that were never reached."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as distributions

from mragaudit.errors import DataError
from mragaudit.stats.medians import MedianInterval, median_interval


def test_six_values_have_their_extremes_as_limits() -> None:
    """P(Binomial(6, 1/2) = 0) = 1/64 lies below 0.025; of five values it is 1/32 and does not."""
    assert median_interval([6, 1, 5, 2, 4, 3]) == MedianInterval(
        median=3.5, low=1.0, high=6.0, method="median_order_statistics"
    )
    assert median_interval([1, 2, 3, 4, 5]) == MedianInterval(median=3.0, low=None, high=None, method="")


def test_nine_values_take_the_second_from_either_end() -> None:
    found = median_interval(range(1, 10))
    assert (found.median, found.low, found.high) == (5.0, 2.0, 8.0)


def test_what_was_never_reached_is_infinite_and_can_be_the_median() -> None:
    found = median_interval([1.0, 2.0, 3.0, math.inf, math.inf, math.inf, math.inf])
    assert (found.median, found.low, found.high) == (math.inf, 1.0, math.inf)


def test_no_value_has_no_median_and_one_has_no_limits() -> None:
    assert median_interval([]) == MedianInterval(median=None, low=None, high=None, method="")
    assert median_interval([4.0]) == MedianInterval(median=4.0, low=None, high=None, method="")


def test_a_missing_value_is_refused() -> None:
    with pytest.raises(DataError, match="not evaluated"):
        median_interval([1.0, math.nan])


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=60))
def test_limits_are_those_of_the_exact_test_of_a_median(values: list[float]) -> None:
    found = median_interval(values)
    theirs = distributions.quantile_test(np.array(values), p=0.5).confidence_interval(0.95)
    assert (found.low, found.high) == (theirs.low, theirs.high)
