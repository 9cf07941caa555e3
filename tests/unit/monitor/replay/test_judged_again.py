"""Counts judged again: by the monitor's rules one by one, and as arrays, with the same outcome."""

from __future__ import annotations

import uuid

import numpy as np
import pytest
from replay_sample import LANGUAGES, actor_of, asked, material, profiles

from mragaudit.monitor.core import MonitorCore
from mragaudit.monitor.grid import Cell, cell_of, columns_of, composite, outcome_of, settings_of
from mragaudit.monitor.rejudge import (
    Actor,
    actors_of,
    core_of,
    first_throttled,
    judge,
    take_until,
    with_roles,
)
from mragaudit.monitor.replay import open_loop
from mragaudit.monitor.risk import SIGNALS
from mragaudit.monitor.settings import Composite, Coverage, MonitorSettings, Store, Volume
from mragaudit.monitor.traffic.attackers import attack_events
from mragaudit.monitor.traffic.benign import benign_events

ROLES = {name: one.role for name, one in profiles().benign.items() if one.role is not None}
TRIED = (
    MonitorSettings(),
    MonitorSettings(volume=Volume(max_queries=20), coverage=Coverage(max_share=0.5)),
    MonitorSettings(composite=Composite(throttle_at=0.5, release_at=0.4, hold_seconds=60.0)),
    MonitorSettings(composite=Composite(weights={"volume": 0.0, "coverage": 0.0, "sensitivity": 1.0})),
)


@pytest.fixture(scope="module")
def actors() -> list[Actor]:
    """Return attackers and benign users with the counts of a replay."""
    settings = MonitorSettings(store=Store(url=f"memory://{uuid.uuid4().hex}"))
    attacks = attack_events(material(), profiles(), settings=settings, languages=LANGUAGES, seed=1, count=1, days=7)
    events = [one for one in attacks if one.profile not in ("patient_sweep", "sybils_8", "dilution_untold")]
    events += list(benign_events(material(), profiles(), seed=1, count=1, days=5))
    return actors_of(events, {row.query_id: row for row in open_loop(events, settings=settings)})


Throttlings = dict[str, tuple[int, int]]
"""Actor → first throttled query, -1 for none, and how often throttling began."""


def _by_arrays(actors: list[Actor], cell: Cell, settings: MonitorSettings) -> Throttlings:
    outcome = outcome_of(columns_of(actors, settings), cell, n_actors=len(actors))
    rows = zip(actors, outcome.first, outcome.entries, strict=True)
    return {actor.name: (int(first), int(entries)) for actor, first, entries in rows}


def _by_monitor(actors: list[Actor], core: MonitorCore) -> Throttlings:
    found = {actor.name: judge(actor, core) for actor in actors}
    firsts = {name: first_throttled(rows) for name, rows in found.items()}
    return {
        name: (-1 if firsts[name] is None else firsts[name], sum(one.entered for one in rows))
        for name, rows in found.items()
    }


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("settings", TRIED)
def test_arrays_throttle_the_same_queries_as_the_monitor(
    actors: list[Actor], settings: MonitorSettings, roles: bool
) -> None:
    given = with_roles(settings, ROLES) if roles else settings
    theirs = _by_monitor(actors, MonitorCore(given))
    assert _by_arrays(actors, cell_of(given), given) == theirs
    assert len({first for first, _ in theirs.values()}) > 2  # some throttled at different queries, some never


@pytest.mark.parametrize("signal", SIGNALS)
def test_arrays_of_one_signal_throttle_the_same_queries_as_that_signal(actors: list[Actor], signal: str) -> None:
    settings = MonitorSettings()
    alone = tuple(one for one in SIGNALS if one == signal)
    theirs = _by_monitor(actors, core_of(settings, signal=signal))
    assert _by_arrays(actors, cell_of(settings, signals=alone), settings) == theirs


def test_arrays_have_the_monitors_composite_at_every_query(actors: list[Actor]) -> None:
    settings = with_roles(MonitorSettings(), ROLES)
    core = MonitorCore(settings)
    theirs = [
        np.nan if one.decision.composite is None else one.decision.composite
        for actor in actors
        for user in sorted({asked.event.user for asked in actor.asked})
        for asked, one in zip(actor.asked, judge(actor, core), strict=True)
        if asked.event.user == user
    ]
    np.testing.assert_allclose(composite(columns_of(actors, settings), cell_of(settings)), theirs, rtol=1e-12)


def test_judging_again_at_the_replays_own_settings_gives_its_own_decisions(actors: list[Actor]) -> None:
    core = MonitorCore(MonitorSettings())
    for actor in actors:
        assert [one.decision.action for one in judge(actor, core)] == [one.counted.action for one in actor.asked]


def test_a_cell_turned_into_settings_is_that_cell() -> None:
    cell = cell_of(TRIED[1])
    assert cell_of(settings_of(cell, MonitorSettings())) == cell


def test_a_signal_alone_throttles_above_its_threshold_and_not_at_it() -> None:
    rows = [asked(n, minutes=n / 10, queries=49 + n) for n in range(3)]
    found = judge(actor_of(rows), core_of(MonitorSettings(), signal="volume"))
    assert [one.decision.throttled for one in found] == [False, False, True]


def test_a_spell_ends_after_the_hold_and_a_new_one_is_entered_again() -> None:
    """Over at minutes 0 and 40; the hold of 15 minutes is over at minute 20, where the composite is low."""
    loads = [(0, 51), (5, 10), (20, 10), (40, 51)]
    rows = [asked(n, minutes=minute, queries=queries) for n, (minute, queries) in enumerate(loads)]
    found = judge(actor_of(rows), MonitorCore(MonitorSettings()))
    assert [one.decision.throttled for one in found] == [True, True, False, True]
    assert [one.entered for one in found] == [True, False, False, True]
    assert [one.alerted for one in found] == [True, False, False, False]  # told of once an hour


def test_what_was_taken_ends_before_the_throttled_query() -> None:
    rows = [
        asked(0, minutes=0, documents=["a", "b"], target="a", disclosed=True),
        asked(1, minutes=60, documents=["b", "c"], target="x", disclosed=False),
        asked(2, minutes=120, documents=["d"], target="d", disclosed=True),
    ]
    take = take_until(actor_of(rows), 2)
    assert (take.detected, take.documents, take.items, take.disclosed) == (True, 3, 1, 1)
    assert (take.seconds, take.queries) == (7_200.0, 2)
    everything = take_until(actor_of(rows), None)
    assert (everything.documents, everything.items, everything.disclosed, everything.seconds) == (4, 2, 2, np.inf)


def test_without_any_answer_what_was_disclosed_is_unknown() -> None:
    rows = [asked(0, minutes=0, documents=["a"], target="a")]
    assert take_until(actor_of(rows), None).disclosed is None


def test_nobody_has_an_empty_outcome() -> None:
    settings = MonitorSettings()
    outcome = outcome_of(columns_of([], settings), cell_of(settings), n_actors=0)
    assert (outcome.first.size, outcome.entries.size) == (0, 0)
