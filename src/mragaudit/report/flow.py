"""Where trials stopped: the funnel's rows turned into counts a stage."""

from __future__ import annotations

import msgspec
import pandas as pd

from mragaudit.errors import DataError
from mragaudit.tables.funnel import ESCAPED, stage_order

NOT_EVALUATED = "not evaluated"
NO_GUARD = "none"


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """Trials of one language under one judge and filter, by the place where they stopped."""

    lang: str
    judge: str
    output_filter: str
    n_trials: int
    counts: dict[str, int]
    """Stage, `escaped` or `not evaluated` → trials; in the funnel's order; sums to `n_trials`."""


def select(table: pd.DataFrame, **cell: str) -> pd.DataFrame:
    """Return the rows whose columns hold the given values, in table order."""
    keep = pd.Series(data=True, index=table.index)
    for column, value in cell.items():
        keep &= table[column] == value
    return table[keep]


def values_of(table: pd.DataFrame, column: str) -> list[str]:
    """Return the different values of a column in order of first appearance; empty without such a column."""
    if column not in table.columns:
        return []
    return [str(value) for value in table[column].dropna().unique()]


def flow_of(rows: pd.DataFrame) -> Flow | None:
    """Return the counts of one funnel cell (its six rows), or None where it has no rows.

    A trial stops at the stage where the number that may still escape falls; those that nobody can place are
    counted as not evaluated. Raises DataError when the rows are not one row for each stage.
    """
    if rows.empty:
        return None
    first = rows.to_dict("records")[0]
    order = stage_order(str(first["judge_variant"]))
    stages = [str(stage) for stage in rows["stage"]]
    if sorted(stages) != sorted(order):
        raise DataError(f"funnel.csv: a cell needs one row for each of {', '.join(order)}; got {stages}")
    surviving = dict(zip(stages, rows["n_surviving"].astype(int), strict=True))
    missing = dict(zip(stages, rows["n_not_evaluated"].astype(int), strict=True))
    counts: dict[str, int] = {}
    open_before = int(first["n_trials"])
    for stage in order:
        still_open = surviving[stage] + missing[stage]
        counts[stage] = open_before - still_open
        open_before = still_open
    counts[ESCAPED] = surviving[order[-1]]
    counts[NOT_EVALUATED] = missing[order[-1]]
    return Flow(
        lang=str(first["lang"]),
        judge=str(first["judge_variant"]),
        output_filter=str(first["filter_variant"]),
        n_trials=int(first["n_trials"]),
        counts=counts,
    )


def flows(
    funnel: pd.DataFrame,
    langs: list[str],
    *,
    judge: str,
    output_filter: str,
    source: str | None,
    group: str = "all",
) -> list[Flow]:
    """Return one flow a language, in the given order; languages without rows are left out."""
    cell = {"pii_group": group, "judge_variant": judge, "filter_variant": output_filter}
    if source is not None:
        cell["query_source"] = source
    rows = select(funnel, **cell)
    found = [flow_of(select(rows, lang=lang)) for lang in langs]
    return [flow for flow in found if flow is not None]
