"""How far a defense moves the AUC of membership inference, on the same candidates with and without it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from mragaudit.grid.resampling import Resampling
from mragaudit.grid.rows import GridRows, Group
from mragaudit.hookaudit.predictions import Effect
from mragaudit.records.grid import CandidateScore, Cell
from mragaudit.stats.agreement import auc
from mragaudit.stats.auc import auc_difference

METRIC = "mi_auc"
Pair = tuple[float, float]


def auc_effect(
    group: Group, rows: GridRows, *, label: str, resampling: Resampling, rejected: Collection[str] = ()
) -> Effect:
    """Return how far an arm moves the signed AUC, over candidates with a score in both arms.

    Candidates of several seeds stand together, their scores standardised within their cells. Those of a rejected
    split are not evaluated: their AUC would show the split.
    """
    pairs = list(_paired(group, rows, rejected=rejected))
    known = [(member, new, old) for member, new, old in pairs if new is not None and old is not None]
    members = [(new, old) for member, new, old in known if member]
    others = [(new, old) for member, new, old in known if not member]
    found = auc_difference(
        members,
        others,
        generator=resampling.generator(),
        resamples=resampling.resamples,
        confidence=resampling.confidence,
    )
    evaluated = found.rate is not None
    return Effect(
        defense=group.arm,
        attack=group.attack,
        metric=METRIC,
        cell=label,
        baseline=_auc(members, others, which=1) if evaluated else None,
        defended=_auc(members, others, which=0) if evaluated else None,
        difference=found.rate,
        ci_low=found.low,
        ci_high=found.high,
        ci_method=found.method,
        ci_level=resampling.confidence,
        n=len(known) if evaluated else 0,
        n_not_evaluated=len(pairs) - (len(known) if evaluated else 0),
        identical=found.rate == 0.0 and all(new == old for _, new, old in known),
    )


def auc_by_seed(cells: Sequence[Cell], rows: GridRows, *, rejected: Collection[str] = ()) -> list[float | None]:
    """Return the signed AUC of each cell over its scored candidates; None on a rejected split or an empty side."""
    return [None if cell.realisation in rejected else _auc_of(rows.candidates.get(cell.cell_id, ())) for cell in cells]


def _auc_of(candidates: Sequence[CandidateScore]) -> float | None:
    members, others = (
        [row.score for row in candidates if row.member is side and row.score is not None] for side in (True, False)
    )
    return auc(members, others)


def _paired(
    group: Group, rows: GridRows, *, rejected: Collection[str]
) -> Iterator[tuple[bool, float | None, float | None]]:
    """Yield, for every candidate, whether it is a member, its score with and without the defense."""
    for cell, other in zip(group.cells, group.baseline, strict=True):
        before = {row.doc_id: row.score for row in rows.candidates.get(other.cell_id, ())}
        for row in rows.candidates.get(cell.cell_id, ()):
            usable = cell.realisation not in rejected
            yield row.member, row.score if usable else None, before.get(row.doc_id)


def _auc(members: Sequence[Pair], others: Sequence[Pair], *, which: int) -> float | None:
    return auc(*([pair[which] for pair in side] for side in (members, others)))
