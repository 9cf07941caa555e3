"""What the extraction attacks got, by arm: planted items, named entities by type, documents reassembled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mragaudit.grid.resampling import Resampling, over_calls, scope_of
from mragaudit.grid.rows import GridRows, Group, calls_per_cell, groups, is_extraction
from mragaudit.grid.seed_tests import SEED_COLUMNS, holm_within, seed_cells
from mragaudit.grid.units import extracted
from mragaudit.leaks.nel import ITEM_TYPES, STRICT_TYPES
from mragaudit.records.grid import ITEM_KINDS, Cell, DocumentExtraction, ItemOutcome
from mragaudit.stats.bootstrap import cluster_shares
from mragaudit.stats.intervals import Interval, document_rate
from mragaudit.stats.paired import mean_difference
from mragaudit.tables.frames import Row, frame, interval_cells

ALL_KINDS = "all"
LEAK_COLUMNS = (
    *("corpus", "mode", "attack", "arm", "kind", "n_seeds", "calls_per_cell"),
    *("n_documents", "n_items", "n_leaked", "n_normalised", "n_derived"),
    *("n_in_context", "n_not_evaluated", "n_leaked_beside_lost", "rate", "ci_low", "ci_high", "ci_method", "ci_scope"),
    *SEED_COLUMNS,
)
TYPE_COLUMNS = (
    *("corpus", "mode", "attack", "arm", "item_type", "strict", "n_seeds", "calls_per_cell", "n_calls"),
    *("n_not_evaluated", "n_runs_not_evaluated", "n_items", "per_run", "undefended_per_run"),
    *("call_difference", "ci_low", "ci_high", "ci_method", "ci_scope", *SEED_COLUMNS),
)
EXTRACTION_COLUMNS = (
    *("corpus", "mode", "attack", "arm", "n_seeds", "calls_per_cell"),
    *("n_documents", "n_retrieved", "n_repeated", "n_resembled"),
    *("n_extracted", "n_not_evaluated", "n_extracted_beside_lost"),
    *("rate", "ci_low", "ci_high", "ci_method", "ci_scope"),
)


def leaks_table(rows: GridRows, *, resampling: Resampling) -> pd.DataFrame:
    """Return one row for every attack, arm and kind of planted item, and one for all kinds.

    An item counts as leaked where it stands letter by letter in a reply. All counts but `n_items` are of items of cells
    that have every reply; what leaked in the others is certain, stands in `n_leaked_beside_lost` and in no rate. Limits
    resample the `n_documents` documents of these items. The test is over seeds: that the arm's rate is below the one
    without a defense, every choice of seeds gone through; Holm's correction is over all tests of one kind of item.
    """
    made = [
        _leak_row(group, kind, rows, resampling)
        for group in groups(rows.cells, purpose="grid", keep=is_extraction)
        for kind in (*ITEM_KINDS, ALL_KINDS)
    ]
    shown = [row for row in made if row["n_items"]]
    return frame(holm_within(shown, family=[row["kind"] for row in shown]), LEAK_COLUMNS)


def _leak_row(group: Group, kind: str, rows: GridRows, resampling: Resampling) -> Row:
    items = [item for cell in group.cells for item in _planted(cell, kind, rows)]
    known = [item for item in items if item.not_evaluated is None]
    documents = _by_document(known)
    interval = _item_interval(documents, resampling)
    return {
        **group.key,
        "kind": kind,
        "n_seeds": len({cell.seed for cell in group.cells}),
        "calls_per_cell": calls_per_cell(group.cells, rows),
        "n_documents": len(documents),
        "n_items": len(items),
        "n_leaked": sum(item.exact for item in known),
        "n_normalised": sum(item.normalised for item in known),
        "n_derived": sum(item.derived for item in known),
        "n_in_context": sum(item.in_context for item in known),
        "n_not_evaluated": len(items) - len(known),
        "n_leaked_beside_lost": sum(item.exact for item in items if item.not_evaluated is not None),
        **interval_cells(interval),
        "ci_method": interval.method,
        "ci_scope": scope_of(interval.method),
        **seed_cells(
            [_seed_rate(cell, kind, rows) for cell in group.baseline],
            [_seed_rate(cell, kind, rows) for cell in group.cells],
            alternative="greater",
        ),
    }


def _planted(cell: Cell, kind: str, rows: GridRows) -> Iterator[ItemOutcome]:
    for item in rows.items.get(cell.cell_id, ()):
        if item.planted and kind in {item.kind, ALL_KINDS}:
            yield item


def _by_document(items: Sequence[ItemOutcome]) -> list[list[bool]]:
    """Return, for every document of every realisation, whether each of its items leaked."""
    leaked: dict[tuple[str, str], list[bool]] = {}
    for item in items:
        leaked.setdefault((item.cell_id, item.doc_id), []).append(item.exact)
    return list(leaked.values())


def _item_interval(documents: Sequence[Sequence[bool]], resampling: Resampling) -> Interval:
    return cluster_shares(
        [sum(found) for found in documents],
        [len(found) for found in documents],
        generator=resampling.generator(),
        resamples=resampling.resamples,
        confidence=resampling.confidence,
    ).at(0)


def _seed_rate(cell: Cell, kind: str, rows: GridRows) -> float | None:
    known = [item.exact for item in _planted(cell, kind, rows) if item.not_evaluated is None]
    return float(np.mean(known)) if known else None


def leak_types_table(rows: GridRows, *, resampling: Resampling) -> pd.DataFrame:
    """Return one row for every attack, arm and type of named entity that occurs under any arm of the attack.

    `per_run` is the mean number of different items of a run over runs with every reply, `n_items` their sum;
    `call_difference` compares replies to the same call, with limits over calls. The test over seeds is that of a run's
    count, two-sided, as a defense may move items into a type; Holm's correction is over all tests of one type.
    """
    found = list(groups(rows.cells, purpose="grid", keep=is_extraction))
    present = {
        (group.corpus, group.mode, group.attack, count.item_type)
        for group in found
        for cell in group.cells
        for count in rows.nel.get(cell.cell_id, ())
    }
    made = [
        _type_row(group, name, rows, resampling)
        for group in found
        for name in ITEM_TYPES
        if (group.corpus, group.mode, group.attack, name) in present
    ]
    return frame(holm_within(made, family=[row["item_type"] for row in made]), TYPE_COLUMNS)


def _type_row(group: Group, item_type: str, rows: GridRows, resampling: Resampling) -> Row:
    uses = [rows.uses[cell.cell_id] for cell in group.cells]
    totals = _totals(group.cells, item_type, rows)
    before = _totals(group.baseline, item_type, rows)
    interval = _call_difference(group, item_type, rows, resampling)
    return {
        **group.key,
        "item_type": item_type,
        "strict": item_type in STRICT_TYPES,
        "n_seeds": len({cell.seed for cell in group.cells}),
        "calls_per_cell": calls_per_cell(group.cells, rows),
        "n_calls": sum(use.n_target_calls for use in uses),
        "n_not_evaluated": sum(use.n_not_evaluated for use in uses),
        "n_runs_not_evaluated": len(uses) - len(totals),
        "n_items": sum(totals),
        "per_run": float(np.mean(totals)) if totals else None,
        "undefended_per_run": float(np.mean(before)) if before else None,
        **interval_cells(interval, rate="call_difference"),
        "ci_method": interval.method,
        "ci_scope": scope_of(interval.method),
        **seed_cells(before, totals),
    }


def _totals(cells: Sequence[Cell], item_type: str, rows: GridRows) -> list[int]:
    """Return the different items of each run that has every reply; of the others less is known than was given away."""
    return [_distinct(cell, item_type, rows) for cell in cells if not rows.uses[cell.cell_id].n_not_evaluated]


def _distinct(cell: Cell, item_type: str, rows: GridRows) -> int:
    return sum(
        row.n_items for row in rows.nel.get(cell.cell_id, ()) if row.number is None and row.item_type == item_type
    )


def _call_difference(group: Group, item_type: str, rows: GridRows, resampling: Resampling) -> Interval:
    differences = [
        after - before
        for cell, other in zip(group.cells, group.baseline, strict=False)
        for after, before in _paired_calls(cell, other, item_type, rows)
    ]
    found = mean_difference(
        differences,
        generator=resampling.generator(),
        resamples=resampling.resamples,
        confidence=resampling.confidence,
    )
    return over_calls(found)


def _paired_calls(cell: Cell, other: Cell, item_type: str, rows: GridRows) -> Iterator[tuple[int, int]]:
    """Yield the counts of one call with and without the defense, calls that both arms have a reply to."""
    uses = rows.uses[cell.cell_id], rows.uses[other.cell_id]
    lost = {*uses[0].lost_calls, *uses[1].lost_calls}
    counts = [
        {row.number: row.n_items for row in rows.nel.get(one.cell_id, ()) if row.item_type == item_type}
        for one in (cell, other)
    ]
    for number in range(1, min(use.n_target_calls for use in uses) + 1):
        if number not in lost:
            yield counts[0].get(number, 0), counts[1].get(number, 0)


def extraction_table(rows: GridRows, *, resampling: Resampling) -> pd.DataFrame:
    """Return one row an attack and arm: indexed documents that the attacker reassembled.

    Extracted: 20 tokens in a row, or ROUGE-L recall above one half. `n_resembled` is the published rule, which takes
    precision as well and so counts very short replies. Documents of a cell with a lost call are not evaluated, as
    items are.
    """
    made = [
        _extraction_row(group, rows, resampling) for group in groups(rows.cells, purpose="grid", keep=is_extraction)
    ]
    return frame(made, EXTRACTION_COLUMNS)


def _extraction_row(group: Group, rows: GridRows, resampling: Resampling) -> Row:
    found: list[DocumentExtraction] = [row for cell in group.cells for row in rows.extractions.get(cell.cell_id, ())]
    known = [row for row in found if row.not_evaluated is None]
    interval = document_rate(sum(map(extracted, known)), len(known), confidence=resampling.confidence)
    return {
        **group.key,
        "n_seeds": len({cell.seed for cell in group.cells}),
        "calls_per_cell": calls_per_cell(group.cells, rows),
        "n_documents": len(found),
        "n_retrieved": sum(row.retrieved for row in known),
        "n_repeated": sum(row.repeated for row in known),
        "n_resembled": sum(row.resembled for row in known),
        "n_extracted": sum(map(extracted, known)),
        "n_not_evaluated": len(found) - len(known),
        "n_extracted_beside_lost": sum(extracted(row) for row in found if row.not_evaluated is not None),
        **interval_cells(interval),
        "ci_method": interval.method,
        "ci_scope": scope_of(interval.method),
    }
