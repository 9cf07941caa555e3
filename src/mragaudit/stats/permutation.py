"""Exact permutation tests over seeds: the unit is a realisation, not a canary within it."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import stats as distributions

from mragaudit.errors import DataError

MAX_ARRANGEMENTS = 1_000_000
MIN_SEEDS = 2
DECIMALS = 12  # shares that differ by rounding alone are tied


Alternative = Literal["greater", "two-sided"]


class ExactTest(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an exact permutation test."""

    difference: float
    """Mean of the first arm minus mean of the second."""
    p_value: float
    """Share of arrangements whose difference is at least the observed one, ties included; two-sided: twice the share on
    the rarer side, at most 1."""
    least_p: float
    """Least p that so many seeds can give, however they fall."""
    n_arrangements: int


def least_p_of_arms(n_first: int, n_second: int, *, alternative: Alternative = "greater") -> float:
    """Return the least p of two arms: 1/252 for 5 against 5 seeds, 1/20 for 3 against 3; twice that two-sided."""
    sides = 1 if alternative == "greater" else 2
    return min(1.0, sides / comb(n_first + n_second, n_first))


def compare_arms(first: Sequence[float], second: Sequence[float], *, alternative: Alternative = "greater") -> ExactTest:
    """Return the exact test that the first arm's seeds have the larger mean, or another one; sizes may differ.

    Every choice of which seeds belong to the first arm is gone through (Fisher 1935, The Design of Experiments;
    scipy's `permutation_test`); differences are compared at twelve decimals.
    Raises DataError for an arm of fewer than two seeds, a value that is not finite, or more than a million
    arrangements.
    """
    arms = (_checked(first), _checked(second))
    arrangements = comb(len(first) + len(second), len(first))
    _require_countable(arrangements)
    found = distributions.permutation_test(
        arms, _mean_difference, n_resamples=arrangements, alternative=alternative, vectorized=True
    )
    return ExactTest(
        difference=float(found.statistic),
        p_value=float(found.pvalue),
        least_p=least_p_of_arms(len(first), len(second), alternative=alternative),
        n_arrangements=arrangements,
    )


def sign_flip(differences: Sequence[float]) -> ExactTest:
    """Return the exact test that paired differences have a mean above 0: every choice of signs is gone through.

    With n pairs the least p is 2^-n: 1/32 for 5 seeds. That is above 0.05 as soon as Holm's correction doubles it, and
    so is the two-sided 2/32: five seeds can never pass it, which is why certification uses `compare_arms`.
    Raises DataError as `compare_arms` does.
    """
    values = _checked(differences)
    arrangements = 2 ** len(values)
    _require_countable(arrangements)
    found = distributions.permutation_test(
        (values,), _mean, permutation_type="samples", n_resamples=arrangements, alternative="greater", vectorized=True
    )
    return ExactTest(
        difference=float(found.statistic),
        p_value=float(found.pvalue),
        least_p=1 / arrangements,
        n_arrangements=arrangements,
    )


def _mean_difference(
    first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], *, axis: int
) -> npt.NDArray[np.float64]:
    return np.asarray(np.round(np.mean(first, axis=axis) - np.mean(second, axis=axis), DECIMALS), dtype=np.float64)


def _mean(values: npt.NDArray[np.float64], *, axis: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.round(np.mean(values, axis=axis), DECIMALS), dtype=np.float64)


def _checked(values: Sequence[float]) -> npt.NDArray[np.float64]:
    arm = np.asarray(values, dtype=np.float64)
    if arm.ndim != 1 or arm.size < MIN_SEEDS or not np.isfinite(arm).all():
        raise DataError(f"an arm needs at least {MIN_SEEDS} seeds, each with a finite number; got {list(values)}")
    return arm


def _require_countable(arrangements: int) -> None:
    if arrangements > MAX_ARRANGEMENTS:
        raise DataError(f"{arrangements} arrangements of seeds are more than {MAX_ARRANGEMENTS}; compare fewer seeds")
