"""Medians with distribution-free limits, also of values that are partly infinite (never reached)."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import stats as distributions

from mragaudit.errors import DataError
from mragaudit.stats.intervals import CONFIDENCE, tail_area

MedianMethod = Literal["", "median_order_statistics"]


class MedianInterval(msgspec.Struct, frozen=True, kw_only=True):
    """A median with limits; infinity stands for "not reached"."""

    median: float | None
    """None without a value."""
    low: float | None
    """None where so few values have no lower limit at this level."""
    high: float | None
    method: MedianMethod
    """"" without a value or without limits."""


def median_interval(values: npt.ArrayLike, *, confidence: float = CONFIDENCE) -> MedianInterval:
    """Return the median of values, shape `(n,)`, with exact binomial limits between order statistics.

    Conover (1999), Practical Nonparametric Statistics, section 3.2: the limits are the values of rank r and
    n + 1 - r, r the largest with P(Binomial(n, 1/2) < r) <= (1 - confidence) / 2. Below 6 values 95 % has no such
    rank: the median then stands without limits. An even number takes the mean of the middle two, infinite if either
    is. Raises DataError for NaN: leave out what was not evaluated.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64).reshape(-1))
    if np.isnan(ordered).any():
        raise DataError("a value is NaN; leave out what was not evaluated before taking a median")
    n = len(ordered)
    if n == 0:
        return MedianInterval(median=None, low=None, high=None, method="")
    middle = float(ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    rank = int(distributions.binom.ppf(tail_area(confidence, "two"), n, 0.5))
    if rank < 1:
        return MedianInterval(median=middle, low=None, high=None, method="")
    return MedianInterval(
        median=middle, low=float(ordered[rank - 1]), high=float(ordered[n - rank]), method="median_order_statistics"
    )
