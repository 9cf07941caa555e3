"""What an administrator sees and does, the same on every store and by both clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from monitor_drivers import DAY, HOUR, START, WEEK, Driver, ids, made_settings

from mragaudit.errors import ConfigError, DataError, StoreError
from mragaudit.monitor import AsyncExfiltrationMonitor, admin

pytestmark = pytest.mark.monitor
Drive = Callable[..., Driver]
ONE_LOST_HOUR = 3_601.0


def do(one: Driver, steps: Any) -> Any:
    """Drive a task as its client does."""
    if isinstance(one.monitor, AsyncExfiltrationMonitor):
        return one.wait_for(admin.run_async(one.monitor, steps))
    return admin.run(one.monitor, steps)


def explain(one: Driver, user: str = "ann", *, at: float | None = None, **options: Any) -> Any:
    time = None if at is None else START + at
    return do(one, admin.explain_steps(one.monitor.session, one.do("user_hash", user), time=time, **options))


def allow(one: Driver, *, seconds: float, at: float | None = None, reason: str = "migration") -> Any:
    time = None if at is None else START + at
    hashed = one.do("user_hash", "ann")
    return do(one, admin.allow_steps(one.monitor.session, hashed, seconds=seconds, reason=reason, time=time))


def user_keys(one: Driver) -> list[str]:
    """Return what the store holds of users, without their hash tag."""
    return [key.rpartition("}:")[2] for key in one.stored_keys() if "{u." in key]


def dumps(one: Driver) -> dict[str, bytes]:
    return {key: one.direct.dump(key) for key in one.stored_keys()}


def clear(one: Driver, *, forget: bool = False) -> int:
    return int(do(one, admin.clear_steps(one.monitor.session, one.do("user_hash", "ann"), forget=forget)))


def test_explain_reads_what_the_last_query_read(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 100)
    one.ask(ids(1, 30), at=0)
    decision = one.ask(ids(31, 40), at=60, level="restricted")
    state = explain(one, at=60)
    assert state.signals == decision.signals
    assert (state.composite, state.time) == (decision.composite, START + 60)
    assert state.collections[0].size.size == 100


def test_explain_counts_as_no_query_and_changes_nothing(drive: Drive) -> None:
    one = drive()
    one.ask(ids(1, 30), at=0)
    before = dumps(one)
    explain(one, at=2 * WEEK)
    assert dumps(one) == before


def test_explain_leaves_out_what_has_left_the_windows(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 1_000)
    one.ask(ids(1, 30), at=0, level="confidential")
    one.ask(ids(31, 60), at=10, level="public")
    volume, coverage, sensitivity = explain(one, at=HOUR + 5).signals
    assert (volume.count, coverage.count, sensitivity.count, sensitivity.total) == (1, 60, 30, 60)
    volume, coverage, sensitivity = explain(one, at=DAY + 5).signals
    assert (volume.count, coverage.count, sensitivity.count, sensitivity.total) == (0, 60, 0, 30)
    volume, coverage, sensitivity = explain(one, at=WEEK + 5).signals
    assert (volume.count, coverage.count, sensitivity.count, sensitivity.total) == (0, 30, 0, 0)


def test_explain_reads_sketches_as_a_query_does(drive: Drive) -> None:
    one = drive(coverage={"mode": "hyperloglog"})
    one.do("set_size", "kb", 1_000)
    one.ask(ids(1, 50), at=0)
    decision = one.ask(ids(51, 80), at=2 * DAY, level="restricted")
    state = explain(one, at=2 * DAY)
    assert state.signals == decision.signals
    assert explain(one, at=8 * DAY + 1).signals[1].count == pytest.approx(30, abs=1)
    assert not state.collections[0].documents_complete
    assert {document.doc_id for document in state.collections[0].documents} <= set(ids(51, 80))
    assert all(document.sensitive for document in state.collections[0].documents)


def test_documents_come_newest_first_decoded_and_bounded(drive: Drive) -> None:
    one = drive()
    one.ask(["plain:{a}", "x" * 100], at=0)
    one.ask(["secret\n"], at=5, level="restricted")
    documents = explain(one, at=6).collections[0].documents
    assert [(document.doc_id, document.time - START, document.sensitive) for document in documents[:1]] == [
        ("secret\n", 5, True)
    ]
    assert {document.doc_id[:8] for document in documents[1:]} == {"plain:{a", "(digest "}
    assert explain(one, at=6).collections[0].documents_complete
    short = explain(one, at=6, documents=1).collections[0]
    assert (len(short.documents), short.distinct_documents, short.documents_complete) == (1, 3, False)


def test_a_user_is_judged_by_the_riskiest_collection(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "small {1}", 40)
    one.do("set_size", "large", 100_000)
    one.ask(ids(1, 36), at=0, collection="small {1}")
    one.ask(ids(1, 3), at=1, collection="large")
    state = explain(one, at=2)
    assert [found.collection[:8] for found in state.collections] == ["(digest ", "large"]
    assert state.collections[0].signals[1].alerting
    assert state.composite == 0.7
    assert state.last_query == START + 1


def test_explain_says_since_when_a_user_is_throttled_and_which_alerts_went_out(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 1_000)
    for second in range(52):
        one.ask(ids(1, 20), at=second)
    state = explain(one, at=60)
    assert (state.throttled, state.throttled_since) == (True, START + 50)
    assert state.alerts["volume"] == START + 50
    assert "coverage" not in state.alerts
    later = explain(one, at=DAY)
    assert (later.throttled, later.throttled_since) == (False, None)


def test_explain_applies_the_limits_of_a_role_that_is_named(drive: Drive) -> None:
    one = drive(roles={"robot": {"max_queries": 500}})
    for second in range(52):
        one.ask(at=second, role="robot")
    assert explain(one, at=60).signals[0].alerting
    assert not explain(one, at=60, role="robot").signals[0].alerting


def test_an_unknown_user_has_an_empty_state(drive: Drive) -> None:
    state = explain(drive(), "nobody", at=0)
    assert (state.collections, state.last_query, state.throttled, state.alerts) == ((), None, False, {})
    assert state.signals[0].count == 0


def test_the_baseline_of_preceding_days_is_shown(drive: Drive) -> None:
    one = drive()
    for day in range(4):
        one.ask(ids(1, 8), at=day * DAY)
        one.ask(ids(9, 10), at=day * DAY + 1, level="restricted")
    baseline = explain(one, at=10 * DAY).baseline
    assert (baseline.sensitive, baseline.returned, baseline.days) == (8, 40, 4)


def test_a_cleared_user_starts_anew_and_no_window_is_left(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 30)
    for second in range(52):
        one.ask(ids(1, 30), at=second, level="restricted")
    one.ask(ids(1, 3), at=53, collection="other one")
    assert explain(one, at=54).throttled
    assert clear(one) >= 7
    state = explain(one, at=55)
    assert (state.throttled, state.collections, state.alerts) == (False, (), {})
    assert user_keys(one) == ["base"]
    assert not one.ask(ids(1, 3), at=56).throttled


def test_sketches_are_cleared_as_well(drive: Drive) -> None:
    one = drive(coverage={"mode": "hyperloglog"})
    one.ask(ids(1, 30), at=0)
    clear(one)
    assert user_keys(one) == ["base"]


def test_clearing_keeps_what_stays_true_and_forgetting_does_not(drive: Drive) -> None:
    one = drive()
    one.do("user_added", "ann", "kb", doc_ids=ids(1, 5))
    one.ask(ids(1, 9))
    allow(one, seconds=30 * DAY)
    clear(one)
    assert explain(one).allowed.reason == "migration"
    assert one.ask(ids(1, 9)).signal("coverage").count == 4
    clear(one, forget=True)
    assert explain(one).allowed is None
    assert user_keys(one) == []


def test_a_user_on_the_allow_list_passes_until_its_end(drive: Drive) -> None:
    one = drive()
    for second in range(60):
        one.ask(at=second)
    assert one.ask(at=60).throttled
    entry = allow(one, at=61, seconds=600)
    assert (entry.since - START, entry.until - START, entry.reason) == (61, 661, "migration")
    state = explain(one, at=62)
    assert (state.throttled, state.throttled_since, state.allowed) == (False, None, entry)
    allowed = one.ask(at=660)
    assert (allowed.throttled, allowed.alert) == (False, None)
    assert one.ask(at=662).throttled
    assert explain(one, at=662).allowed is None


def test_an_alert_does_not_shorten_the_life_of_a_long_entry(drive: Drive) -> None:
    one = drive()
    allow(one, seconds=60 * DAY)
    one.direct.hset(one.key("state"), "since", 1)  # a throttle that was noted at the same moment
    one.ask()
    assert one.direct.hget(one.key("state"), "since") is None
    assert one.direct.ttl(one.key("state")) > 60 * DAY
    assert one.direct.ttl(one.key("allow")) > 60 * DAY


def test_a_clear_keeps_how_long_an_entry_lives(drive: Drive) -> None:
    one = drive()
    allow(one, seconds=60 * DAY)
    clear(one)
    assert one.direct.ttl(one.key("state")) > 60 * DAY


def test_a_user_can_be_taken_off_the_allow_list(drive: Drive) -> None:
    one = drive()
    hashed = one.do("user_hash", "ann")
    allow(one, seconds=60)
    assert do(one, admin.disallow_steps(one.monitor.session, hashed)) is True
    assert do(one, admin.disallow_steps(one.monitor.session, hashed)) is False
    assert explain(one).allowed is None


def test_top_ranks_the_users_of_one_tenant_by_composite(drive: Drive) -> None:
    one = drive()
    for second in range(51):
        one.ask(at=second, user="hammer")
    for second in range(10):
        one.ask(at=second, user="reader")
    one.ask(at=70, user="guest")
    one.ask(at=80, user="stranger", tenant="other")
    ranking = do(one, admin.top_steps(one.monitor.session, 2, time=START + 90))
    assert [state.user_hash for state in ranking.users] == [one.do("user_hash", name) for name in ("hammer", "reader")]
    assert (ranking.evaluated, ranking.remembered) == (3, 3)
    few = do(one, admin.top_steps(one.monitor.session, 2, scanned=1, time=START + 90))
    assert [state.user_hash for state in few.users] == [one.do("user_hash", "guest")]
    assert (few.evaluated, few.remembered) == (1, 3)


def test_top_says_that_no_list_of_active_users_is_kept_without_the_collective_windows(make_driver: Drive) -> None:
    one = make_driver(collective={"enabled": False})
    with pytest.raises(ConfigError, match=r"collective\.enabled is false"):
        admin.top(one.monitor, 5)


def test_a_user_is_named_by_id_or_by_hash(make_driver: Drive) -> None:
    one = make_driver()
    one.ask(ids(1, 3), user="bo {}:\n")
    hashed = one.do("user_hash", "bo {}:\n")
    assert admin.explain(one.monitor, hashed, hashed=True).collections == (
        admin.explain(one.monitor, "bo {}:\n").collections
    )


@pytest.mark.parametrize("wrong", ["", "short", "x" * 21, "{u.aaaaaaaaaaaaaaa}:", "aaaaaaaaaaaaaaaaaaa\n"])
def test_text_that_is_no_hash_is_refused(make_driver: Drive, wrong: str) -> None:
    with pytest.raises(DataError, match="no user hash"):
        admin.clear(make_driver().monitor, wrong, hashed=True)


@pytest.mark.parametrize("wrong", ["", "a\ud800b"])
def test_a_user_id_that_no_query_can_have_is_refused(make_driver: Drive, wrong: str) -> None:
    with pytest.raises(DataError, match="the user id is"):
        admin.explain(make_driver().monitor, wrong)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 0.0, -5.0, 367 * DAY])
def test_an_impossible_length_on_the_allow_list_is_refused(make_driver: Drive, seconds: float) -> None:
    with pytest.raises(DataError, match="an allow-list entry of"):
        admin.allow(make_driver().monitor, "ann", seconds=seconds, reason="x")


@pytest.mark.parametrize("reason", ["", "   ", "x" * 201, "two\nlines", "\x1b[31mred"])
def test_a_reason_that_cannot_be_shown_is_refused(make_driver: Drive, reason: str) -> None:
    with pytest.raises(DataError, match="the reason must be one line"):
        admin.allow(make_driver().monitor, "ann", seconds=60, reason=reason)


def test_a_store_that_is_away_is_an_error_for_the_administrator() -> None:
    one = Driver(made_settings("redis://127.0.0.1:1"), asynchronous=False)
    try:
        with pytest.raises(StoreError):
            admin.explain(one.monitor, "ann")
    finally:
        one.close()


QUERIES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 1_800.0, ONE_LOST_HOUR, 0.4 * DAY, DAY, 2.5 * DAY]),
        st.integers(1, 40),
        st.integers(0, 12),
        st.sampled_from(["public", "confidential", "restricted"]),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("mode", ["exact", "hyperloglog"])
@given(queries=QUERIES)
@hypothesis_settings.get_profile("monitor")
def test_a_look_reads_the_same_windows_as_the_query_before_it(make_driver: Drive, mode: str, queries: Any) -> None:
    one = make_driver(coverage={"mode": mode})
    one.do("set_size", "kb", 60)
    one.do("user_added", "ann", "kb", doc_ids=ids(1, 2))
    at = 0.0
    for pause, first, count, level in queries:
        at += pause
        decision = one.ask(ids(first, first + count), at=at, level=level)
        assert explain(one, at=at).signals == decision.signals
