"""Membership inference: how well scores of members and of non-members are told apart.

Scores of None or NaN were not evaluated: they are counted, and stand in no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb, sqrt

import msgspec
import numpy as np
from scipy import stats as distributions

from mragaudit.stats.agreement import auc
from mragaudit.stats.bootstrap import CHUNK_WEIGHTS, RESAMPLES, checked_resamples
from mragaudit.stats.intervals import (
    CONFIDENCE,
    FloatArray,
    Interval,
    clopper_pearson,
    tail_area,
)

PERMUTATIONS = 10_000
SAME_AUC = 1e-12  # above the rounding of a sum of ranks, below any real difference


class PairwiseAuc(msgspec.Struct, frozen=True, kw_only=True):
    """The signed pairwise AUC with its limits."""

    auc: Interval
    """P(member scores higher) + P(tie) / 2; empty where a side has no evaluated score."""
    n_members: int
    """Members with a score."""
    n_non_members: int
    members_not_evaluated: int
    non_members_not_evaluated: int
    standard_error: float | None
    """Of Hanley and McNeil, for comparison; None where there is no AUC."""


class FoldedAuc(msgspec.Struct, frozen=True, kw_only=True):
    """The AUC of a score whose direction is not known beforehand, which is above 0.5 by construction."""

    auc: float
    """max(AUC, 1 - AUC)."""
    null_median: float
    """Median of the same number where labels are dealt anew: what it is without any signal."""
    null_high: float
    """95 % quantile of the same."""
    p_value: float
    """Share of arrangements of labels with at least this number, the observed one among them."""
    n_arrangements: int
    exact: bool
    """Whether these are all arrangements; else they are drawn."""


class TruePositiveRate(msgspec.Struct, frozen=True, kw_only=True):
    """Members found at a bounded share of false alarms."""

    fpr_share: float
    """Bound on the share of non-members at or above the threshold."""
    tpr: Interval
    """Two-sided Clopper-Pearson over members at the threshold found; empty where there is no number."""
    n_members: int
    n_found: int | None
    reached_fpr_share: float | None
    """Share of non-members at or above the threshold; ties may keep it below the bound."""
    reason: str | None
    """Why there is no number."""


class _Scores(msgspec.Struct, frozen=True, kw_only=True):
    members: FloatArray
    others: FloatArray
    members_missing: int
    others_missing: int


def pairwise_auc(
    members: Iterable[float | None],
    non_members: Iterable[float | None],
    *,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> PairwiseAuc:
    """Return P(s(m) > s(n)) + P(tie) / 2 over all pairs, with percentile limits of a two-sample bootstrap.

    Members and non-members are resampled each for themselves: documents are the units, not pairs (Efron and
    Tibshirani 1993, section 8.3). An AUC below one half stays there: it says that the score works the wrong
    way, and is no protection. Where all pairs fall alike a bootstrap has no width, and Clopper-Pearson over
    min(n_members, n_non_members) disjoint pairs stands in, which are independent. Infinite scores are ranked.
    """
    scores = _evaluated(members, non_members)
    value = auc(scores.members, scores.others)
    if value is None:
        limits, error = Interval(rate=None, low=None, high=None, method=""), None
    else:
        limits = _limits(scores, value, generator=generator, resamples=resamples, confidence=confidence)
        error = hanley_mcneil_error(value, n_members=scores.members.size, n_non_members=scores.others.size)
    return PairwiseAuc(
        auc=limits,
        n_members=scores.members.size,
        n_non_members=scores.others.size,
        members_not_evaluated=scores.members_missing,
        non_members_not_evaluated=scores.others_missing,
        standard_error=error,
    )


def auc_difference(
    members: Sequence[tuple[float | None, float | None]],
    non_members: Sequence[tuple[float | None, float | None]],
    *,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the AUC of the first scores less that of the second, both of the same documents.

    A document with one score missing is left out. Members and non-members are resampled each for themselves, and a
    document keeps both its scores; widthless cases as in `pairwise_auc`, on the scale from -1 to 1. Empty where a
    side has no document.
    """
    kept = [[pair for pair in side if not any(map(_is_missing, pair))] for side in (members, non_members)]
    if not all(kept):
        return Interval(rate=None, low=None, high=None, method="")
    first, second = (_evaluated(*([pair[which] for pair in side] for side in kept)) for which in (0, 1))
    gaps = _outcomes(first) - _outcomes(second)
    return _pair_mean(
        gaps, float(gaps.mean()), floor=-1.0, generator=generator, resamples=resamples, confidence=confidence
    )


