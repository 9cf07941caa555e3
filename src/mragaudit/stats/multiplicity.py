"""Adjustment of p-values for the number of tests in a family."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mragaudit.errors import DataError
from mragaudit.stats.intervals import FloatArray


def holm_adjust(p_values: npt.ArrayLike) -> FloatArray:
    """Return Holm's step-down adjusted p-values in the order given, shape `(n_tests,)`; none for none.

    Holm (1979), Scandinavian Journal of Statistics 6:65: the i-th smallest of m is multiplied by m - i + 1,
    made monotone, and clipped at 1. Equal p-values get equal results, whatever their order.
    Raises DataError for a p-value outside [0, 1], NaN included, or for more than one dimension.
    """
    raw = np.asarray(p_values, dtype=np.float64)
    if raw.ndim != 1 or not bool(np.all((raw >= 0.0) & (raw <= 1.0))):
        raise DataError(f"a family of tests is one vector of p-values in [0, 1]; got {raw.tolist()}")
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted
