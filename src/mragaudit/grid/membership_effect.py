"""Membership inference by arm: the signed AUC, its control, and whether the target was retrieved at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mragaudit.grid.cells import MEMBERSHIP
from mragaudit.grid.resampling import Resampling
from mragaudit.grid.rows import GridRows, Group, groups
from mragaudit.hookaudit.predictions import Effect
from mragaudit.records.grid import CandidateScore
from mragaudit.stats.auc import folded_auc, pairwise_auc, true_positive_rate
from mragaudit.stats.auc_difference import auc_difference
from mragaudit.stats.intervals import document_rate
from mragaudit.tables.frames import Row, frame, interval_cells

METRIC = "mi_auc"
FPR_SHARE = 0.05
SMALL_FPR_SHARE = 0.01
COLUMNS = (
    *("corpus", "mode", "arm", "n_seeds", "n_members", "n_non_members", "n_not_evaluated"),
    *("auc", "auc_ci_low", "auc_ci_high", "ci_method"),
    *("folded_auc", "folded_null_median", "folded_null_high", "folded_p", "folded_p_method"),
    *("control_auc", "control_ci_low", "control_ci_high", "beyond_control", "beyond_ci_low", "beyond_ci_high"),
    *("tpr_at_5_fpr", "tpr_5_ci_low", "tpr_5_ci_high", "tpr_at_1_fpr", "tpr_1_ci_low", "tpr_1_ci_high", "tpr_note"),
    *("n_targets", "n_targets_retrieved", "recall_of_target", "recall_ci_low", "recall_ci_high", "recall_ci_method"),
)


def membership_table(rows: GridRows, *, resampling: Resampling) -> pd.DataFrame:
    """Return one row an arm; scores of several seeds stand together, each standardised within its own cell.

    `control_auc` is the AUC of undefended replies cut and masked to the arm's shape, `beyond_control` what the
    arm's AUC moves beyond that: the part that is not due to the shape of the replies.
    """
    made = [_row(group, rows, resampling) for group in groups(rows.cells, purpose="grid", keep=MEMBERSHIP.__eq__)]
    return frame(made, COLUMNS)


def auc_effect(group: Group, rows: GridRows, *, label: str, resampling: Resampling) -> Effect:
    """Return how far an arm moves the AUC, over candidates with a score in both arms."""
    pairs = list(_paired(group, rows))
    known = [(member, old, new) for member, old, new in pairs if old is not None and new is not None]
    interval, before, after = _difference(known, resampling)
    return Effect(
        defense=group.arm,
        attack=group.attack,
        metric=METRIC,
        cell=label,
        baseline=before,
        defended=after,
        difference=interval[0],
        ci_low=interval[1],
        ci_high=interval[2],
        ci_method=interval[3],
        n=len(known) if interval[0] is not None else 0,
        n_not_evaluated=len(pairs) - len(known),
        identical=interval[0] == 0.0 and all(old == new for _, old, new in known),
    )


def _paired(group: Group, rows: GridRows) -> Iterator[tuple[bool, float | None, float | None]]:
    """Yield, for every candidate of both arms, whether it is a member, its score without and with the defense."""
    for cell, other in zip(group.cells, group.baseline, strict=True):
        before = {row.doc_id: row for row in rows.candidates.get(other.cell_id, ())}
        for row in rows.candidates.get(cell.cell_id, ()):
            old = before.get(row.doc_id)
            yield row.member, old.score if old else None, row.score


_Limits = tuple[float | None, float | None, float | None, str]


def _difference(
    known: Sequence[tuple[bool, float, float]], resampling: Resampling
) -> tuple[_Limits, float | None, float | None]:
    members = np.array([(old, new) for member, old, new in known if member]).reshape(-1, 2)
    others = np.array([(old, new) for member, old, new in known if not member]).reshape(-1, 2)
    found = auc_difference(
        members,
        others,
        generator=resampling.generator(),
        resamples=resampling.resamples,
        confidence=resampling.confidence,
    )
    if found.rate is None:
        return (None, None, None, ""), None, None
    before, after = (
        pairwise_auc(members[:, at], others[:, at], generator=resampling.generator(), resamples=1).auc.rate
        for at in (0, 1)
    )
    return (found.rate, found.low, found.high, found.method), before, after


def _row(group: Group, rows: GridRows, resampling: Resampling) -> Row:
    scored = [row for cell in group.cells for row in rows.candidates.get(cell.cell_id, ())]
    own = _sides(scored, "score")
    found = pairwise_auc(
        *own,
        generator=resampling.generator(),
        resamples=resampling.resamples,
        confidence=resampling.confidence,
    )
    return {
        "corpus": group.corpus,
        "mode": group.mode,
        "arm": group.arm,
        "n_seeds": len({cell.seed for cell in group.cells}),
        "n_members": found.n_members,
        "n_non_members": found.n_non_members,
        "n_not_evaluated": found.members_not_evaluated + found.non_members_not_evaluated,
        **interval_cells(found.auc, prefix="auc_", rate="auc"),
        "ci_method": found.auc.method,
        **_folded_cells(own, resampling),
        **_control_cells(scored, resampling),
        **_tpr_cells(own, resampling),
        **_recall_cells(scored, resampling),
    }


def _sides(scored: Sequence[CandidateScore], field: str) -> tuple[list[float | None], list[float | None]]:
    members = [getattr(row, field) for row in scored if row.member]
    return members, [getattr(row, field) for row in scored if not row.member]


def _folded_cells(own: tuple[list[float | None], list[float | None]], resampling: Resampling) -> Row:
    found = folded_auc(*own, generator=resampling.generator())
    if found is None:
        return {}
    return {
        "folded_auc": found.auc,
        "folded_null_median": found.null_median,
        "folded_null_high": found.null_high,
        "folded_p": found.p_value,
        "folded_p_method": "label_permutation_exact" if found.exact else "label_permutation_drawn",
    }


def _control_cells(scored: Sequence[CandidateScore], resampling: Resampling) -> Row:
    found = pairwise_auc(
        *_sides(scored, "control_score"),
        generator=resampling.generator(),
        resamples=resampling.resamples,
        confidence=resampling.confidence,
    )
    both = [
        (row.member, row.control_score, row.score)
        for row in scored
        if row.score is not None and row.control_score is not None
    ]
    beyond = _difference(both, resampling)[0]
    return {
        **interval_cells(found.auc, prefix="control_", rate="control_auc"),
        "beyond_control": beyond[0],
        "beyond_ci_low": beyond[1],
        "beyond_ci_high": beyond[2],
    }


def _tpr_cells(own: tuple[list[float | None], list[float | None]], resampling: Resampling) -> Row:
    five = true_positive_rate(*own, fpr_share=FPR_SHARE, confidence=resampling.confidence)
    one = true_positive_rate(*own, fpr_share=SMALL_FPR_SHARE, confidence=resampling.confidence)
    return {
        **interval_cells(five.tpr, prefix="tpr_5_", rate="tpr_at_5_fpr"),
        **interval_cells(one.tpr, prefix="tpr_1_", rate="tpr_at_1_fpr"),
        "tpr_note": "; ".join(reason for reason in (five.reason, one.reason) if reason),
    }


def _recall_cells(scored: Sequence[CandidateScore], resampling: Resampling) -> Row:
    targets = [row.retrieved for row in scored if row.retrieved is not None]
    interval = document_rate(sum(targets), len(targets), confidence=resampling.confidence)
    return {
        "n_targets": len(targets),
        "n_targets_retrieved": sum(targets),
        **interval_cells(interval, prefix="recall_", rate="recall_of_target"),
        "recall_ci_method": interval.method,
    }