def _is_missing(score: float | None) -> bool:
    return score is None or bool(np.isnan(score))


def hanley_mcneil_error(value: float, *, n_members: int, n_non_members: int) -> float:
    """Return the standard error of an AUC; both sides must hold a document.

    Hanley and McNeil (1982), Radiology 143:29, with the exponential model's Q1 = A / (2 - A) and
    Q2 = 2 A^2 / (1 + A).
    """
    square = value * value
    first, second = value / (2 - value) - square, 2 * square / (1 + value) - square
    variance = value * (1 - value) + (n_members - 1) * first + (n_non_members - 1) * second
    return sqrt(max(0.0, variance) / (n_members * n_non_members))


def folded_auc(
    members: Iterable[float | None],
    non_members: Iterable[float | None],
    *,
    generator: np.random.Generator,
    permutations: int = PERMUTATIONS,
) -> FoldedAuc | None:
    """Return max(AUC, 1 - AUC) with its null, in which labels are dealt anew; None if a side is empty.

    All arrangements are gone through where there are at most `permutations`, else so many are drawn and the
    observed one is added to both counts (Phipson and Smyth 2010, SAGMB 9:39).
    """
    scores = _evaluated(members, non_members)
    value = auc(scores.members, scores.others)
    if value is None:
        return None
    size, total = scores.members.size, scores.members.size + scores.others.size
    ranks = distributions.rankdata(np.concatenate([scores.members, scores.others]))
    exact = comb(total, size) <= checked_resamples(permutations)
    sums = _all_sums(ranks, size) if exact else _drawn_sums(ranks, size, generator=generator, permutations=permutations)
    null = (sums - size * (size + 1) / 2) / (size * (total - size))
    folded_null, folded = np.maximum(null, 1 - null), max(value, 1 - value)
    reached = int(np.sum(folded_null >= folded - SAME_AUC))
    return FoldedAuc(
        auc=folded,
        null_median=float(np.median(folded_null)),
        null_high=float(np.quantile(folded_null, 0.95)),
        p_value=reached / len(null) if exact else (reached + 1) / (len(null) + 1),
        n_arrangements=len(null),
        exact=exact,
    )


def true_positive_rate(
    members: Iterable[float | None],
    non_members: Iterable[float | None],
    *,
    fpr_share: float,
    confidence: float = CONFIDENCE,
) -> TruePositiveRate:
    """Return the share of members above the lowest threshold that keeps false alarms at most at `fpr_share`.

    A score counts at or above the threshold, and tied scores all count or all do not. Fewer than 1 / fpr_share
    non-members (20 for 5 %, 100 for 1 %) cannot show such a share: then there is no number, with the reason.
    """
    scores = _evaluated(members, non_members)
    needed = int(np.ceil(1 / fpr_share - SAME_AUC))
    reason = None
    if not scores.members.size:
        reason = "no member has a score"
    elif scores.others.size < needed:
        reason = f"{scores.others.size} non-members have a score, {fpr_share:g} needs at least {needed}"
    if reason is not None:
        return _no_rate(scores, fpr_share=fpr_share, reason=reason)
    threshold = _threshold(scores, allowed=int(np.floor(fpr_share * scores.others.size + SAME_AUC)))
    found = int(np.sum(scores.members >= threshold))
    return TruePositiveRate(
        fpr_share=fpr_share,
        tpr=clopper_pearson(found, scores.members.size, side="two", confidence=confidence),
        n_members=scores.members.size,
        n_found=found,
        reached_fpr_share=float(np.mean(scores.others >= threshold)),
        reason=None,
    )


