"""Many settings at once over the counts of an open loop: the same rules as arrays.

Values of the signals come from the monitor's own readings; score, floor, mean and hysteresis are repeated here for
all queries together, and a test holds them against `MonitorCore` query by query. Two things are left out: an alert
without a throttle, and that the store notes the end of a spell up to a tenth of `hold_seconds` early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mragaudit.monitor.core import MonitorCore
from mragaudit.monitor.rejudge import BELOW_ONE, Actor, window_counts
from mragaudit.monitor.risk import COMPOSITE_DIGITS, SIGNALS
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.records.monitoring import SignalName, SignalReading

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
VANISHING = 1e-9
"""A fixed threshold so low that a reading shows the one by role or baseline, if there is any."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Columns:
    """All queries of some actors, one account after the other, each in order of time; shape `(n_queries,)`."""

    actor: Ints
    """Position of the actor."""
    account: Ints
    """Position of the account, ascending."""
    position: Ints
    """Position among the actor's queries."""
    time: Floats
    values: Mapping[SignalName, Floats]
    """Queries, or shares; NaN where not evaluated."""
    over_cap: Mapping[SignalName, Bools]
    own_threshold: Mapping[SignalName, Floats]
    """What a role or a baseline says in place of the fixed threshold, NaN for nothing; for sensitivity the larger of
    the two counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One choice of thresholds and weights."""

    thresholds: Mapping[SignalName, float]
    weights: Mapping[SignalName, float]
    throttle_at: float
    floor: float
    """Least composite while a signal alerts."""
    release_at: float
    hold_seconds: float
    signals: tuple[SignalName, ...] = SIGNALS
    """Signals that are used: all, or one alone, which then throttles as long as it alerts."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Outcome:
    """What one cell does to every actor."""

    first: Ints
    """Position of the first throttled query of each actor, -1 for none; shape `(n_actors,)`."""
    entries: Ints
    """Times that an account of each actor became throttled; shape `(n_actors,)`."""


def columns_of(actors: Sequence[Actor], settings: MonitorSettings) -> Columns:
    """Return the queries of actors as arrays, roles of the settings in force."""
    core = MonitorCore(_vanishing(settings))
    rows = [
        (number, asked.event.user, position, asked)
        for number, actor in enumerate(actors)
        for position, asked in enumerate(actor.asked)
    ]
    rows.sort(key=lambda row: (row[0], row[1], row[2]))
    accounts = {pair: n for n, pair in enumerate(dict.fromkeys((row[0], row[1]) for row in rows))}
    readings = [core.readings(window_counts(row[3]), role=row[3].event.profile) for row in rows]
    by_signal = {name: [one[place] for one in readings] for place, name in enumerate(SIGNALS)}
    return Columns(
        actor=np.array([row[0] for row in rows], dtype=np.int64),
        account=np.array([accounts[row[0], row[1]] for row in rows], dtype=np.int64),
        position=np.array([row[2] for row in rows], dtype=np.int64),
        time=np.array([row[3].event.time for row in rows], dtype=np.float64),
        values={name: _values(found) for name, found in by_signal.items()},
        over_cap={name: np.array([_over_cap(one) for one in found], dtype=bool) for name, found in by_signal.items()},
        own_threshold={
            name: np.array([np.nan if one.threshold == VANISHING else one.threshold for one in found])
            for name, found in by_signal.items()
        },
    )


def _vanishing(settings: MonitorSettings) -> MonitorSettings:
    keys = {"volume": "max_queries", "coverage": "max_share", "sensitivity": "max_share"}
    sections = {name: getattr(settings, name).model_copy(update={key: VANISHING}) for name, key in keys.items()}
    return settings.model_copy(update=sections)


def _values(readings: Sequence[SignalReading]) -> Floats:
    return np.array([np.nan if one.value is None else one.value for one in readings], dtype=np.float64)


def _over_cap(reading: SignalReading) -> bool:
    return reading.cap is not None and reading.capped_count is not None and reading.capped_count > reading.cap


def composite(columns: Columns, cell: Cell) -> Floats:
    """Return the composite risk at every query, NaN where no signal is evaluated; shape `(n_queries,)`."""
    n = len(columns.time)
    total, weight, plain, known = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    alerting = np.zeros(n, dtype=bool)
    for name in cell.signals:
        threshold = _threshold(columns, cell, name)
        values, over_cap = columns.values[name], columns.over_cap[name]
        alerts = over_cap | (values > threshold)
        most = BELOW_ONE if len(cell.signals) == 1 else 1.0
        score = np.where(alerts, 1.0, np.minimum(most, values / threshold))
        has = ~np.isnan(score)
        filled = np.where(has, score, 0.0)
        total += cell.weights[name] * filled
        weight += cell.weights[name] * has
        plain += filled
        known += has
        alerting |= alerts
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(weight > 0, np.round(total / weight, COMPOSITE_DIGITS), plain / known)
    return np.where(alerting, np.maximum(mean, cell.floor), mean)


def _threshold(columns: Columns, cell: Cell, name: SignalName) -> Floats:
    own, fixed = columns.own_threshold[name], cell.thresholds[name]
    if name == "sensitivity":
        return np.minimum(1.0, np.fmax(own, fixed))
    return np.where(np.isnan(own), fixed, own)


def outcome_of(columns: Columns, cell: Cell, *, n_actors: int) -> Outcome:
    """Return what one cell does: throttled from `throttle_at` on, released below `release_at` after the hold."""
    risk = composite(columns, cell)
    over = risk >= cell.throttle_at
    index = np.arange(len(over))
    last = np.maximum.accumulate(np.where(over, index, -1))
    same = (last >= 0) & (columns.account[np.maximum(last, 0)] == columns.account)
    rested = columns.time - columns.time[np.maximum(last, 0)] >= cell.hold_seconds
    released = same & ~over & rested & (risk < cell.release_at)
    previous = np.concatenate([[-1], last])[:-1]
    follows = (previous >= 0) & (columns.account[np.maximum(previous, 0)] == columns.account)
    releases = np.cumsum(released)
    between = releases - releases[np.maximum(previous, 0)]
    entered = over & (~follows | (between > 0))
    first = np.full(n_actors, np.iinfo(np.int64).max)
    np.minimum.at(first, columns.actor[over], columns.position[over])
    return Outcome(
        first=np.where(first == np.iinfo(np.int64).max, -1, first),
        entries=np.bincount(columns.actor[entered], minlength=n_actors),
    )


def cell_of(settings: MonitorSettings, *, signals: tuple[SignalName, ...] = SIGNALS, scale: float = 1.0) -> Cell:
    """Return the cell of some settings, all thresholds multiplied by `scale` (shares stay at most 1)."""
    thresholds: dict[SignalName, float] = {
        "volume": settings.volume.max_queries * scale,
        "coverage": min(1.0, settings.coverage.max_share * scale),
        "sensitivity": min(1.0, settings.sensitivity.max_share * scale),
    }
    alone = len(signals) == 1
    return Cell(
        thresholds=thresholds,
        weights=settings.composite.weights,
        throttle_at=1.0 if alone else settings.composite.throttle_at,
        floor=1.0 if alone else settings.composite.signal_floor,
        release_at=settings.composite.release_at,
        hold_seconds=settings.composite.hold_seconds,
        signals=signals,
    )


def settings_of(cell: Cell, settings: MonitorSettings) -> MonitorSettings:
    """Return the settings with a cell's thresholds and weights in place of their own."""
    thresholds = cell.thresholds
    return settings.model_copy(
        update={
            "volume": settings.volume.model_copy(update={"max_queries": round(thresholds["volume"])}),
            "coverage": settings.coverage.model_copy(update={"max_share": thresholds["coverage"]}),
            "sensitivity": settings.sensitivity.model_copy(update={"max_share": thresholds["sensitivity"]}),
            "composite": settings.composite.model_copy(
                update={
                    "weights": dict(cell.weights),
                    "throttle_at": cell.throttle_at,
                    "release_at": cell.release_at,
                }
            ),
        }
    )
