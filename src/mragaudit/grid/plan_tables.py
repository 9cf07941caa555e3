"""The plan as a table: every nominal cell, what it spent, and which stand for one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from mragaudit.records.grid import Cell, CellUse
from mragaudit.tables.frames import Row, frame

SPENT = ("n_target_calls", "n_attacker_calls", "n_attacker_failed", "n_not_evaluated")
COLUMNS = (
    *("cell_id", "purpose", "corpus", "realisation", "seed", "mode", "arm", "attack", "same_as", "budget"),
    *SPENT,
    "attack_counts",
)


def cells_table(cells: Sequence[Cell], uses: Mapping[str, CellUse]) -> pd.DataFrame:
    """Return one row a nominal cell; one that is another by construction has no calls of its own."""
    return frame((_row(cell, uses.get(cell.cell_id)) for cell in cells), COLUMNS)


def _row(cell: Cell, use: CellUse | None) -> Row:
    spent: Row = {} if use is None else {name: getattr(use, name) for name in SPENT}
    if use is not None:
        spent["attack_counts"] = " ".join(f"{name}={count}" for name, count in use.attack_counts.items())
    return {**{name: getattr(cell, name) for name in COLUMNS[:10]}, **spent}
