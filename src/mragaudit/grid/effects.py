"""How far a defense moves each metric of each attack, on the same units with and without it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from mragaudit.grid.membership_effect import METRIC, auc_by_seed, auc_effect
from mragaudit.grid.resampling import Resampling, over_calls
from mragaudit.grid.rows import GridRows, Group, calls_per_cell, groups
from mragaudit.grid.seed_tests import seed_cells
from mragaudit.grid.units import CALL_METRICS, Units, units_of
from mragaudit.hookaudit.attacks import AttackMap
from mragaudit.hookaudit.predictions import Effect
from mragaudit.records.grid import Cell, Purpose
from mragaudit.stats.intervals import Interval
from mragaudit.stats.paired import count_pairs, mean_difference, paired_difference
from mragaudit.tables.frames import Row

RETRIEVAL_METRIC = "recall_at_k"
CANARY_METRIC = "canary_recovery"
PURPOSES: tuple[Purpose, ...] = ("grid", "canary", "adaptive")
"""Of the cells that are compared with those without a defense."""


def grid_effects(
    rows: GridRows, attacks: AttackMap, *, resampling: Resampling, rejected: Collection[str] = ()
) -> Iterator[Effect]:
    """Yield an effect for every defended group and metric of its attack that the grid measures.

    `rejected` names the realisations on whose split no AUC is evaluated.
    """
    for metric, group, label in _compared(rows, attacks):
        if metric == METRIC:
            yield auc_effect(group, rows, label=label, resampling=resampling, rejected=rejected)
        else:
            yield from _effect(metric, group, rows, label=label, resampling=resampling)


def _compared(rows: GridRows, attacks: AttackMap) -> Iterator[tuple[str, Group, str]]:
    """Yield every metric of a defended group's attack, the group, and the `cell` of the effect."""
    known = {attack.name: attack.metrics for attack in attacks.attacks}
    for purpose in PURPOSES:
        for group in groups(rows.cells, purpose=purpose, keep=known.__contains__):
            for metric in known[group.attack]:
                if group.baseline and (metric == CANARY_METRIC) == (purpose == "canary"):
                    yield metric, group, f"{purpose} {group.label}"


def effect_seed_tests(
    rows: GridRows, attacks: AttackMap, *, rejected: Collection[str] = ()
) -> dict[tuple[str, str, str, str], Row]:
    """Return the two-sided exact test over seeds by arm, attack, metric and `cell` of an effect; empty below 2 seeds.

    One value a seed: the mean of the metric over its known units, or the signed AUC of its candidates.
    """

    def by_seed(metric: str, cells: Sequence[Cell]) -> list[float | None]:
        if metric == METRIC:
            return auc_by_seed(cells, rows, rejected=rejected)
        return [_mean_of_known(units_of(metric, [cell], rows)) for cell in cells]

    return {
        (group.arm, group.attack, metric, label): seed_cells(
            by_seed(metric, group.baseline), by_seed(metric, group.cells)
        )
        for metric, group, label in _compared(rows, attacks)
    }


def _mean_of_known(units: Units | None) -> float | None:
    known = [value for value in (units or {}).values() if value is not None]
    return float(np.mean(known)) if known else None


def effect_calls(rows: GridRows) -> dict[tuple[str, str, str], float]:
    """Return the mean target calls of a cell by arm, attack and `cell` of an effect."""
    made = {
        (group.arm, group.attack, f"{purpose} {group.label}"): calls_per_cell(group.cells, rows)
        for purpose in PURPOSES
        for group in groups(rows.cells, purpose=purpose, keep=lambda _: True)
    }
    return {key: calls for key, calls in made.items() if calls is not None}


def _effect(metric: str, group: Group, rows: GridRows, *, label: str, resampling: Resampling) -> Iterator[Effect]:
    defended, baseline = units_of(metric, group.cells, rows), units_of(metric, group.baseline, rows)
    if defended is None or baseline is None:
        return
    shared = sorted(defended.keys() & baseline.keys())
    pairs = [(baseline[name], defended[name]) for name in shared]
    before = [float(old) for old, new in pairs if old is not None and new is not None]
    after = [float(new) for old, new in pairs if old is not None and new is not None]
    interval = difference_of(before, after, resampling=resampling)
    interval = over_calls(interval) if metric in CALL_METRICS else interval
    yield Effect(
        defense=group.arm,
        attack=group.attack,
        metric=metric,
        cell=label,
        baseline=float(np.mean(before)) if before else None,
        defended=float(np.mean(after)) if after else None,
        difference=interval.rate,
        ci_low=interval.low,
        ci_high=interval.high,
        ci_method=interval.method,
        ci_level=resampling.confidence,
        n=len(before),
        n_not_evaluated=len(defended.keys() | baseline.keys()) - len(before),
        identical=bool(before) and _identical(metric, group, rows),
    )


def difference_of(before: Sequence[float], after: Sequence[float], *, resampling: Resampling) -> Interval:
    """Return defended minus undefended over paired units, with limits of the paired bootstrap over them."""
    if not before:
        return Interval(rate=None, low=None, high=None, method="")
    generator = resampling.generator()
    if set(before) | set(after) <= {0.0, 1.0}:
        pair = count_pairs(np.array(after) == 1.0, np.array(before) == 1.0)
        return paired_difference(
            pair, generator=generator, resamples=resampling.resamples, confidence=resampling.confidence
        )
    return mean_difference(
        np.array(after) - np.array(before),
        generator=generator,
        resamples=resampling.resamples,
        confidence=resampling.confidence,
    )


def _identical(metric: str, group: Group, rows: GridRows) -> bool:
    """Return whether what the metric reads is the same in both arms, byte for byte."""
    return all(
        _digest(metric, cell, rows) == _digest(metric, other, rows)
        for cell, other in zip(group.cells, group.baseline, strict=True)
    )


def _digest(metric: str, cell: Cell, rows: GridRows) -> str:
    use = rows.uses[cell.cell_id]
    return use.retrieval_digest if metric == RETRIEVAL_METRIC else use.replies_digest
