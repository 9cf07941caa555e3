"""The controls without which nothing is reported: a generator that echoes its context, and one that is blind to it."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from mragaudit.errors import GateError
from mragaudit.grid.rows import GridRows
from mragaudit.records.grid import Cell
from mragaudit.tables.frames import Row, frame

POSITIVE, NEGATIVE = "positive_control", "negative_control"
LEAST_ECHOED_SHARE = 0.95
"""Of the items that stood in a context, an echo has to show nearly all; the rest is what a question held already."""
COLUMNS = (
    "control",
    "attack",
    "n_calls",
    "n_in_context",
    "n_recovered",
    "n_not_evaluated",
    "share",
    "passed",
    "reason",
)


def controls_table(rows: GridRows) -> pd.DataFrame:
    """Return one row for every attack under either control."""
    return frame((_row(cell, rows) for cell in rows.cells if cell.purpose in {POSITIVE, NEGATIVE}), COLUMNS)


def _row(cell: Cell, rows: GridRows) -> Row:
    items = rows.items.get(cell.cell_id, ())
    shown = [item for item in items if item.in_context]
    recovered = [item for item in items if item.exact]
    echoed = [item for item in shown if item.exact]
    use = rows.uses[cell.cell_id]
    share = len(echoed) / len(shown) if shown else None
    reason = _fault(cell, share=share, n_recovered=len(recovered), n_lost=use.n_not_evaluated)
    return {
        "control": cell.purpose,
        "attack": cell.attack,
        "n_calls": use.n_target_calls,
        "n_in_context": len(shown),
        "n_recovered": len(recovered),
        "n_not_evaluated": use.n_not_evaluated,
        "share": share,
        "passed": not reason,
        "reason": reason,
    }


def _fault(cell: Cell, *, share: float | None, n_recovered: int, n_lost: int) -> str:
    if n_lost:
        return f"{n_lost} calls have no reply"
    if cell.purpose == NEGATIVE:
        return f"{n_recovered} items recovered from a generator that sees no context" if n_recovered else ""
    if share is None:
        return "no item stood in any context, so nothing could be echoed"
    return "" if share >= LEAST_ECHOED_SHARE else f"an echo shows {share:.2f} of the items in context"


def require_controls(table: pd.DataFrame) -> None:
    """Raise GateError, naming each, where a control failed: the scores of such a run say nothing."""
    faults = list(_faults(table))
    if faults:
        raise GateError("the hook audit is not reported, since a control failed: " + "; ".join(faults))


def _faults(table: pd.DataFrame) -> Iterator[str]:
    for row in table.to_dict("records"):
        if not row["passed"]:
            yield f"{row['control']}, attack {row['attack']}: {row['reason']}"
