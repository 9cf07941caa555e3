"""Membership inference: one row a cell, with its nuisance control and the recall of the target beside it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mragaudit.errors import DataError
from mragaudit.grid.recovery import count_share
from mragaudit.grid.resampling import Resampling
from mragaudit.records.grid import CandidateScore, Cell, SplitCheck
from mragaudit.records.grid_findings import MembershipRow
from mragaudit.stats.auc import auc_difference, folded_auc, pairwise_auc, true_positive_rate

HIGHER_FPR, LOWER_FPR = 0.05, 0.01


def membership_row(
    cell: Cell,
    scores: Sequence[CandidateScore],
    *,
    check: SplitCheck,
    resampling: Resampling,
) -> MembershipRow:
    """Return what the scores of one cell say about membership.

    On a rejected split an AUC would show the split and not the system: such a row has counts and recall alone.
    Raises DataError when the check is of another realisation, or when the cell has no score.
    """
    if check.realisation != cell.realisation:
        raise DataError(f"cell {cell.cell_id} is of {cell.realisation}, its split check of {check.realisation}")
    if not scores:
        raise DataError(f"cell {cell.cell_id} has no score of a candidate; run its scoring")
    row = _counts(cell, scores, check=check, confidence=resampling.confidence)
    if check.verdict == "rejected":
        return row
    return _with_numbers(row, scores, resampling=resampling)


def _sides(scores: Sequence[CandidateScore]) -> tuple[list[CandidateScore], list[CandidateScore]]:
    # Sorted, so that the resamples do not depend on the order of rows.
    rows = sorted(scores, key=lambda row: row.doc_id)
    return [row for row in rows if row.member], [row for row in rows if not row.member]


def _counts(cell: Cell, scores: Sequence[CandidateScore], *, check: SplitCheck, confidence: float) -> MembershipRow:
    members, others = _sides(scores)
    missing = [sum(row.score is None for row in side) for side in (members, others)]
    return MembershipRow(
        cell_id=cell.cell_id,
        corpus=cell.corpus,
        seed=cell.seed,
        mode=cell.mode,
        arm=cell.arm,
        split=check.verdict,
        n_members=len(members) - missing[0],
        n_non_members=len(others) - missing[1],
        members_not_evaluated=missing[0],
        non_members_not_evaluated=missing[1],
        recall=count_share(
            members,
            lambda row: row.retrieved is True,
            unknown=lambda row: row.retrieved is None,
            confidence=confidence,
        ),
    )


def _with_numbers(row: MembershipRow, scores: Sequence[CandidateScore], *, resampling: Resampling) -> MembershipRow:
    members, others = _sides(scores)
    own = [one.score for one in members], [one.score for one in others]
    generator, resamples, confidence = resampling.generator(), resampling.resamples, resampling.confidence
    found = pairwise_auc(*own, generator=generator, resamples=resamples, confidence=confidence)
    folded = folded_auc(*own, generator=generator)
    at_5, at_1 = (
        true_positive_rate(*own, fpr_share=share, confidence=confidence).tpr for share in (HIGHER_FPR, LOWER_FPR)
    )
    control = pairwise_auc(
        [one.control_score for one in members],
        [one.control_score for one in others],
        generator=generator,
        resamples=resamples,
        confidence=confidence,
    )
    beyond = auc_difference(
        [(one.score, one.control_score) for one in members],
        [(one.score, one.control_score) for one in others],
        generator=generator,
        resamples=resamples,
        confidence=confidence,
    )
    return msgspec.structs.replace(
        row,
        auc=found.auc.rate,
        low=found.auc.low,
        high=found.auc.high,
        interval=found.auc.method,
        standard_error=found.standard_error,
        folded=folded.auc if folded else None,
        folded_null_high=folded.null_high if folded else None,
        folded_p=folded.p_value if folded else None,
        tpr_at_5=at_5.rate,
        tpr_at_5_low=at_5.low,
        tpr_at_5_high=at_5.high,
        tpr_at_1=at_1.rate,
        tpr_at_1_low=at_1.low,
        tpr_at_1_high=at_1.high,
        tpr_interval=at_5.method or at_1.method,
        control_auc=control.auc.rate,
        beyond_control=beyond.rate,
        beyond_control_low=beyond.low,
        beyond_control_high=beyond.high,
        beyond_control_interval=beyond.method,
    )