def _no_rate(scores: _Scores, *, fpr_share: float, reason: str) -> TruePositiveRate:
    return TruePositiveRate(
        fpr_share=fpr_share,
        tpr=Interval(rate=None, low=None, high=None, method=""),
        n_members=scores.members.size,
        n_found=None,
        reached_fpr_share=None,
        reason=reason,
    )


def _threshold(scores: _Scores, *, allowed: int) -> float:
    """Return the lowest observed score that at most `allowed` non-members reach.

    NaN where there is none: no score reaches it, not even an infinite one.
    """
    observed = np.unique(np.concatenate([scores.members, scores.others]))
    reached = scores.others.size - np.searchsorted(np.sort(scores.others), observed, side="left")
    passing = observed[reached <= allowed]
    return float(passing[0]) if passing.size else float("nan")


def _evaluated(members: Iterable[float | None], non_members: Iterable[float | None]) -> _Scores:
    sides = [np.array([np.nan if s is None else s for s in side], dtype=np.float64) for side in (members, non_members)]
    missing = [int(np.isnan(side).sum()) for side in sides]
    first, second = (side[~np.isnan(side)] for side in sides)
    return _Scores(members=first, others=second, members_missing=missing[0], others_missing=missing[1])


def _limits(
    scores: _Scores, value: float, *, generator: np.random.Generator, resamples: int, confidence: float
) -> Interval:
    return _pair_mean(
        _outcomes(scores), value, floor=0.0, generator=generator, resamples=resamples, confidence=confidence
    )


def _pair_mean(
    pairs: FloatArray,
    value: float,
    *,
    floor: float,
    generator: np.random.Generator,
    resamples: int,
    confidence: float,
) -> Interval:
    """Return limits of a mean over pairs that lie between `floor` and 1."""
    if np.ptp(pairs) == 0:
        # Another outcome has at most the chance `rare`, and lies at most as far away as the farther end.
        rare = clopper_pearson(0, min(pairs.shape), side="upper", confidence=confidence).high or 0.0
        reach = rare * max(value - floor, 1.0 - value)
        low, high = max(floor, value - reach), min(1.0, value + reach)
        return Interval(rate=value, low=low, high=high, method="clopper_pearson_pairs")
    drawn = _resampled(pairs, generator=generator, resamples=checked_resamples(resamples))
    tail = tail_area(confidence, "two")
    low, high = (float(limit) for limit in np.quantile(drawn, [tail, 1 - tail]))
    return Interval(rate=value, low=low, high=high, method="bootstrap_two_sample")


def _outcomes(scores: _Scores) -> FloatArray:
    """Return 1 for a pair in which the member scores higher, 1/2 for a tie, else 0; shape (members, others)."""
    return np.asarray((np.sign(_differences(scores)) + 1) / 2, dtype=np.float64)


def _differences(scores: _Scores) -> FloatArray:
    """Return differences of midranks, which order pairs as the scores do, infinite ones included."""
    ranks = distributions.rankdata(np.concatenate([scores.members, scores.others]))
    return np.asarray(np.subtract.outer(ranks[: scores.members.size], ranks[scores.members.size :]))


def _resampled(pairs: FloatArray, *, generator: np.random.Generator, resamples: int) -> FloatArray:
    n_members, n_others = pairs.shape
    rows = max(1, CHUNK_WEIGHTS // max(n_members, n_others))
    parts: list[FloatArray] = []
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        first = generator.multinomial(n_members, np.full(n_members, 1 / n_members), size=size)
        second = generator.multinomial(n_others, np.full(n_others, 1 / n_others), size=size)
        parts.append(((first @ pairs) * second).sum(axis=1) / (n_members * n_others))
    return np.concatenate(parts)


def _all_sums(ranks: FloatArray, size: int) -> FloatArray:
    return np.array([sum(chosen) for chosen in combinations(ranks.tolist(), size)], dtype=np.float64)


def _drawn_sums(ranks: FloatArray, size: int, *, generator: np.random.Generator, permutations: int) -> FloatArray:
    sums: Sequence[float] = [float(generator.permutation(ranks)[:size].sum()) for _ in range(permutations)]
    return np.asarray(sums, dtype=np.float64)
