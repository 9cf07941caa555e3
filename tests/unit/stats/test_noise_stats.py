"""Chance alone: hand-worked binomial quantiles, and the limits of a flip rate."""

from __future__ import annotations

import pytest

from mragaudit.errors import DataError
from mragaudit.stats.intervals import chance_rate
from mragaudit.stats.noise import most_by_chance


def test_of_ten_units_at_a_tenth_seldom_more_than_three_change_sides() -> None:
    """P(X <= 2) = 0.9298 and P(X <= 3) = 0.9872, by hand from 0.9^10 = 0.3487, 0.3874, 0.1937, 0.0574."""
    assert most_by_chance(10, 0.1, confidence=0.95) == 3
    assert most_by_chance(10, 0.1, confidence=0.92) == 2


@pytest.mark.parametrize(("n", "share", "most"), [(10, 0.0, 0), (10, 1.0, 10), (0, 0.5, 0), (1, 0.04, 0), (1, 0.06, 1)])
def test_the_most_by_chance_at_its_ends(n: int, share: float, most: int) -> None:
    assert most_by_chance(n, share, confidence=0.95) == most


@pytest.mark.parametrize(("n", "share"), [(-1, 0.5), (3, 1.5), (3, -0.1)])
def test_a_count_or_share_out_of_range_is_refused(n: int, share: float) -> None:
    with pytest.raises(DataError, match="the share lie in"):
        most_by_chance(n, share, confidence=0.95)


def test_no_flip_of_forty_has_the_one_sided_upper_limit() -> None:
    found = chance_rate(0, 40)
    assert (found.rate, found.low, found.method) == (0.0, 0.0, "wilson_one_sided_upper")
    assert found.high == pytest.approx(0.0634, abs=5e-5)


def test_seven_flips_of_forty_have_two_sided_limits() -> None:
    found = chance_rate(7, 40)
    assert found.method == "wilson_two_sided"
    assert (found.low, found.high) == (pytest.approx(0.0875, abs=5e-5), pytest.approx(0.3195, abs=5e-5))


def test_flips_of_all_have_the_one_sided_lower_limit_and_none_of_nothing_has_none() -> None:
    found = chance_rate(4, 4)
    assert (found.method, found.high) == ("wilson_one_sided_lower", 1.0)
    assert found.low == pytest.approx(0.5965, abs=5e-5)
    assert chance_rate(0, 0).rate is None
