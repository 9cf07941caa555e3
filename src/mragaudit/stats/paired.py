"""Two languages on the same documents: exact McNemar test and paired bootstrap of the difference of rates."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

from mragaudit.errors import DataError
from mragaudit.stats.bootstrap import RESAMPLES, checked_resamples, kind_weights, stack
from mragaudit.stats.intervals import (
    CONFIDENCE,
    FloatArray,
    Interval,
    Intervals,
    checked_confidence,
    checked_counts,
    tail_area,
    wilson,
)


class PairedCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How often two outcomes differ on the same documents."""

    n_documents: int
    """Documents evaluated under both outcomes."""
    only_a: int
    """Documents with outcome a and not b."""
    only_b: int
    """Documents with outcome b and not a."""

    @property
    def n_discordant(self) -> int:
        """Number of documents on which the outcomes differ."""
        return self.only_a + self.only_b


class McNemar(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the exact two-sided McNemar test."""

    n_discordant: int
    """Documents on which the outcomes differ."""
    p_value: float
    """Two-sided p; 1 when no document is discordant."""
    least_p: float
    """Least p that this number of discordant documents can give, however they fall."""


def count_pairs(
    outcome_a: npt.ArrayLike, outcome_b: npt.ArrayLike, *, evaluated: npt.ArrayLike | None = None
) -> PairedCounts:
    """Return the paired counts of two boolean outcomes, shape `(n_documents,)`, in the same document order.

    `evaluated` marks the documents known under both outcomes (None: all); the others are left out.
    Raises DataError for unequal shapes.
    """
    a, b = np.asarray(outcome_a, dtype=bool), np.asarray(outcome_b, dtype=bool)
    known = np.ones(a.shape, dtype=bool) if evaluated is None else np.asarray(evaluated, dtype=bool)
    if not a.shape == b.shape == known.shape:
        raise DataError(f"paired outcomes need one shape; got {a.shape}, {b.shape} and {known.shape}")
    return PairedCounts(
        n_documents=int(known.sum()), only_a=int((known & a & ~b).sum()), only_b=int((known & ~a & b).sum())
    )


def mcnemar_p_values(only_a: npt.ArrayLike, only_b: npt.ArrayLike) -> FloatArray:
    """Return exact two-sided McNemar p-values, cell by cell, shape `(n_cells,)`.

    Twice the binomial (1/2) tail of the rarer direction among the discordant documents, at most 1 (McNemar
    1947, Psychometrika 12:153, in its exact form); no discordant document gives 1.
    Raises DataError for counts that are not whole numbers of at least 0.
    """
    discordant = np.asarray(only_a, dtype=np.float64) + np.asarray(only_b, dtype=np.float64)
    a, total = checked_counts(only_a, discordant)
    rarer = np.minimum(a, total - a)
    # P(X <= r) of a binomial (n, 1/2) is the incomplete beta I_{1/2}(n - r, r + 1), undefined at n - r = 0.
    tail = special.betainc(np.maximum(total - rarer, 1.0), rarer + 1.0, 0.5)
    return np.asarray(np.where(total == 0, 1.0, np.minimum(1.0, 2.0 * tail)))


def least_attainable_p(n_discordant: int) -> float:
    """Return the least two-sided McNemar p of so many discordant documents: all in one direction."""
    return min(1.0, 2.0 * 0.5**n_discordant)


def mcnemar_exact(only_a: int, only_b: int) -> McNemar:
    """Return the exact two-sided McNemar test of one pair; see `mcnemar_p_values`."""
    discordant = only_a + only_b
    p_value = float(mcnemar_p_values(only_a, only_b)[0])
    return McNemar(n_discordant=discordant, p_value=p_value, least_p=least_attainable_p(discordant))


def widthless_difference(pair: PairedCounts, *, confidence: float) -> Interval:
    """Return Wilson limits for a difference when all documents fall into one kind and nothing is resampled.

    No discordant document: the one-sided upper limit u of the discordant share bounds the difference on both
    sides, [-u, u]. All documents with a and not b: at least the share l (one-sided lower) is of this kind
    and at most 1 - l of the other, so [2 l - 1, 1]; mirrored for b.
    """
    if pair.n_discordant == 0:
        bound = wilson(0, pair.n_documents, side="upper", confidence=confidence)
        limit = bound.high or 0.0
        return Interval(rate=0.0, low=-limit, high=limit, method=bound.method)
    bound = wilson(pair.n_documents, pair.n_documents, side="lower", confidence=confidence)
    least = 2.0 * (bound.low or 0.0) - 1.0
    if pair.only_b:
        return Interval(rate=-1.0, low=-1.0, high=-least, method=bound.method)
    return Interval(rate=1.0, low=least, high=1.0, method=bound.method)


def resampled_difference(pair: PairedCounts, *, seed: int, resamples: int, confidence: float) -> Interval:
    """Return the difference of rates of one pair with limits; see `paired_differences`."""
    if pair.n_documents == 0:
        return Interval(rate=None, low=None, high=None, method="")
    kinds = (pair.only_a, pair.only_b, pair.n_documents - pair.n_discordant)
    if max(kinds) == pair.n_documents:
        return widthless_difference(pair, confidence=confidence)
    # Drawing the more frequent direction first mirrors the limits of (a, b) exactly when a and b are swapped.
    sign = 1 if pair.only_a >= pair.only_b else -1
    ordered = np.array([max(kinds[:2]), min(kinds[:2]), kinds[2]]) / pair.n_documents
    drawn = np.random.default_rng(seed).multinomial(pair.n_documents, ordered, size=resamples)
    differences = sign * (drawn[:, 0] - drawn[:, 1]) / pair.n_documents
    tail = tail_area(confidence, "two")
    low, high = np.quantile(differences, [tail, 1.0 - tail])
    rate = (pair.only_a - pair.only_b) / pair.n_documents
    return Interval(rate=rate, low=float(low), high=float(high), method="bootstrap_paired")


def paired_differences(
    only_a: npt.ArrayLike,
    only_b: npt.ArrayLike,
    *,
    n_documents: npt.ArrayLike,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Intervals:
    """Return rate of a minus rate of b with paired document-bootstrap limits, cell by cell.

    Resampling documents with both their outcomes makes (only a, only b, neither or both alike) a multinomial;
    the limits are numpy's linear quantiles of (only a - only b) / n over the resamples. n = 0 is empty; where
    all documents are of one kind `widthless_difference` stands in.
    One number is taken from the generator and serves every pair, so that limits do not depend on which other
    pairs are asked for, equal counts have equal limits, and swapping a and b mirrors them (with only_a =
    only_b it leaves them as they are). Raises DataError unless only_a + only_b <= n_documents, whole numbers.
    """
    a, b, total = np.atleast_1d(*np.broadcast_arrays(only_a, only_b, n_documents))
    checked_counts(np.minimum(a, b), np.maximum(a, b))
    checked_counts(a + b, total)
    checked_confidence(confidence)
    checked_resamples(resamples)
    seed = int(generator.integers(2**63))
    triples, place = np.unique(np.stack([a, b, total], axis=1).astype(np.int64), axis=0, return_inverse=True)
    distinct = [
        resampled_difference(
            PairedCounts(n_documents=int(n), only_a=int(first), only_b=int(second)),
            seed=seed,
            resamples=resamples,
            confidence=confidence,
        )
        for first, second, n in triples
    ]
    return stack([distinct[index] for index in place.reshape(-1)])


def paired_difference(
    pair: PairedCounts,
    *,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return rate of a minus rate of b of one pair, with limits; see `paired_differences`."""
    return paired_differences(
        pair.only_a,
        pair.only_b,
        n_documents=pair.n_documents,
        generator=generator,
        resamples=resamples,
        confidence=confidence,
    ).at(0)


def mean_difference(
    differences: npt.ArrayLike,
    *,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the mean of paired differences, shape `(n_units,)`, with percentile limits over resampled units.

    No unit gives an empty interval. Where all differences are equal nothing can be resampled and no bound on other
    values is known, so there are no limits and no method. Raises DataError for a difference that is not finite.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not bool(np.all(np.isfinite(values))):
        raise DataError(f"paired differences are one vector of finite numbers; got shape {values.shape}")
    if not values.size:
        return Interval(rate=None, low=None, high=None, method="")
    mean = float(values.mean())
    if np.ptp(values) == 0.0:
        return Interval(rate=mean, low=None, high=None, method="")
    distinct, count = np.unique(values, return_counts=True)
    parts = [
        weights @ distinct / values.size
        for weights in kind_weights(count.astype(np.int64), generator=generator, resamples=resamples)
    ]
    tail = tail_area(confidence, "two")
    low, high = np.quantile(np.concatenate(parts), [tail, 1.0 - tail])
    return Interval(rate=mean, low=float(low), high=float(high), method="bootstrap_paired")
