"""Exact limits of a Poisson rate: so many events in so much exposure."""

from __future__ import annotations

from typing import Literal

import msgspec
from scipy import special

from mragaudit.errors import DataError
from mragaudit.stats.intervals import CONFIDENCE, Side, tail_area

RateMethod = Literal["", "poisson_exact_two_sided", "poisson_exact_one_sided_upper", "poisson_exact_one_sided_lower"]
METHODS: dict[Side, RateMethod] = {
    "two": "poisson_exact_two_sided",
    "upper": "poisson_exact_one_sided_upper",
    "lower": "poisson_exact_one_sided_lower",
}


class RateInterval(msgspec.Struct, frozen=True, kw_only=True):
    """Events a unit of exposure with limits, or nothing at all where there was no exposure."""

    rate: float | None
    low: float | None
    """Lower limit; 0 for a one-sided upper interval."""
    high: float | None
    """Upper limit; None as well for a one-sided lower interval, which is open above."""
    method: RateMethod
    """How the limits were made; "" without exposure."""


def poisson_rate(events: int, exposure: float, *, side: Side, confidence: float = CONFIDENCE) -> RateInterval:
    """Return the exact interval of a Poisson rate from `events` in `exposure` (any unit; the rate is one of it).

    Garwood (1936), Biometrika 28:437: half of the chi-squared quantiles with 2 k and 2 k + 2 degrees of freedom,
    here as gamma quantiles. No event has the one-sided 95 % upper limit 2.9957 / exposure. Zero exposure is empty.
    Events that come in clusters, several a user, vary more than a Poisson count: give the share of users beside.
    Raises DataError for negative or non-finite numbers.
    """
    if events < 0 or not 0.0 <= exposure < float("inf"):
        raise DataError(f"a rate needs events and exposure of at least 0; got {events} in {exposure}")
    if exposure == 0.0:
        return RateInterval(rate=None, low=None, high=None, method="")
    tail = tail_area(confidence, side)
    low = 0.0 if events == 0 or side == "upper" else float(special.gammaincinv(events, tail)) / exposure
    high = None if side == "lower" else float(special.gammainccinv(events + 1, tail)) / exposure
    return RateInterval(rate=events / exposure, low=low, high=high, method=METHODS[side])
