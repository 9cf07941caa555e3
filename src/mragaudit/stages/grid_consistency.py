"""Whether the rows of a grid can belong together: each function yields one line for every row that cannot.

Scores and tables are made again by `mragaudit verify`; here is what can be known of the calls, which need a model, from
the plan, the documents and the rows of what cells spent. No line holds a text or a planted value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mragaudit.config import Settings
from mragaudit.grid.cells import UNDEFENDED, cells_to_run, deal_cells
from mragaudit.grid.realisations import all_realisations, corpus_realisations
from mragaudit.journal import fingerprint
from mragaudit.paths import RunPaths
from mragaudit.rag.pipeline import REFUSAL
from mragaudit.records.base import read_records
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
    Score,
    Split,
    SplitCheck,
    TargetCall,
    call_key,
    cell_key,
    grid_document_key,
    score_key,
    split_check_key,
)

SCORES: dict[str, type[Score]] = {
    "items": ItemOutcome,
    "nel": NelCount,
    "candidates": CandidateScore,
    "extractions": DocumentExtraction,
    "calls": CallOutcome,
    "benign": BenignOutcome,
}


class GridRun(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of a grid."""

    cells: dict[str, Cell]
    """Those that are run."""
    documents: dict[str, dict[str, GridDocument]]
    """Realisation → id → document."""
    splits: tuple[SplitCheck, ...]
    calls: dict[str, list[TargetCall]]
    """Cell → its calls in their order."""
    uses: dict[str, CellUse]
    shards: dict[str, str]
    """Cell → shard in whose files it stands."""
    scored: dict[str, Counter[str]]
    """Kind of scores → cell → rows."""


def read_grid(grid: RunPaths, settings: Settings) -> GridRun:
    """Return all rows of a grid; raises DataError for a row that is none of its schema."""
    run = cells_to_run(read_records(grid.root / "cells.jsonl", Cell, key=cell_key))
    documents: dict[str, dict[str, GridDocument]] = {}
    for document in read_records(grid.root / "documents.jsonl", GridDocument, key=grid_document_key):
        documents.setdefault(document.realisation, {})[document.doc_id] = document
    calls: dict[str, list[TargetCall]] = {}
    uses: dict[str, CellUse] = {}
    shards: dict[str, str] = {}
    for name in settings.shard_names:
        [of_calls], [of_uses] = (grid.shards(folder, [name]) for folder in ("calls", "uses"))
        for call in sorted(read_records(of_calls, TargetCall, key=call_key), key=call_key):
            calls.setdefault(call.cell_id, []).append(call)
        for use in read_records(of_uses, CellUse, key=cell_key):
            uses[use.cell_id] = use
            shards[use.cell_id] = name
    return GridRun(
        cells={cell.cell_id: cell for cell in run},
        documents=documents,
        splits=tuple(read_records(grid.root / "splits.jsonl", SplitCheck, key=split_check_key)),
        calls=calls,
        uses=uses,
        shards=shards,
        scored={kind: _counted(grid, kind) for kind in SCORES},
    )


def _counted(grid: RunPaths, kind: str) -> Counter[str]:
    return Counter(row.cell_id for row in read_records(grid.scores(kind), SCORES[kind], key=score_key))


def missing_grid_rows(rows: GridRun, settings: Settings) -> Iterator[str]:
    """Yield what is lost, doubled or invented between the plan, the documents, the calls and the scores."""
    yield from _missing_documents(rows, settings)
    yield from _other_names("uses", rows.uses, expected=rows.cells)
    yield from _other_names("calls", rows.calls, expected=rows.cells, may_lack=True)
    for kind, counted in rows.scored.items():
        yield from _other_names(f"scores/{kind}", counted, expected=rows.cells, may_lack=True)
    dealt = deal_cells(rows.cells.values(), n_shards=settings.shards)
    for name in sorted(rows.cells.keys() & rows.uses.keys()):
        yield from _miscounted(rows.cells[name], rows, shard=dealt[name])


def _missing_documents(rows: GridRun, settings: Settings) -> Iterator[str]:
    grid = settings.hook_audit
    asked = {one.name: one for one in all_realisations(grid)}
    yield from _other_names("documents", rows.documents, expected=asked)
    splits = {check.realisation: check for check in rows.splits}
    yield from _other_names("splits", splits, expected={one.name: one for one in corpus_realisations(grid)})
    for name in sorted(asked.keys() & rows.documents.keys()):
        planted = asked[name].canary_class is not None
        sizes: dict[Split, int] = {
            "indexed": grid.canaries.per_seed if planted else grid.indexed,
            "held_out": grid.canaries.held_out if planted else grid.held_out,
        }
        found = Counter(document.split for document in rows.documents[name].values())
        for split, size in sizes.items():
            if found[split] != size:
                yield f"documents: the config asks for {size} {split} of {name}, here are {found[split]}"


