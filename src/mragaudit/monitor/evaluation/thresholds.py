"""Which thresholds: the sweep, the curves, and a choice for a budget of false alarms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd

from mragaudit.config.monitor_section import Sweep
from mragaudit.monitor.core import MonitorCore
from mragaudit.monitor.evaluation.alarms import alarm_cells, alarms_of
from mragaudit.monitor.evaluation.detection import detection_cells
from mragaudit.monitor.evaluation.replayed import (
    COMPOSITE,
    SIGNAL_CHOICES,
    Replayed,
    Row,
    Rules,
    interval_cells,
    median_cells,
)
from mragaudit.monitor.grid import Cell, Columns, Outcome, cell_of, columns_of, outcome_of, settings_of
from mragaudit.monitor.rejudge import Actor, judge, with_roles
from mragaudit.monitor.risk import SIGNALS
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.stats.intervals import wilson
from mragaudit.stats.medians import median_interval
from mragaudit.stats.poisson import poisson_rate

SCALES: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 3.0)
"""Multiples of all thresholds along a curve."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A replayed part as arrays, roles granted: an operator who chooses thresholds has named the odd jobs first."""

    replayed: Replayed
    attackers: Sequence[Actor]
    users: Sequence[Actor]
    attack_columns: Columns
    user_columns: Columns
    taken: Mapping[int, Sequence[int]]
    """Attacker → distinct documents taken before the query at each position; the last entry is all of them."""


def part_of(replayed: Replayed, rules: Rules) -> Part:
    """Return a part ready for many cells."""
    settings = with_roles(rules.settings, rules.roles)
    attackers, users = replayed.attackers, replayed.users
    return Part(
        replayed=replayed,
        attackers=attackers,
        users=users,
        attack_columns=columns_of(attackers, settings),
        user_columns=columns_of(users, settings),
        taken={number: _taken(actor) for number, actor in enumerate(attackers)},
    )


def _taken(actor: Actor) -> list[int]:
    seen: set[str] = set()
    found = [0]
    for one in actor.asked:
        seen.update(document.doc_id for document in one.event.documents if document.planted)
        found.append(len(seen))
    return found


