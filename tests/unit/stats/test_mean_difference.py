"""The mean of paired differences and its limits over resampled units."""

import numpy as np
import pytest

from mragaudit.errors import DataError
from mragaudit.stats.paired import mean_difference


def of(differences, seed=1, resamples=2_000):
    return mean_difference(differences, generator=np.random.default_rng(seed), resamples=resamples)


def test_the_mean_is_that_of_the_units() -> None:
    found = of([1.0, 2.0, 6.0])
    assert (found.rate, found.method) == (3.0, "bootstrap_paired")


def test_two_units_have_the_limits_of_their_four_resamples() -> None:
    found = of([0.0, 2.0])
    assert (found.low, found.high) == (0.0, 2.0)  # means 0, 1, 1, 2 with a quarter of the mass at either end


def test_limits_agree_with_the_normal_ones_for_many_units() -> None:
    values = np.random.default_rng(7).normal(0.5, 2.0, size=400)
    found = of(values, resamples=20_000)
    half = 1.959964 * values.std() / 20.0
    assert found.low == pytest.approx(values.mean() - half, abs=0.02)
    assert found.high == pytest.approx(values.mean() + half, abs=0.02)


def test_the_order_of_the_units_changes_nothing() -> None:
    assert of([3.0, -1.0, 0.5, 0.5]) == of([0.5, 3.0, 0.5, -1.0])


def test_equal_differences_have_no_limits_and_no_method() -> None:
    found = of([1.5, 1.5, 1.5])
    assert (found.rate, found.low, found.high, found.method) == (1.5, None, None, "")


def test_no_units_have_no_mean() -> None:
    found = of([])
    assert (found.rate, found.low, found.high, found.method) == (None, None, None, "")


def test_a_difference_that_is_no_number_is_refused() -> None:
    with pytest.raises(DataError, match="one vector of finite numbers"):
        of([1.0, float("nan")])