def _other_names(what: str, found: Iterable[str], *, expected: Iterable[str], may_lack: bool = False) -> Iterator[str]:
    given, wanted = set(found), set(expected)
    for name in sorted(given - wanted):
        yield f"{what}: {name} stands here and is not in the plan"
    for name in sorted(wanted - given) if not may_lack else ():
        yield f"{what}: {name} is missing"


def _miscounted(cell: Cell, rows: GridRun, *, shard: str) -> Iterator[str]:
    """Yield what of a cell's calls cannot be: their numbers, how many there are, and in which shard they stand."""
    calls, use = rows.calls.get(cell.cell_id, []), rows.uses[cell.cell_id]
    numbers = [call.number for call in calls]
    if numbers != list(range(1, use.n_target_calls + 1)):
        lost = sorted(set(range(1, use.n_target_calls + 1)) - set(numbers))
        named = f"call {lost[0]} is missing" if lost else f"here are {len(numbers)}"
        yield f"calls: cell {cell.cell_id} made {use.n_target_calls} calls; {named}"
    if use.n_target_calls > cell.budget:
        yield f"uses: cell {cell.cell_id} made {use.n_target_calls} calls; its budget is {cell.budget}"
    if rows.shards[cell.cell_id] != shard:
        yield f"uses: cell {cell.cell_id} stands in shard {rows.shards[cell.cell_id]} and belongs to {shard}"


def grid_contradictions(rows: GridRun) -> Iterator[str]:
    """Yield every call that contradicts the documents or itself, and every cell whose use is not that of its calls."""
    for name, cell in rows.cells.items():
        calls = rows.calls.get(name, [])
        yield from _wrong_use(rows.uses[name], calls)
        documents = rows.documents.get(cell.realisation, {})
        for call in calls:
            yield from (f"calls: call {call.number} of {name}: {fault}" for fault in _wrong_call(call, cell, documents))


def _wrong_use(use: CellUse, calls: Sequence[TargetCall]) -> Iterator[str]:
    lost = tuple(call.number for call in calls if call.not_evaluated is not None)
    found = {
        "n_not_evaluated": len(lost),
        "lost_calls": lost,
        "linked_calls": tuple(call.number for call in calls if call.linked),
        "replies_digest": fingerprint([[call.reply, *call.derived] for call in calls]),
        "retrieval_digest": fingerprint([list(call.doc_ids) for call in calls]),
    }
    for field, value in found.items():
        if getattr(use, field) != value:
            yield f"uses: {field} of cell {use.cell_id} is not that of its calls"


def _wrong_call(call: TargetCall, cell: Cell, documents: dict[str, GridDocument]) -> Iterator[str]:
    indexed = {name for name, document in documents.items() if document.split == "indexed"}
    if len(set(call.doc_ids)) != len(call.doc_ids) or not indexed.issuperset(call.doc_ids):
        yield "it retrieved a document twice, or one that is not indexed"
        return
    if len(call.scores) != len(call.doc_ids) or len(call.context) != len(call.doc_ids):
        yield "scores and context are not as many as the documents"
    if call.target is not None and call.target not in documents:
        yield "the document that it is about is not of its realisation"
    if (call.refused_by is not None and call.answer) or (call.not_evaluated is not None and call.answer + call.reply):
        yield "it was refused or got no reply, and has one"
    if call.refused_by is not None and call.not_evaluated is None and call.reply != REFUSAL:
        yield "it was refused, and its reply is not the refusal"
    if cell.arm == UNDEFENDED:
        yield from _touched(call, documents)


def _touched(call: TargetCall, documents: dict[str, GridDocument]) -> Iterator[str]:
    """Yield what an undefended pipeline cannot have done: another context, another reply."""
    if call.context != tuple(documents[name].text for name in call.doc_ids):
        yield "no defense was there, and its context is not the text of its documents"
    if call.not_evaluated is None and call.refused_by is None and call.reply != call.answer:
        yield "no defense was there, and the reply is not what the model wrote"
