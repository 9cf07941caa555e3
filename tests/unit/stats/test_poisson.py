"""Exact limits of a Poisson rate, against Garwood's table (1936) for 95 %."""

from __future__ import annotations

import math

import pytest

from mragaudit.errors import DataError
from mragaudit.stats.poisson import RateInterval, poisson_rate


@pytest.mark.parametrize(
    ("events", "low", "high"), [(0, 0.0, 3.689), (1, 0.025, 5.572), (3, 0.619, 8.767), (10, 4.795, 18.390)]
)
def test_two_sided_limits_are_garwoods(events: int, low: float, high: float) -> None:
    found = poisson_rate(events, 1.0, side="two")
    assert found.low == pytest.approx(low, abs=5e-4)
    assert found.high == pytest.approx(high, abs=5e-4)
    assert found.method == "poisson_exact_two_sided"


def test_no_event_has_the_upper_limit_of_minus_the_logarithm_of_five_percent() -> None:
    found = poisson_rate(0, 6.0, side="upper")
    assert found.high == pytest.approx(-math.log(0.05) / 6)
    assert (found.rate, found.low, found.method) == (0.0, 0.0, "poisson_exact_one_sided_upper")


def test_six_user_months_without_alarm_bound_the_rate_below_one_and_two_do_not() -> None:
    assert poisson_rate(0, 6.0, side="upper").high < 1 < poisson_rate(0, 2.0, side="upper").high


def test_a_lower_interval_is_open_above() -> None:
    found = poisson_rate(3, 1.0, side="lower")
    assert found.high is None
    assert found.low == pytest.approx(0.8177, abs=5e-5)


def test_limits_scale_with_the_exposure() -> None:
    one, half = poisson_rate(4, 1.0, side="two"), poisson_rate(4, 2.0, side="two")
    assert (half.rate, half.low, half.high) == pytest.approx((one.rate / 2, one.low / 2, one.high / 2))


def test_no_exposure_has_no_rate() -> None:
    assert poisson_rate(0, 0.0, side="two") == RateInterval(rate=None, low=None, high=None, method="")


@pytest.mark.parametrize(("events", "exposure"), [(-1, 1.0), (1, -1.0), (1, math.nan), (1, math.inf)])
def test_impossible_counts_are_refused(events: int, exposure: float) -> None:
    with pytest.raises(DataError, match="at least 0"):
        poisson_rate(events, exposure, side="two")
