"""The plan as a table: every nominal cell, what it spent, and which stand for one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from mragaudit.records.grid import Cell, CellUse
from mragaudit.tables.frames import Row, frame

COLUMNS = (
    *("cell_id", "purpose", "corpus", "realisation", "seed", "mode", "arm", "attack", "same_as", "budget"),
    *("n_target_calls", "n_attacker_calls", "n_attacker_failed", "n_not_evaluated"),
)


def cells_table(cells: Sequence[Cell], uses: Mapping[str, CellUse]) -> pd.DataFrame:
    """Return one row a nominal cell; one that is another by construction has no calls of its own."""
    return frame((_row(cell, uses.get(cell.cell_id)) for cell in cells), COLUMNS)


def _row(cell: Cell, use: CellUse | None) -> Row:
    spent = {} if use is None else {name: getattr(use, name) for name in COLUMNS[-4:]}
    return {**{name: getattr(cell, name) for name in COLUMNS[:10]}, **spent}
