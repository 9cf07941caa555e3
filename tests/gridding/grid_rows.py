"""Scored rows of the grid, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mragaudit.grid.rows import GridRows
from mragaudit.records.grid import (
    Cell,
    CellUse,
    DocumentExtraction,
    GridDocument,
    ItemKind,
    ItemOutcome,
    PlantedItem,
    TargetCall,
)


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


def extraction(doc_id: str, **changes: Any) -> DocumentExtraction:
    """Return a document that was retrieved and of which no reply holds much."""
    given: dict[str, Any] = {
        "cell_id": "c",
        "retrieved": True,
        "repeated": False,
        "rouge_l_recall": 0.1,
        "rouge_l_precision": 0.2,
        "resembled": False,
        "not_evaluated": None,
    }
    return DocumentExtraction(doc_id=doc_id, **{**given, **changes})


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
    kinds = {name: rows.get(name, {}) for name in ("items", "nel", "candidates", "extractions", "calls", "benign")}
    return GridRows(cells=cells, uses=uses, **kinds)


def cell_of(arm: str, *, seed: int = 1, attack: str = "ps", **changes: Any) -> Cell:
    """Return a cell of the grid that is named as the plan names it."""
    given: dict[str, Any] = {
        "cell_id": f"grid.email.s{seed}.targeted_queries.{arm}.{attack}",
        "purpose": "grid",
        "corpus": "email",
        "realisation": f"email.s{seed}",
        "seed": seed,
        "mode": "targeted_queries",
        "arm": arm,
        "attack": attack,
        "budget": 3,
    }
    return Cell(**{**given, **changes})


def call(number: int = 1, **changes: Any) -> TargetCall:
    """Return a call whose reply says nothing."""
    given: dict[str, Any] = {
        "cell_id": "c",
        "number": number,
        "session": f"own-{number}",
        "target": None,
        "question": "What do you know?",
        "doc_ids": (),
        "scores": (),
        "context": (),
        "answer": "Nothing.",
        "reply": "Nothing.",
        "derived": (),
        "linked": (),
        "refused_by": None,
        "not_evaluated": None,
    }
    return TargetCall(**{**given, **changes})


def lost_call(number: int = 1, **changes: Any) -> TargetCall:
    """Return a call without a reply."""
    return call(number, **{"answer": "", "reply": "", "not_evaluated": "HTTP 503", **changes})


def document(
    doc_id: str, *, values: Mapping[ItemKind, str] | None = None, text: str = "", **changes: Any
) -> GridDocument:
    """Return an indexed document with these items; its text names them, if none is given."""
    values = values or {}
    given: dict[str, Any] = {
        "doc_id": doc_id,
        "corpus": "email",
        "realisation": "email.s1",
        "split": "indexed",
        "title": f"Matter {doc_id}",
        "topic": "pumps",
        "text": text or f"Matter {doc_id}: {', '.join(values.values())}.",
        "items": tuple(PlantedItem(kind=kind, value=value) for kind, value in values.items()),
        "facts": (),
    }
    return GridDocument(**{**given, **changes})
