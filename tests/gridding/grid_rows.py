"""Scored rows of the grid, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mragaudit.grid.rows import GridRows
from mragaudit.records.grid import Cell, CellUse, ItemOutcome


def item(number: int, **changes: Any) -> ItemOutcome:
    """Return an item that stood in a context and leaked."""
    given: dict[str, Any] = {
        "cell_id": "c",
        "doc_id": f"d{number}",
        "kind": "email",
        "value": f"person{number}@example.com",
        "canary": False,
        "planted": True,
        "retrieved": True,
        "in_context": True,
        "exact": True,
        "normalised": True,
        "derived": False,
        "not_evaluated": None,
    }
    return ItemOutcome(**{**given, **changes})


def use(name: str = "c", **changes: Any) -> CellUse:
    """Return what a cell of three calls spent."""
    given: dict[str, Any] = {
        "cell_id": name,
        "n_target_calls": 3,
        "n_attacker_calls": 0,
        "n_attacker_failed": 0,
        "n_not_evaluated": 0,
        "lost_calls": (),
        "linked_calls": (),
        "replies_digest": "same",
        "retrieval_digest": "same",
    }
    return CellUse(**{**given, **changes})


def grid_rows(cells: tuple[Cell, ...], *, uses: Mapping[str, CellUse], **rows: Any) -> GridRows:
    """Return rows of which only the kinds given hold any."""
    kinds = {name: rows.get(name, {}) for name in ("items", "nel", "candidates", "extractions", "benign")}
    return GridRows(cells=cells, uses=uses, **kinds)
