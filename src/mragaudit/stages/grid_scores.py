"""Stage `grid_scores`: what every call of the grid gave away; no model is needed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mragaudit.attacks.common import load_common
from mragaudit.bundle.kinds import GRID_SCORES
from mragaudit.config import Settings
from mragaudit.grid.candidates import candidate_scores
from mragaudit.grid.cells import BENIGN, MEMBERSHIP, UNDEFENDED, cells_to_run
from mragaudit.grid.scoring import (
    CellCalls,
    benign_outcomes,
    call_outcomes,
    document_extractions,
    item_outcomes,
    nel_counts,
)
from mragaudit.leaks.nel import Lexicon, shipped_lexicon
from mragaudit.paths import RunPaths
from mragaudit.records.base import Record, iter_records, read_records, write_records
from mragaudit.records.grid import Cell, GridDocument, TargetCall, call_key, cell_key, grid_document_key, score_key
from mragaudit.resources import resource_folder
from mragaudit.stages.gates import require_same_ids
from mragaudit.stages.progress import counted

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Words:
    """Data by which replies are read."""

    lexicon: Lexicon
    refusals: tuple[str, ...]
    """Phrases of refusal, those that attackers know as well."""


def run(*, run_folder: Path, calls: Sequence[Path], settings: Settings) -> None:
    """Write `hook_audit/scores/*.jsonl`."""
    grid = RunPaths(run_folder).grid
    cells = read_cells(grid)
    given = calls_by_cell(cells, calls=calls, documents=grid.root / "documents.jsonl")
    rows: dict[str, list[Record]] = {kind: [] for kind in GRID_SCORES}
    words = _Words(
        lexicon=shipped_lexicon(settings.resources),
        refusals=load_common(resource_folder(settings.resources) / "attacks").refusals,
    )
    for one in counted(given.values(), total=len(given), label="grid_scores"):
        _score(one, given, rows, words=words)
    for kind in GRID_SCORES:
        write_records(grid.scores(kind), rows[kind], key=score_key)
    logger.info("grid_scores: %d cells, %d rows", len(given), sum(map(len, rows.values())))


def read_cells(grid: RunPaths) -> list[Cell]:
    """Return the cells that are run, sorted by id."""
    return cells_to_run(read_records(grid.root / "cells.jsonl", Cell, key=cell_key))


def calls_by_cell(cells: Sequence[Cell], *, calls: Iterable[Path], documents: Path) -> dict[str, CellCalls]:
    """Return every cell with its calls; raises GateError when a call belongs to no cell of today."""
    by_realisation: dict[str, list[GridDocument]] = {}
    for document in read_records(documents, GridDocument, key=grid_document_key):
        by_realisation.setdefault(document.realisation, []).append(document)
    made: dict[str, list[TargetCall]] = {cell.cell_id: [] for cell in cells}
    for path in calls:
        for call in iter_records(path, TargetCall):
            made.setdefault(call.cell_id, []).append(call)
    require_same_ids(expected=[cell.cell_id for cell in cells], actual=made, where="hook_audit/calls")
    return {
        cell.cell_id: CellCalls(
            cell=cell,
            calls=sorted(made[cell.cell_id], key=call_key),
            documents=by_realisation[cell.realisation],
        )
        for cell in cells
    }


def _score(one: CellCalls, every: dict[str, CellCalls], rows: dict[str, list[Record]], *, words: _Words) -> None:
    if one.cell.attack == BENIGN:
        rows["benign"] += benign_outcomes(one, refusals=words.refusals)
        return
    if one.cell.attack == MEMBERSHIP:
        rows["candidates"] += candidate_scores(one, undefended=_undefended(one.cell, every))
        return
    rows["items"] += item_outcomes(one)
    rows["nel"] += nel_counts(one, lexicon=words.lexicon)
    rows["extractions"] += document_extractions(one)
    rows["calls"] += call_outcomes(one, refusals=words.refusals)


def _undefended(cell: Cell, every: dict[str, CellCalls]) -> CellCalls | None:
    """Return the same attack on the same realisation without a defense; None for that cell itself."""
    alike = ("purpose", "realisation", "mode", "attack")
    for other in every.values():
        same = all(getattr(other.cell, name) == getattr(cell, name) for name in alike)
        if same and other.cell.arm == UNDEFENDED and cell.arm != UNDEFENDED:
            return other
    return None
