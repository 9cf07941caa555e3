"""What all tables share: rows to data frames with fixed columns, intervals to cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from mragaudit.stats.intervals import Interval

Row = dict[str, Any]


def frame(rows: Iterable[Row], columns: Sequence[str]) -> pd.DataFrame:
    """Return a table with exactly these columns in this order; whole numbers stay whole beside empty cells."""
    table = pd.DataFrame(list(rows), columns=list(columns))
    for name in columns:
        if name.startswith("n_") or name in {"n", "k"}:
            table[name] = table[name].astype("Int64")
    return table


def interval_cells(interval: Interval, *, prefix: str = "", rate: str = "rate") -> Row:
    """Return an interval as the cells rate, ci_low, ci_high of a row, with a prefix for the bounds."""
    return {rate: interval.rate, f"{prefix}ci_low": interval.low, f"{prefix}ci_high": interval.high}
