"""The controls without which nothing is reported: a generator that echoes its context, and one that is blind to it.

What they show is items; in a corpus without any (PubMedQA) documents, by 20 tokens in a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from mragaudit.errors import GateError
from mragaudit.grid.rows import GridRows
from mragaudit.records.grid import Cell
from mragaudit.tables.frames import Row, frame

POSITIVE, NEGATIVE = "positive_control", "negative_control"
LEAST_ECHOED_SHARE = 0.95
"""Of what stood in a context, an echo has to show nearly all; the rest is what a question held already."""
COLUMNS = (
    "control",
    "attack",
    "unit",
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shown:
    """One item or document of a control."""

    in_context: bool
    recovered: bool


def _shown(cell: Cell, rows: GridRows) -> tuple[str, Sequence[_Shown]]:
    """Return the unit of a control's corpus, and what became of each; a document's texts stand in contexts as they are.

    Controls are undefended: what was retrieved is what the generator saw.
    """
    items = rows.items.get(cell.cell_id, ())
    if items:
        return "item", [_Shown(in_context=item.in_context, recovered=item.exact) for item in items]
    documents = rows.extractions.get(cell.cell_id, ())
    return "document", [_Shown(in_context=row.retrieved, recovered=row.repeated) for row in documents]


def _row(cell: Cell, rows: GridRows) -> Row:
    unit, units = _shown(cell, rows)
    shown = [one for one in units if one.in_context]
    n_recovered = sum(one.recovered for one in units)
    use = rows.uses[cell.cell_id]
    share = sum(one.recovered for one in shown) / len(shown) if shown else None
    reason = _fault(cell, unit, share=share, n_recovered=n_recovered, n_lost=use.n_not_evaluated)
    return {
        "control": cell.purpose,
        "attack": cell.attack,
        "unit": unit,
        "n_calls": use.n_target_calls,
        "n_in_context": len(shown),
        "n_recovered": n_recovered,
        "n_not_evaluated": use.n_not_evaluated,
        "share": share,
        "passed": not reason,
        "reason": reason,
    }


def _fault(cell: Cell, unit: str, *, share: float | None, n_recovered: int, n_lost: int) -> str:
    if n_lost:
        return f"{n_lost} calls have no reply"
    if cell.purpose == NEGATIVE:
        return f"{n_recovered} {unit}s recovered from a generator that sees no context" if n_recovered else ""
    if share is None:
        return f"no {unit} stood in any context, so nothing could be echoed"
    return "" if share >= LEAST_ECHOED_SHARE else f"an echo shows {share:.2f} of the {unit}s in context"


def require_controls(table: pd.DataFrame) -> None:
    """Raise GateError, naming each, where a control failed: the scores of such a run say nothing."""
    faults = list(_faults(table))
    if faults:
        raise GateError("the hook audit is not reported, since a control failed: " + "; ".join(faults))


def _faults(table: pd.DataFrame) -> Iterator[str]:
    for row in table.to_dict("records"):
        if not row["passed"]:
            yield f"{row['control']}, attack {row['attack']}: {row['reason']}"
