"""Recovery of canaries, class by class and arm by arm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from mragaudit.errors import DataError
from mragaudit.grid.rows import GridRows
from mragaudit.records.grid import Cell, ItemKind, ItemOutcome
from mragaudit.records.grid_findings import RecoveryRow, ShareCount
from mragaudit.stats.intervals import CONFIDENCE, clopper_pearson

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Canary:
    """What became of one canary in all cells of its arm and seed."""

    planted: bool
    exact: bool
    normalised: bool
    derived: bool
    retrieved: bool
    in_context: bool
    complete: bool
    """Whether every call of the cells has a reply; else it stands in no share, found or not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CanaryRun:
    """The canaries of one class under one arm in one seed."""

    canary_class: ItemKind
    arm: str
    seed: int
    attacks: tuple[str, ...]
    """Mode and attack of its cells, sorted."""
    canaries: tuple[Canary, ...]

    @property
    def planted(self) -> list[Canary]:
        """Canaries of indexed documents."""
        return [canary for canary in self.canaries if canary.planted]


def canary_runs(cells: Iterable[Cell], outcomes: Iterable[ItemOutcome]) -> list[CanaryRun]:
    """Return the canaries of all cells whose purpose is `canary`, sorted by class, arm and seed.

    A canary is recovered when a cell of its class, arm and seed recovers it. With a call without reply in one of the
    cells all canaries of the seed are unknown: a share of those that were found beside it would be 1. A cell that is
    the same as another by construction has that one's outcomes.
    Raises DataError for a cell without canaries, or with canaries of several classes.
    """
    of_cell: dict[str, list[ItemOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.canary:
            of_cell[outcome.cell_id].append(outcome)
    groups: dict[tuple[ItemKind, str, int], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.purpose == "canary":
            rows = of_cell[cell.same_as or cell.cell_id]
            groups[_class_of(cell, rows), cell.arm, cell.seed].append(cell)
    return [
        CanaryRun(
            canary_class=kind,
            arm=arm,
            seed=seed,
            attacks=tuple(sorted({f"{cell.mode}/{cell.attack}" for cell in group})),
            canaries=_merged([of_cell[cell.same_as or cell.cell_id] for cell in group]),
        )
        for (kind, arm, seed), group in sorted(groups.items())
    ]


def calls_of_arms(rows: GridRows) -> dict[tuple[str, str], float]:
    """Return the mean target calls of a cell by class of canaries and arm."""
    made: dict[tuple[str, str], list[int]] = defaultdict(list)
    for cell in rows.cells:
        if cell.purpose == "canary":
            planted = [item for item in rows.items.get(cell.cell_id, ()) if item.canary]
            made[_class_of(cell, planted), cell.arm].append(rows.uses[cell.cell_id].n_target_calls)
    return {key: sum(calls) / len(calls) for key, calls in made.items()}


def _class_of(cell: Cell, rows: Sequence[ItemOutcome]) -> ItemKind:
    kinds = {row.kind for row in rows}
    if len(kinds) != 1:
        raise DataError(
            f"cell {cell.cell_id} has canaries of the classes {sorted(kinds)}; a canary cell has those of exactly one"
        )
    return kinds.pop()


def _merged(cells: Sequence[Sequence[ItemOutcome]]) -> tuple[Canary, ...]:
    of_item: dict[tuple[str, str], list[ItemOutcome]] = defaultdict(list)
    for rows in cells:
        for row in rows:
            of_item[row.doc_id, row.value].append(row)
    return tuple(_canary(rows) for _, rows in sorted(of_item.items()))


def _canary(rows: Sequence[ItemOutcome]) -> Canary:
    return Canary(
        planted=rows[0].planted,
        exact=any(row.exact for row in rows),
        normalised=any(row.normalised or row.exact for row in rows),
        derived=any(row.derived for row in rows),
        retrieved=any(row.retrieved for row in rows),
        in_context=any(row.in_context for row in rows),
        complete=all(row.not_evaluated is None for row in rows),
    )


def count_share(
    rows: Iterable[T],
    found: Callable[[T], bool],
    *,
    unknown: Callable[[T], bool] | None = None,
    confidence: float = CONFIDENCE,
) -> ShareCount:
    """Return how many were found of those for which it is known, with two-sided Clopper-Pearson limits.

    Rows of which `unknown` holds are not evaluated, found or not: what decides about a denominator must not depend on
    what is counted. Without `unknown` all is known, as from the auditor's log.
    """
    given = list(rows)
    known = [row for row in given if unknown is None or not unknown(row)]
    k = sum(map(found, known))
    limits = clopper_pearson(k, len(known), side="two", confidence=confidence)
    return ShareCount(
        k=k,
        n=len(known),
        not_evaluated=len(given) - len(known),
        share=limits.rate,
        low=limits.low,
        high=limits.high,
        interval=limits.method,
    )


def recovery_rows(runs: Iterable[CanaryRun], *, confidence: float = CONFIDENCE) -> list[RecoveryRow]:
    """Return one row for each class and arm, pooled over seeds, sorted by class and arm.

    `confidence` is the level of all limits.

    Raises DataError when the seeds of an arm were attacked in different ways.
    """
    groups: dict[tuple[ItemKind, str], list[CanaryRun]] = defaultdict(list)
    for run in runs:
        groups[run.canary_class, run.arm].append(run)
    return [_row(group, confidence=confidence) for _, group in sorted(groups.items())]


def _row(group: Sequence[CanaryRun], *, confidence: float) -> RecoveryRow:
    first = group[0]
    if len({run.attacks for run in group}) != 1:
        raise DataError(
            f"canaries {first.canary_class} under {first.arm}: the seeds have different attacks; each needs the same"
        )
    planted = [canary for run in group for canary in run.planted]
    controls = [canary for run in group for canary in run.canaries if not canary.planted]
    share = partial(count_share, confidence=confidence)
    return RecoveryRow(
        canary_class=first.canary_class,
        arm=first.arm,
        attacks=first.attacks,
        seeds=tuple(sorted(run.seed for run in group)),
        exact=share(planted, _exact, unknown=_incomplete),
        normalised=share(planted, lambda canary: canary.normalised, unknown=_incomplete),
        derived=share(planted, lambda canary: canary.derived, unknown=_incomplete),
        given_retrieved=share((row for row in planted if row.retrieved), _exact, unknown=_incomplete),
        retrieved=share(planted, lambda canary: canary.retrieved),
        in_context=share(planted, lambda canary: canary.in_context),
        controls=share(controls, _in_any_way, unknown=_unknown_control),
    )


def _exact(canary: Canary) -> bool:
    return canary.exact


def _in_any_way(canary: Canary) -> bool:
    return canary.exact or canary.normalised or canary.derived


def _incomplete(canary: Canary) -> bool:
    return not canary.complete


def _unknown_control(canary: Canary) -> bool:
    """A never-planted canary that was recovered is a fault wherever it was; no rate is read off these."""
    return not canary.complete and not _in_any_way(canary)


def seed_shares(runs: Iterable[CanaryRun]) -> Mapping[int, float | None]:
    """Return each seed's share of canaries recovered exactly, None where none was evaluated."""
    return {run.seed: count_share(run.planted, _exact, unknown=_incomplete).share for run in runs}
