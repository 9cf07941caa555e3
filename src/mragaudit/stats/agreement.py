"""Agreement of a score with a known class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats as distributions

from mragaudit.errors import DataError


def auc(positives: npt.ArrayLike, negatives: npt.ArrayLike) -> float | None:
    """Return the chance that a positive scores higher than a negative, ties counted half.

    None if a side is empty.
    Mann and Whitney (1947), Annals of Mathematical Statistics 18:50, by midranks. A higher score means the
    positive class. A value below one half is reported as it is: it says that the score works the wrong way.
    Infinite scores are ranked; NaN raises DataError.
    """
    first = np.asarray(positives, dtype=np.float64).reshape(-1)
    second = np.asarray(negatives, dtype=np.float64).reshape(-1)
    missing = int(np.isnan(first).sum() + np.isnan(second).sum())
    if missing:
        raise DataError(f"{missing} scores are NaN; leave out what was not evaluated before ranking")
    if not first.size or not second.size:
        return None
    ranks = distributions.rankdata(np.concatenate([first, second]))
    wins = ranks[: first.size].sum() - first.size * (first.size + 1) / 2
    return float(wins / (first.size * second.size))
