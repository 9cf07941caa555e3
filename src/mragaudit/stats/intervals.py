"""Intervals for shares of documents: Wilson, Clopper-Pearson, bootstrap, and the tables' conventions.

Each interval comes twice: for one cell (`wilson`, …), and for arrays of cells (`wilson_cells`, …).
A cell with n = 0 has no rate and no limits: None in `Interval`, NaN in `Intervals`, and the method "".
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special
from scipy import stats as distributions

from mragaudit.errors import ConfigError, DataError

FloatArray: TypeAlias = npt.NDArray[np.float64]
Side: TypeAlias = Literal["two", "upper", "lower"]
Method: TypeAlias = Literal[
    "",
    "bootstrap_document",
    "bootstrap_calls",
    "bootstrap_paired",
    "bootstrap_paired_calls",
    "bootstrap_two_sample",
    "clopper_pearson_pairs",
    "wilson_one_sided_upper",
    "wilson_one_sided_lower",
    "wilson_two_sided",
    "clopper_pearson",
    "clopper_pearson_one_sided_upper",
    "clopper_pearson_one_sided_lower",
]

CONFIDENCE = 0.95  # the published level of every table
WILSON_METHODS: dict[Side, Method] = {
    "two": "wilson_two_sided",
    "upper": "wilson_one_sided_upper",
    "lower": "wilson_one_sided_lower",
}
CLOPPER_PEARSON_METHODS: dict[Side, Method] = {
    "two": "clopper_pearson",
    "upper": "clopper_pearson_one_sided_upper",
    "lower": "clopper_pearson_one_sided_lower",
}


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """One estimate with its limits, or nothing at all where n = 0."""

    rate: float | None
    """Share in [0, 1], or a difference of shares in [-1, 1]; None when n = 0."""
    low: float | None
    """Lower limit on the scale of `rate`; None when n = 0."""
    high: float | None
    """Upper limit on the scale of `rate`; None when n = 0."""
    method: Method
    """How the limits were made; "" when n = 0."""

    @property
    def degenerate(self) -> bool:
        """Whether the limits have no width, so that they must not be read as certainty."""
        return self.low is not None and self.low == self.high


class Intervals(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Estimates of many cells, as arrays of one shape `(n_cells,)`."""

    rate: FloatArray
    """As `Interval.rate`; NaN when n = 0."""
    low: FloatArray
    """As `Interval.low`; NaN when n = 0."""
    high: FloatArray
    """As `Interval.high`; NaN when n = 0."""
    method: npt.NDArray[np.object_]
    """As `Interval.method`, Python strings."""

    def __len__(self) -> int:
        return len(self.rate)

    def at(self, cell: int) -> Interval:
        """Return the record of one cell; an empty cell gives None for all three numbers."""
        method: Method = self.method[cell]
        if not method:
            return Interval(rate=None, low=None, high=None, method="")
        rate, low, high = (float(values[cell]) for values in (self.rate, self.low, self.high))
        return Interval(rate=rate, low=low, high=high, method=method)

    def records(self) -> list[Interval]:
        """Return one record a cell, in order."""
        return [self.at(cell) for cell in range(len(self))]