def cells_of(sweep: Sweep, settings: MonitorSettings) -> list[Cell]:
    """Return all cells of the grid, the configured settings first."""
    own = cell_of(settings)
    axes = (sweep.max_queries, sweep.coverage_share, sweep.sensitivity_share, sweep.throttle_at, sweep.weights)
    made = [
        Cell(
            thresholds=dict(zip(SIGNALS, (float(volume), coverage, sensitivity), strict=True)),
            weights=dict(zip(SIGNALS, weights, strict=True)),
            throttle_at=throttle_at,
            floor=throttle_at if settings.composite.floor is None else settings.composite.floor,
            release_at=min(settings.composite.release_at, throttle_at),
            hold_seconds=settings.composite.hold_seconds,
        )
        for volume, coverage, sensitivity, throttle_at, weights in product(*axes)
    ]
    return [own, *(one for one in made if one != own)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """What one cell does to one part."""

    cell: Cell
    detected: int
    documents: Sequence[int]
    """Taken by each attacker before the first throttled query."""
    entries: int
    """Spells of throttling of benign users."""
    users_hit: int
    upper: float | None
    """One-sided upper limit of spells a user-month, of the benign profile in which it is largest."""


def scored(part: Part, cell: Cell, *, confidence: float) -> Scored:
    """Return what one cell does to one part."""
    attack = outcome_of(part.attack_columns, cell, n_actors=len(part.attackers))
    benign = outcome_of(part.user_columns, cell, n_actors=len(part.users))
    return Scored(
        cell=cell,
        detected=int((attack.first >= 0).sum()),
        documents=_documents(part, attack),
        entries=int(benign.entries.sum()),
        users_hit=int((benign.entries > 0).sum()),
        upper=_worst_upper(part, benign.entries.tolist(), confidence=confidence),
    )


def _worst_upper(part: Part, counts: Sequence[int], *, confidence: float) -> float | None:
    """Return the largest upper limit of any profile, `counts` being events of each user; None without users."""
    months = part.replayed.months_per_user
    users: dict[str, list[int]] = {}
    for user, found in zip(part.users, counts, strict=True):
        users.setdefault(user.profile, []).append(found)
    limits = [
        poisson_rate(sum(found), len(found) * months, side="upper", confidence=confidence).high
        for found in users.values()
    ]
    known = [one for one in limits if one is not None]
    return max(known) if known else None


def _documents(part: Part, attack: Outcome) -> list[int]:
    return [part.taken[number][int(first)] for number, first in enumerate(attack.first)]


def scores_of(part: Part, cells: Iterable[Cell], *, rules: Rules) -> list[Scored]:
    """Return what every cell does to one part."""
    return [scored(part, cell, confidence=rules.confidence) for cell in cells]


def sweep_table(parts: Sequence[Part], scores: Sequence[Sequence[Scored]], *, rules: Rules) -> pd.DataFrame:
    """Return a row for each part and cell of the grid; attackers of all profiles count alike, roles are granted."""
    rows = [
        {"part": part.replayed.part, **_cell_cells(one.cell), **_score_cells(part, one, rules=rules)}
        for part, found in zip(parts, scores, strict=True)
        for one in found
    ]
    return pd.DataFrame(rows)


def _cell_cells(cell: Cell) -> Row:
    return {
        "max_queries": cell.thresholds["volume"],
        "coverage_share": cell.thresholds["coverage"],
        "sensitivity_share": cell.thresholds["sensitivity"],
        "throttle_at": cell.throttle_at,
        "weight_volume": cell.weights["volume"],
        "weight_coverage": cell.weights["coverage"],
        "weight_sensitivity": cell.weights["sensitivity"],
    }


def _score_cells(part: Part, one: Scored, *, rules: Rules) -> Row:
    months = len(part.users) * part.replayed.months_per_user
    rate = poisson_rate(one.entries, months, side="upper", confidence=rules.confidence)
    return {
        "n_attackers": len(part.attackers),
        "n_detected": one.detected,
        **interval_cells(wilson(one.detected, len(part.attackers), side="two", confidence=rules.confidence)),
        **median_cells(median_interval(one.documents, confidence=rules.confidence), name="documents"),
        "n_users": len(part.users),
        "user_months": months,
        "n_spells": one.entries,
        "spells_per_user_month": rate.rate,
        "upper": rate.high,
        "upper_method": rate.method,
        "upper_worst_profile": one.upper,
        "n_users_throttled": one.users_hit,
        **interval_cells(
            wilson(one.users_hit, len(part.users), side="two", confidence=rules.confidence), prefix="users_"
        ),
    }


def curves_table(parts: Sequence[Part], *, rules: Rules) -> pd.DataFrame:
    """Return ROC and cost curves: a row for each part, signal and multiple of its thresholds.

    `composite` moves all three thresholds at once; shares stay at most 1, roles and baselines stay as they are.
    """
    rows = [
        {"part": part.replayed.part, "signal": signal, "scale": scale, **_score_cells(part, one, rules=rules)}
        for part in parts
        for signal in SIGNAL_CHOICES
        for scale in SCALES
        for one in [scored(part, _scaled(rules, signal=signal, scale=scale), confidence=rules.confidence)]
    ]
    return pd.DataFrame(rows)


def _scaled(rules: Rules, *, signal: str, scale: float) -> Cell:
    signals = SIGNALS if signal == COMPOSITE else tuple(one for one in SIGNALS if one == signal)
    return cell_of(rules.settings, signals=signals, scale=scale)


def chosen_cell(part: Part, scores: Sequence[Scored], *, budget: float, rules: Rules) -> Cell | None:
    """Return the cell that detects most attackers within the budget; None when no cell keeps it.

    Kept is a budget when the upper limit of every benign profile keeps it, not the rate. Ties go to fewer documents
    taken, then to the fewest spells, then to the order of the grid, in which the configured settings are first.
    Spells, which arrays count, are never more than alarms; so cells are tried in this order until one keeps the
    budget with all alarms counted.
    """
    kept = [one for one in scores if one.upper is not None and one.upper <= budget]
    ordered = sorted(kept, key=lambda one: (-one.detected, sum(one.documents), one.entries))
    return next((one.cell for one in ordered if _keeps(part, one.cell, budget=budget, rules=rules)), None)


def _keeps(part: Part, cell: Cell, *, budget: float, rules: Rules) -> bool:
    """Return whether the upper limit of alarms of every profile keeps the budget."""
    core = MonitorCore(with_roles(settings_of(cell, rules.settings), rules.roles))
    spells = outcome_of(part.user_columns, cell, n_actors=len(part.users)).entries
    # Without a composite from which alerts go out unthrottled, a user who is never throttled has no alarm.
    quiet = rules.settings.composite.alert_at is None and rules.settings.composite.floor is None
    alarms = [
        0 if quiet and not entered else alarms_of(judge(user, core))
        for user, entered in zip(part.users, spells, strict=True)
    ]
    upper = _worst_upper(part, alarms, confidence=rules.confidence)
    return upper is not None and upper <= budget


def recommendation_table(parts: Sequence[Part], choices: Mapping[float, Cell | None], *, rules: Rules) -> pd.DataFrame:
    """Return a row for each budget and part: what was chosen on `development`, and what it does on every part.

    Here alarms are counted in full, alerts included, by the monitor's own rules with roles granted.
    """
    rows: list[Row] = []
    for budget, cell in choices.items():
        if cell is None:
            rows.append({"budget": budget, "part": "development", "chosen": False})
            continue
        rows += [
            {"budget": budget, "part": part.replayed.part, "chosen": True, **row}
            for part in parts
            for row in [_recommended(part, cell, rules=rules)]
        ]
    return pd.DataFrame(rows)


def _recommended(part: Part, cell: Cell, *, rules: Rules) -> Row:
    core = MonitorCore(with_roles(settings_of(cell, rules.settings), rules.roles))
    row = _cell_cells(cell)
    if part.users:
        found = [judge(actor, core) for actor in part.users]
        alarms = alarm_cells(part.users, found, replayed=part.replayed, rules=rules)
        row |= {name: value for name, value in alarms.items() if name not in ("kind", "n_not_evaluated")}
        counts = [alarms_of(one) for one in found]
        row["upper_worst_profile"] = _worst_upper(part, counts, confidence=rules.confidence)
    if part.attackers:
        attacks = [judge(actor, core) for actor in part.attackers]
        row |= detection_cells(part.attackers, attacks, confidence=rules.confidence)
    return row
