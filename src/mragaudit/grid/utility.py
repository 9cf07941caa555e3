"""What a defense costs: benign questions answered, their documents retrieved, questions refused."""

from __future__ import annotations

import pandas as pd

from mragaudit.grid.cells import BENIGN
from mragaudit.grid.resampling import Resampling, scope_of
from mragaudit.grid.rows import GridRows, Group, calls_per_cell, groups
from mragaudit.grid.seed_tests import SEED_COLUMNS, holm_within, seed_cells
from mragaudit.records.grid import BenignOutcome, Cell
from mragaudit.stats.intervals import conditional_rate, document_rate
from mragaudit.stats.paired import count_pairs, paired_difference
from mragaudit.tables.frames import Row, frame, interval_cells

COLUMNS = (
    *("corpus", "mode", "arm", "n_seeds", "calls_per_cell", "k", "n_questions", "n_answered", "n_not_evaluated"),
    *("rate", "ci_low", "ci_high", "ci_method", "difference", "difference_ci_low", "difference_ci_high"),
    *("difference_ci_method", "n_retrieved", "recall_at_k", "recall_ci_low", "recall_ci_high", "recall_ci_method"),
    *("n_refused", "refusal_rate", "refusal_ci_low", "refusal_ci_high", "refusal_ci_method", "ci_scope"),
    *SEED_COLUMNS,
)


def utility_table(rows: GridRows, *, k: int, resampling: Resampling) -> pd.DataFrame:
    """Return one row an arm; `difference` compares the same questions with and without the defense.

    The test over seeds is of the answered share, two-sided; Holm's correction is over all rows.
    """
    made = [_row(group, rows, k, resampling) for group in groups(rows.cells, purpose="grid", keep=BENIGN.__eq__)]
    return frame(holm_within(made, family=[""] * len(made)), COLUMNS)


def _row(group: Group, rows: GridRows, k: int, resampling: Resampling) -> Row:
    asked = [row for cell in group.cells for row in rows.benign.get(cell.cell_id, ())]
    known = [row for row in asked if row.not_evaluated is None]
    confidence = resampling.confidence
    answered = document_rate(sum(row.answered for row in known), len(known), confidence=confidence)
    retrieved = [row.gold_rank is not None for row in asked]
    recall = document_rate(sum(retrieved), len(asked), confidence=confidence)
    refused = conditional_rate(sum(row.refused for row in known), len(known), confidence=confidence)
    return {
        "corpus": group.corpus,
        "mode": group.mode,
        "arm": group.arm,
        "n_seeds": len({cell.seed for cell in group.cells}),
        "calls_per_cell": calls_per_cell(group.cells, rows),
        "k": k,
        "n_questions": len(asked),
        "n_answered": sum(row.answered for row in known),
        "n_not_evaluated": len(asked) - len(known),
        **interval_cells(answered),
        "ci_method": answered.method,
        **_difference_cells(group, rows, resampling),
        "n_retrieved": sum(retrieved),
        **interval_cells(recall, prefix="recall_", rate="recall_at_k"),
        "recall_ci_method": recall.method,
        "n_refused": sum(row.refused for row in asked),
        **interval_cells(refused, prefix="refusal_", rate="refusal_rate"),
        "refusal_ci_method": refused.method,
        "ci_scope": scope_of(answered.method or recall.method),
        **seed_cells(
            [_answered_share(cell, rows) for cell in group.baseline],
            [_answered_share(cell, rows) for cell in group.cells],
        ),
    }


def _answered_share(cell: Cell, rows: GridRows) -> float | None:
    known = [row.answered for row in rows.benign.get(cell.cell_id, ()) if row.not_evaluated is None]
    return sum(known) / len(known) if known else None


def _difference_cells(group: Group, rows: GridRows, resampling: Resampling) -> Row:
    pairs = [
        (row.answered, before[_name(row)].answered)
        for cell, other in zip(group.cells, group.baseline, strict=False)
        for before in [{_name(one): one for one in rows.benign.get(other.cell_id, ()) if one.not_evaluated is None}]
        for row in rows.benign.get(cell.cell_id, ())
        if row.not_evaluated is None and _name(row) in before
    ]
    if not pairs:
        return {}
    found = paired_difference(
        count_pairs([after for after, _ in pairs], [before for _, before in pairs]),
        generator=resampling.generator(),
        resamples=resampling.resamples,
        confidence=resampling.confidence,
    )
    return {
        **interval_cells(found, prefix="difference_", rate="difference"),
        "difference_ci_method": found.method,
    }


def _name(row: BenignOutcome) -> tuple[str, str]:
    return row.doc_id, row.question
