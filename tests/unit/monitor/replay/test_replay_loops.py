"""Open and closed loop, through the monitor on a Redis in this process."""

from __future__ import annotations

import uuid

import pytest
from replay_sample import LANGUAGES, START, doc, material, profiles

from mragaudit.errors import StoreError
from mragaudit.monitor.replay import closed_loop, open_loop, undisturbed
from mragaudit.monitor.settings import MonitorSettings, Store
from mragaudit.monitor.traffic.attackers import attack_events
from mragaudit.records.base import encode_record
from mragaudit.records.replay import QueryEvent, SeenDocument


def _settings(**over: object) -> MonitorSettings:
    return MonitorSettings(store=Store(url=f"memory://{uuid.uuid4().hex}"), **over)


def _hammer(count: int, *, gap: float = 10.0, documents: int = 2) -> list[QueryEvent]:
    """Return queries of one user; the target is the second document."""
    return [
        QueryEvent(
            query_id=f"h-{number:05d}",
            actor="h",
            user="h",
            group="h",
            kind="attacker",
            profile="hammering",
            lang="en",
            time=START + gap * number,
            collection_size=1_000,
            documents=tuple(SeenDocument(f"d{number * documents + n}", "internal", True) for n in range(documents)),
            target=f"d{number * documents + 1}",
        )
        for number in range(count)
    ]


def test_the_51st_query_within_the_hour_is_throttled() -> None:
    rows = list(open_loop(_hammer(60), settings=_settings()))
    assert [row.queries for row in rows] == list(range(1, 61))
    assert [row.action for row in rows] == ["pass"] * 50 + ["throttle"] * 10
    assert [row.alert_sent for row in rows].index(True) == 50


def test_two_replays_give_the_same_bytes() -> None:
    events = [
        one
        for one in attack_events(
            material(), profiles(), settings=MonitorSettings(), languages=LANGUAGES, seed=1, count=1, days=7
        )
        if one.profile in ("confidential_pulls", "dilution_told", "sybils_2")
    ]
    first, second = ([encode_record(row) for row in open_loop(events, settings=_settings())] for _ in range(2))
    assert first == second


def test_a_month_of_simulated_time_is_forgotten_as_a_month() -> None:
    rows = list(open_loop(_hammer(4, gap=8 * 86_400.0), settings=_settings()))
    assert [row.distinct_documents for row in rows] == [2, 2, 2, 2]


def test_documents_that_a_user_added_are_told_to_the_monitor() -> None:
    event = _hammer(1)[0]
    told = QueryEvent(**{name: getattr(event, name) for name in event.__struct_fields__} | {"added": ("d0", "d1")})
    row = next(open_loop([told], settings=_settings()))
    assert (row.own_documents, row.distinct_documents) == (2, 0)


def test_a_query_that_the_monitor_cannot_count_stops_the_replay() -> None:
    event = _hammer(1)[0]
    wide = [SeenDocument(f"d{n}", "internal", True) for n in range(3)]
    bad = QueryEvent(**{name: getattr(event, name) for name in event.__struct_fields__} | {"documents": tuple(wide)})
    settings = _settings().model_copy(
        update={"limits": MonitorSettings().limits.model_copy(update={"documents_per_query": 2})}
    )
    with pytest.raises(StoreError, match='query "h-00000": refused'):
        list(open_loop([bad], settings=settings))


def test_a_store_that_knows_the_queries_already_stops_the_replay() -> None:
    settings = _settings()
    list(open_loop(_hammer(1), settings=settings))
    with pytest.raises(StoreError, match="replay on an empty store"):
        list(open_loop(_hammer(1), settings=settings))


def test_delay_moves_all_later_queries_of_a_throttled_account() -> None:
    """Queries 51 to 60 wait 5 seconds each, so the last begins 45 seconds late and ends 50 late."""
    rows = list(closed_loop(_hammer(60), response="delay", settings=_settings()))
    assert sum(row.throttled for row in rows) == 10
    assert rows[50].time == START + 500
    assert rows[59].time == START + 590 + 45
    assert rows[59].answered == START + 590 + 50
    assert all(len(row.delivered) == 2 for row in rows)


def test_truncation_leaves_one_document_and_the_target_is_asked_for_once_more() -> None:
    rows = list(closed_loop(_hammer(52), response="truncate", settings=_settings()))
    assert [len(row.delivered) for row in rows] == [2] * 50 + [1] * 4
    assert [row.query_id for row in rows[52:]] == ["h-00050-again", "h-00051-again"]
    assert rows[52].time > rows[51].time


def test_an_attacker_who_is_never_throttled_has_equal_loops() -> None:
    events = _hammer(5)
    looped = list(closed_loop(events, response="delay", settings=_settings()))
    assert looped == list(undisturbed(events, response="delay"))


def test_an_attacker_who_adds_as_many_documents_as_the_collection_holds_is_caught_no_later() -> None:
    events = list(
        attack_events(material(), profiles(), settings=MonitorSettings(), languages=("en",), seed=4, count=1, days=7)
    )
    first = {}
    for profile in ("low_and_slow", "dilution_told"):
        mine = [one for one in events if one.profile == profile]
        rows = open_loop(mine, settings=_settings())
        first[profile] = next(event.time for event, row in zip(mine, rows, strict=False) if row.action == "throttle")
    assert first["dilution_told"] <= first["low_and_slow"]
    assert doc(0) in {d.doc_id for one in events for d in one.documents}