def checked_counts(k: npt.ArrayLike, n: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return k and n as float arrays of one shape `(n_cells,)`.

    Raises DataError unless all are whole numbers with 0 <= k <= n.
    """
    successes, totals = np.broadcast_arrays(
        np.atleast_1d(np.asarray(k, dtype=np.float64)), np.atleast_1d(np.asarray(n, dtype=np.float64))
    )
    whole = (successes == np.floor(successes)) & (totals == np.floor(totals)) & np.isfinite(totals)
    wrong = np.flatnonzero(~(whole & (successes >= 0) & (successes <= totals)))
    if wrong.size:
        cell = int(wrong[0])
        shown = f"k = {successes[cell]:g} of n = {totals[cell]:g}"
        raise DataError(f"counts must be whole numbers with 0 <= k <= n; cell {cell} has {shown}")
    return successes, totals


def checked_confidence(confidence: float) -> float:
    """Return the confidence level; raises ConfigError unless it lies strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ConfigError(f"confidence must lie strictly between 0 and 1, e.g. 0.95; got {confidence:g}")
    return confidence


def tail_area(confidence: float, side: Side) -> float:
    """Return the probability left outside each reported limit: half of it on either side of a two-sided one.

    Raises ConfigError for a side other than two, upper or lower, and for a confidence outside (0, 1).
    """
    if side not in WILSON_METHODS:
        raise ConfigError(f'side must be one of two, upper, lower; got "{side}"')
    outside = 1.0 - checked_confidence(confidence)
    return outside / 2.0 if side == "two" else outside


def assemble(
    rate: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *,
    method: npt.ArrayLike,
    empty: npt.NDArray[np.bool_],
) -> Intervals:
    """Return the cells as one record, with NaN and "" where `empty`; `method` is one name or one a cell."""
    missing = [np.where(empty, np.nan, values) for values in (rate, low, high)]
    names = np.where(empty, "", np.asarray(method, dtype=object)).astype(object)
    return Intervals(rate=missing[0], low=missing[1], high=missing[2], method=names)


def one_sided(low: FloatArray, high: FloatArray, side: Side) -> tuple[FloatArray, FloatArray]:
    """Return the limits with the side that is not asked for opened to 0 or 1."""
    if side == "upper":
        return np.zeros_like(low), high
    if side == "lower":
        return low, np.ones_like(high)
    return low, high


def wilson_limits(successes: FloatArray, totals: FloatArray, *, tail: float) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's lower and upper limit with `tail` outside each; totals must be above 0.

    Wilson (1927), JASA 22:209, the two roots of |p - k/n| = z sqrt(p (1 - p) / n). The lower root comes from
    the product of the roots, k^2 / (n (n + z^2)), which loses no digits and is exactly 0 for k = 0; the upper
    is its mirror image, exactly 1 for k = n. Successes may be fractional (a mean of shares times n).
    """
    z = float(special.ndtri(1.0 - tail))

    def lower(k: FloatArray) -> FloatArray:
        spread = z * np.sqrt(z * z + 4.0 * k * (totals - k) / totals)
        upper_root = (2.0 * k + z * z + spread) / (2.0 * (totals + z * z))
        return np.asarray(k * k / (totals * (totals + z * z) * upper_root))

    return lower(successes), 1.0 - lower(totals - successes)


def wilson_cells(k: npt.ArrayLike, n: npt.ArrayLike, *, side: Side, confidence: float = CONFIDENCE) -> Intervals:
    """Return the Wilson score interval of k out of n, cell by cell; n = 0 gives an empty cell.

    `side` "two" puts half of 1 - confidence on either side (z = 1.9600 at 95 %); "upper" and "lower" put all
    of it on one (z = 1.6449) and report 0 or 1 as the other limit. There is no default side: 0 of 40 has the
    upper limit 0.0634 one-sided and 0.0876 two-sided, and tables differ in their convention.
    Raises DataError unless 0 <= k <= n, whole numbers.
    """
    successes, totals = checked_counts(k, n)
    empty = totals == 0
    safe = np.where(empty, 1.0, totals)
    low, high = one_sided(*wilson_limits(successes, safe, tail=tail_area(confidence, side)), side)
    return assemble(successes / safe, low, high, method=WILSON_METHODS[side], empty=empty)


def wilson(k: int, n: int, *, side: Side, confidence: float = CONFIDENCE) -> Interval:
    """Return the Wilson score interval of k out of n; see `wilson_cells`."""
    return wilson_cells(k, n, side=side, confidence=confidence).at(0)


def clopper_pearson_cells(
    k: npt.ArrayLike, n: npt.ArrayLike, *, side: Side, confidence: float = CONFIDENCE
) -> Intervals:
    """Return the exact Clopper-Pearson interval of k out of n, cell by cell; n = 0 gives an empty cell.

    Clopper and Pearson (1934), Biometrika 26:404, by beta quantiles. For k = 0 the lower limit is 0, for
    k = n the upper is 1; sides as in `wilson_cells`. Raises DataError unless 0 <= k <= n, whole numbers.
    """
    successes, totals = checked_counts(k, n)
    tail = tail_area(confidence, side)

    def lower(hits: FloatArray) -> FloatArray:
        # The beta quantile has no value at a = 0, where the limit is 0 by definition.
        limit = special.betaincinv(np.maximum(hits, 1.0), totals - hits + 1.0, tail)
        return np.asarray(np.where(hits == 0, 0.0, limit))

    low, high = one_sided(lower(successes), 1.0 - lower(totals - successes), side)
    rate = successes / np.maximum(totals, 1.0)
    return assemble(rate, low, high, method=CLOPPER_PEARSON_METHODS[side], empty=totals == 0)


def clopper_pearson(k: int, n: int, *, side: Side, confidence: float = CONFIDENCE) -> Interval:
    """Return the exact Clopper-Pearson interval of k out of n; see `clopper_pearson_cells`."""
    return clopper_pearson_cells(k, n, side=side, confidence=confidence).at(0)


def bootstrap_cells(k: npt.ArrayLike, n: npt.ArrayLike, *, confidence: float = CONFIDENCE) -> Intervals:
    """Return the percentile document bootstrap of k out of n, cell by cell, without resampling.

    Drawing n documents with replacement makes the number of successes binomial (n, k/n), so the limits of
    infinitely many resamples are its quantiles (Efron 1979, Annals of Statistics 7:1). A percentile of 5,000
    resamples agrees within one document up to some hundreds of documents; beyond, its own Monte Carlo error
    (0.0022 in the tail area) is wider than a document, which the quantiles here do not have.
    k = 0 and k = n have no width (`Interval.degenerate`): `document_rates` replaces them. n = 0 is empty.
    Raises DataError unless 0 <= k <= n, whole numbers.
    """
    successes, totals = checked_counts(k, n)
    tail = tail_area(confidence, "two")
    empty = totals == 0
    safe = np.where(empty, 1.0, totals)
    # The upper limit is the mirrored lower one: exact symmetry of success and failure, as the percentile has.
    low = distributions.binom.ppf(tail, safe, successes / safe) / safe
    high = (safe - distributions.binom.ppf(tail, safe, (totals - successes) / safe)) / safe
    return assemble(successes / safe, low, high, method="bootstrap_document", empty=empty)


def bootstrap(k: int, n: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Return the percentile document bootstrap of k out of n; see `bootstrap_cells`."""
    return bootstrap_cells(k, n, confidence=confidence).at(0)


def document_rates(k: npt.ArrayLike, n: npt.ArrayLike, *, confidence: float = CONFIDENCE) -> Intervals:
    """Return rates and limits of F1 and F3 cells: k leaked documents of n evaluated ones, cell by cell.

    The published convention: percentile document bootstrap where 0 < k < n; where it has no width, Wilson's
    one-sided upper limit (k = 0) or one-sided lower limit (k = n). n = 0 is empty.
    Raises DataError unless 0 <= k <= n, whole numbers.
    """
    successes, totals = checked_counts(k, n)
    none, every = successes == 0, successes == totals
    inner = bootstrap_cells(successes, totals, confidence=confidence)
    upper = wilson_cells(successes, totals, side="upper", confidence=confidence)
    lower = wilson_cells(successes, totals, side="lower", confidence=confidence)
    return Intervals(
        rate=inner.rate,
        low=np.select([none, every], [upper.low, lower.low], inner.low),
        high=np.select([none, every], [upper.high, lower.high], inner.high),
        method=np.select([none, every], [upper.method, lower.method], inner.method),
    )


def document_rate(k: int, n: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Return rate and limits of one F1 or F3 cell; see `document_rates`."""
    return document_rates(k, n, confidence=confidence).at(0)


def chance_rate(k: int, n: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Return rate and limits of k events of n independent trials, by Wilson.

    Two-sided where 0 < k < n; one-sided upper for k = 0 and one-sided lower for k = n, as everywhere in the tables.
    n = 0 is empty. Raises DataError unless 0 <= k <= n, whole numbers.
    """
    side: Side = "upper" if k == 0 else "lower" if k == n else "two"
    return wilson(k, n, side=side, confidence=confidence)


def conditional_rates(k: npt.ArrayLike, n: npt.ArrayLike, *, confidence: float = CONFIDENCE) -> Intervals:
    """Return rates and limits of F2 and F4 cells, and of figure bars: two-sided Wilson, cell by cell."""
    return wilson_cells(k, n, side="two", confidence=confidence)


def conditional_rate(k: int, n: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Return rate and limits of one F2 or F4 cell; see `conditional_rates`."""
    return conditional_rates(k, n, confidence=confidence).at(0)
