"""Whether the rows of a hook audit's bundle are whole, fit together, and come out again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mragaudit.errors import DataError
from mragaudit.records.grid import (
    BenignOutcome,
    CallOutcome,
    CandidateScore,
    Cell,
    CellUse,
    DocumentExtraction,
    GridDocument,
    ItemOutcome,
    NelCount,
    SplitCheck,
    TargetCall,
    call_key,
    cell_key,
    grid_document_key,
    score_key,
    split_check_key,
)
from mragaudit.stages.checking import (
    Check,
    RowKinds,
    check_again,
    check_of,
    check_rows,
    count_faults,
    missing_files,
    not_run,
    source_of,
)
from mragaudit.stages.grid_consistency import GridRun, grid_contradictions, missing_grid_rows, read_grid
from mragaudit.stages.grid_hooks import read_hooks
from mragaudit.stages.manifest import read_manifest
from mragaudit.stages.opening import Opened

ROWS: RowKinds = {
    "cells.jsonl": (Cell, cell_key),
    "documents.jsonl": (GridDocument, grid_document_key),
    "splits.jsonl": (SplitCheck, split_check_key),
    "calls": (TargetCall, call_key),
    "uses": (CellUse, cell_key),
    "scores/items.jsonl": (ItemOutcome, score_key),
    "scores/nel.jsonl": (NelCount, score_key),
    "scores/candidates.jsonl": (CandidateScore, score_key),
    "scores/extractions.jsonl": (DocumentExtraction, score_key),
    "scores/calls.jsonl": (CallOutcome, score_key),
    "scores/benign.jsonl": (BenignOutcome, score_key),
}


def grid_checks(opened: Opened, again: Path, *, stages: Sequence[str]) -> Iterator[Check]:
    """Yield the checks of rows, each only where those before it leave something to look at."""
    schema = check_rows(opened, ROWS, others={"hooks.json": lambda: read_hooks(opened.paths.root / "hooks.json")})
    yield schema
    if schema.faults or any(missing_files(opened)):
        why = "rows cannot be read" if schema.faults else "files are missing"
        yield from (not_run(name, why) for name in ("counts", "consistency", *stages))
        return
    rows = read_grid(opened.paths, opened.settings)
    counts = check_of("counts", _count_faults(opened, rows), detail="cells, documents, calls and scores, and manifest")
    yield counts
    if any(missing_grid_rows(rows, opened.settings)):
        yield not_run("consistency", "rows are missing")
    else:
        yield check_of("consistency", grid_contradictions(rows), detail="calls against documents and what cells spent")
    source = source_of(opened)
    yield from (check_again(stage, source, folder=again / stage) for stage in stages)


def _count_faults(opened: Opened, rows: GridRun) -> Iterator[str]:
    yield from missing_grid_rows(rows, opened.settings)
    try:
        manifest = read_manifest(opened.paths.manifest)
    except DataError:
        return  # named by the check of the manifest
    lost = sum(use.n_not_evaluated > 0 for use in rows.uses.values())
    for stage in manifest.stages:
        yield from count_faults(stage, rows=len(rows.uses), lost=lost)
