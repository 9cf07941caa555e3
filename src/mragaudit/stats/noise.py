"""What chance alone may move: units that change sides between two runs of the same thing."""

from __future__ import annotations

from scipy import stats as distributions

from mragaudit.errors import DataError
from mragaudit.stats.intervals import tail_area


def most_by_chance(n: int, share: float, *, confidence: float) -> int:
    """Return the number that a binomial count of n units, each with probability `share`, seldom exceeds.

    It is the least c with P(X <= c) >= confidence: 0 for share 0, n for share 1, 0 for n = 0. Raises DataError for
    n below 0 or a share outside [0, 1], ConfigError for a confidence outside (0, 1).
    """
    if n < 0 or not 0.0 <= share <= 1.0:
        raise DataError(f"n must be at least 0 and the share lie in [0, 1]; got n = {n}, share = {share:g}")
    return int(distributions.binom.ppf(1.0 - tail_area(confidence, "upper"), n, share)) if n else 0
