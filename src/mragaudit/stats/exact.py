"""Fisher's exact test of two independent shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats as distributions

from mragaudit.errors import DataError

ALTERNATIVES = ("two-sided", "greater", "less")


def fisher_exact(table: Sequence[Sequence[int]], *, alternative: Literal["two-sided", "greater", "less"]) -> float:
    """Return the p-value of Fisher's exact test of a 2 x 2 table [[hits, misses], [hits, misses]].

    "greater" asks whether the first row has the larger share of hits. Two-sided sums all tables that are no
    more probable than the observed one, mirror images included: scipy compares with a relative tolerance,
    which a test holds. An empty row or column gives 1.
    Raises DataError unless the table is 2 x 2 with whole numbers of at least 0, or for another alternative.
    """
    counts = np.asarray(table)
    if counts.shape != (2, 2) or counts.dtype.kind not in "iu" or bool(np.any(counts < 0)):
        raise DataError(f"Fisher's test needs 2 x 2 whole numbers of at least 0; got {counts.tolist()}")
    if alternative not in ALTERNATIVES:
        raise DataError(f'alternative must be one of {", ".join(ALTERNATIVES)}; got "{alternative}"')
    return float(distributions.fisher_exact(counts, alternative=alternative).pvalue)
