"""Two scores of the same members and non-members: how far their AUCs are apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mragaudit.errors import DataError
from mragaudit.stats.agreement import auc
from mragaudit.stats.bootstrap import RESAMPLES, checked_resamples
from mragaudit.stats.intervals import CONFIDENCE, FloatArray, Interval, tail_area


def auc_difference(
    members: npt.ArrayLike,
    non_members: npt.ArrayLike,
    *,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return AUC under the second score minus AUC under the first, with percentile limits.

    Both inputs have shape `(n_documents, 2)`: the first and the second score of each document. A resample draws members
    and non-members each for themselves, a document with both of its scores. Without a member or a non-member the
    interval is empty; where every pair of documents falls alike under both scores there are no limits and no method.
    Raises DataError for another shape or a score that is not a number.
    """
    first, second = _checked(members), _checked(non_members)
    if not len(first) or not len(second):
        return Interval(rate=None, low=None, high=None, method="")
    wins = [_wins(first[:, score], second[:, score]) for score in (0, 1)]
    change = wins[1] - wins[0]
    value = (auc(first[:, 1], second[:, 1]) or 0.0) - (auc(first[:, 0], second[:, 0]) or 0.0)
    if np.ptp(change) == 0.0:
        return Interval(rate=value, low=None, high=None, method="")
    drawn = _resampled(change, generator=generator, resamples=checked_resamples(resamples))
    tail = tail_area(confidence, "two")
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return Interval(rate=value, low=float(low), high=float(high), method="bootstrap_paired")


def _checked(scores: npt.ArrayLike) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64).reshape(-1, 2) if np.size(scores) == 0 else np.asarray(scores, float)
    if values.ndim != 2 or values.shape[1] != 2 or bool(np.isnan(values).any()):  # noqa: PLR2004  # two scores
        raise DataError(f"each document needs two scores, both numbers; got shape {values.shape}")
    return values


def _wins(members: FloatArray, non_members: FloatArray) -> FloatArray:
    """Return 1 where a member scores higher, 0.5 at a tie, else 0; shape (n_members, n_non_members)."""
    return np.asarray((np.sign(np.subtract.outer(members, non_members)) + 1.0) / 2.0)


def _resampled(change: FloatArray, *, generator: np.random.Generator, resamples: int) -> FloatArray:
    n_members, n_others = change.shape
    first = generator.multinomial(n_members, np.full(n_members, 1 / n_members), size=resamples)
    second = generator.multinomial(n_others, np.full(n_others, 1 / n_others), size=resamples)
    return np.asarray(((first @ change) * second).sum(axis=1) / (n_members * n_others))
