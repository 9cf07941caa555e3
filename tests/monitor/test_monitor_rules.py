"""Rules of decision and alert that need a store: attackers by one signal, alerts, reload, several weights."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from monitor_drivers import DAY, HOUR, SECRET, Driver, ids, made_settings, reading

from mragaudit.errors import ConfigError, StoreError
from mragaudit.monitor import MonitorSettings, SettingsFile
from mragaudit.monitor.calls import Mark, mark_call

pytestmark = pytest.mark.monitor
Make = Callable[..., Driver]


@pytest.fixture
def one(make_driver: Make) -> Driver:
    made = make_driver()
    made.do("set_size", "kb", 1_000)
    return made


def test_a_hammerer_is_caught_at_query_51(one: Driver) -> None:
    throttled = [one.ask(ids(1, 20), at=second).throttled for second in range(60)]
    assert throttled.index(True) == 50


def test_a_low_and_slow_sweeper_is_caught_past_four_fifths(one: Driver) -> None:
    """Eight documents an hour over 101 hours of the week: volume 1, sensitivity 0."""
    throttled = [one.ask(ids(8 * n + 1, 8 * n + 8), at=n * HOUR).throttled for n in range(110)]
    assert throttled.index(True) == 100  # 808 of 1,000


def test_a_puller_of_confidential_documents_is_caught_at_the_twentieth_document(one: Driver) -> None:
    throttled = [one.ask(ids(2 * n + 1, 2 * n + 2), level="confidential", at=n * HOUR).throttled for n in range(12)]
    assert throttled.index(True) == 9


def test_a_sweeper_of_a_huge_collection_is_caught_by_the_cap(make_driver: Make) -> None:
    one = make_driver(limits={"documents_per_query": 1_000})
    one.do("set_size", "kb", 1_000_000)
    throttled = [one.ask(ids(500 * n + 1, 500 * n + 500), at=n * HOUR).throttled for n in range(12)]
    assert throttled.index(True) == 10  # 5,500 documents, more than 5,000


def test_a_puller_who_waters_the_share_down_is_caught_by_the_cap_of_sensitive_documents(make_driver: Make) -> None:
    one = make_driver()
    one.do("set_size", "kb", 1_000_000)
    throttled = []
    for n in range(12):
        one.ask(ids(10_000 + 400 * n, 10_000 + 400 * n + 199), at=n * HOUR)
        throttled.append(one.ask(ids(50 * n + 1, 50 * n + 50), level="restricted", at=n * HOUR + 1).throttled)
    assert throttled.index(True) == 10  # 550 sensitive documents, more than 500, at a share of 0.2


def test_what_left_the_day_does_not_count_towards_the_twenty_documents(one: Driver) -> None:
    """Twenty documents in the week but two today: two of two sensitive is no share yet."""
    one.ask(ids(1, 30), at=0)
    later = one.ask(ids(31, 32), level="confidential", at=2 * DAY)
    sensitivity = reading(later, "sensitivity")
    assert (sensitivity.value, sensitivity.not_evaluated) == (None, "2 documents returned, 20 needed")
    assert reading(later, "coverage").value == 0.032
    assert not later.throttled


def test_a_missing_signal_always_says_why(one: Driver) -> None:
    one.ask(ids(1, 30), at=0)
    nothing = reading(one.ask([], at=2 * DAY), "sensitivity")
    assert (nothing.value, nothing.not_evaluated) == (None, "0 documents returned, 20 needed")


def test_a_throttle_is_told_of_although_its_signal_was_told_of_before(make_driver: Make) -> None:
    """With a floor below the threshold a signal alerts without throttling; what throttles later is news."""
    one = make_driver(volume={"max_queries": 2}, composite={"floor": 0.3, "hold_seconds": 1.0})
    one.do("set_size", "kb", 40)
    for second in range(3):
        decision = one.ask(ids(1, 20), at=second)
    assert (decision.throttled, one.sink.kinds()) == (False, ["signal"])
    throttle = one.ask(ids(21, 30), level="restricted", at=3)
    assert (throttle.throttled, throttle.alert_sent) == (True, True)
    assert one.sink.kinds()[-1] == "throttle"


def test_a_throttle_after_an_early_warning_is_told_of(make_driver: Make) -> None:
    one = make_driver(composite={"alert_at": 0.35})
    one.do("set_size", "kb", 1_000)
    kinds = []
    for second in range(60):
        one.ask(ids(1, 20), at=second)
        kinds.append(list(one.sink.kinds()))
    assert kinds[41] == []  # 0.4 * 42/50 + 0.35 * 0.025 = 0.34475
    assert kinds[42] == ["composite"]
    assert kinds[50] == ["composite", "throttle"]


def test_without_an_early_warning_nothing_below_the_threshold_is_told_of(one: Driver) -> None:
    for second in range(50):
        one.ask(ids(1, 20), at=second)
    assert one.sink.kinds() == []


def test_a_throttled_user_is_held_for_at_least_the_hold_after_the_last_query_above_the_threshold(
    make_driver: Make,
) -> None:
    one = make_driver(volume={"max_queries": 10, "window_seconds": 60.0}, composite={"hold_seconds": 600.0})
    one.do("set_size", "kb", 1_000)
    for second in range(65):
        last = one.ask(ids(1, 20), at=second)
    assert last.throttled
    assert one.ask(at=64 + 600).throttled
    assert not one.ask(at=64 + 661).throttled


def test_answers_are_truncated_where_that_is_the_response(make_driver: Make) -> None:
    one = make_driver(volume={"max_queries": 1}, throttle={"response": "truncate", "max_results": 3})
    one.ask(at=0)
    decision = one.ask(at=1)
    assert (decision.throttled, decision.delay_seconds, decision.max_results) == (True, 0.0, 3)


def test_a_delayed_answer_keeps_its_documents(make_driver: Make) -> None:
    one = make_driver(volume={"max_queries": 1})
    one.ask(at=0)
    decision = one.ask(at=1)
    assert (decision.delay_seconds, decision.max_results) == (5.0, None)


def test_a_store_that_is_away_is_told_of_once_a_minute(make_driver: Make) -> None:
    clock = [1_000.0]
    one = make_driver(options={"clock": lambda: clock[0], "connection": away()}, store={"breaker_failures": 1_000})
    sent = []
    for _ in range(13):
        sent.append(one.ask().alert_sent)
        clock[0] += 10
    assert [10 * n for n, was_sent in enumerate(sent) if was_sent] == [0, 70]


def away() -> Any:
    from redis import ConnectionError as Refused  # noqa: PLC0415 - needs the extra `monitor`

    from mragaudit.monitor.connection import Connection  # noqa: PLC0415

    class Client:
        def __getattr__(self, name: str) -> Any:
            def call(*_: Any, **__: Any) -> Any:
                raise Refused("refused")

            return (lambda: None) if name == "close" else call

    return Connection(Client(), cluster=False)


class FailingSink:
    def send(self, _: Any) -> None:
        raise RuntimeError("the sink is broken")

    def close(self) -> None:
        """Nothing is open."""


def test_a_sink_that_fails_keeps_nothing_from_the_others_nor_from_the_served_query(make_driver: Make) -> None:
    from monitor_drivers import ListSink  # noqa: PLC0415

    other = ListSink()
    one = make_driver(options={"sinks": [FailingSink(), other]}, volume={"max_queries": 1})
    one.ask(at=0)
    assert one.ask(at=1).throttled
    assert other.kinds()[-1] == "throttle"


# --- settings ----------------------------------------------------------------------------------------------------


def test_edited_settings_are_taken_over_and_a_faulty_edit_changes_nothing(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "monitor.yaml"
    path.write_text("store: {url: 'memory://reload'}\nvolume: {max_queries: 2}\n")
    file = SettingsFile(path, clock=lambda: now[0])
    one = Driver(file, asynchronous=False)  # type: ignore[arg-type]  # the monitor takes either
    thresholds = [reading(one.ask(at=0), "volume").threshold]
    for text in ("volume: {max_queries: 9}", "volume: {max_queries: -1}", "volume: {max_queries: 7}"):
        path.write_text(f"store: {{url: 'memory://reload'}}\n{text}\nlevels: [low, high]\nsensitive_from: high\n")
        now[0] += 3
        thresholds.append(reading(one.ask(ids(1, 2), level="high", at=1), "volume").threshold)
    one.close()
    assert thresholds == [2, 9, 9, 7]


def test_a_reload_between_a_query_and_its_answer_changes_nothing_for_that_query(make_driver: Make) -> None:
    """Other levels would not fit the counts that the script gave for the old ones."""
    one = make_driver()
    session = one.monitor.session
    kept = one.monitor.store.run_all

    def run_all(calls: Any) -> Any:
        answers = kept(calls)
        session._apply(made_settings("memory://unused", levels=("low", "high"), sensitive_from="high"))
        return answers

    one.monitor.store.run_all = run_all
    assert one.ask(ids(1, 3), at=0).problem is None


def test_a_reload_takes_the_age_of_sizes_over(make_driver: Make) -> None:
    one = make_driver()
    one.monitor.session._apply(made_settings("memory://unused", coverage={"size_max_age_seconds": 77.0}))
    assert one.monitor.session._sizes._max_age == 77.0


def test_windows_lengthened_by_a_reload_hold_for_users_who_are_there_already(make_driver: Make) -> None:
    one = make_driver(volume={"window_seconds": 100.0})
    one.ask(at=0)
    one.monitor.session._apply(one.settings.model_copy(update={"volume": MonitorSettings().volume}))
    assert reading(one.ask(at=90), "volume").count == 2
    assert reading(one.ask(at=2_000), "volume").count == 3


@pytest.mark.parametrize("url", ["http://localhost", "", "redis", "memcached://x", "redis:/x"])
def test_a_store_of_another_kind_is_refused_by_name(url: str) -> None:
    with pytest.raises(ConfigError, match=r"store\.url: the scheme is none of redis://, rediss://, unix://"):
        Driver(made_settings(url), asynchronous=False)


def test_many_threads_on_the_embedded_store_lose_nothing() -> None:
    settings = made_settings("memory://threads", store={"url": "memory://threads", "timeout_seconds": 30.0})
    workers = [Driver(settings, asynchronous=False, secret=SECRET) for _ in range(8)]
    threads = [threading.Thread(target=lambda one=one: [one.ask() for _ in range(10)]) for one in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reading(workers[0].ask(), "volume").count == 81
    for one in workers:
        one.close()


def test_a_query_costs_one_call_of_a_script(one: Driver) -> None:
    calls = []
    kept = one.monitor.store.client.evalsha
    one.ask(ids(1, 5), at=0)
    one.monitor.store.client.evalsha = lambda *args: calls.append(args[0]) or kept(*args)
    for second in range(1, 30):
        one.ask(ids(1, 20), at=second)
    assert len(calls) == 29
    assert len(set(calls)) == 1


def test_a_decision_is_made_by_the_stores_clock_and_carries_it(make_driver: Make) -> None:
    one = make_driver(options={"clock": lambda: 5.0})
    assert abs(one.ask().time - time.time()) < 60


def test_an_alert_of_a_slightly_younger_query_is_not_repeated_by_an_older_one(make_driver: Make) -> None:
    """Workers note their decisions in another order than they asked; only a clock that went back frees an alert."""
    one = make_driver()
    state = one.key("state")

    def claim(at: float) -> list[int]:
        mark = Mark(change="none", flag_day=False, claims={"volume": 3_600.0}, time=at, lifetime_seconds=9_000.0)
        won: list[int] = one.run(mark_call(mark, state=state, baseline=None))
        return won

    assert [claim(at) for at in (10_000.0, 9_999.999, 9_941.0, 9_900.0, 9_901.0)] == [[1], [0], [0], [1], [0]]


def test_a_query_that_fails_leaves_none_of_its_calls_under_way(
    make_driver: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_driver(asynchronous=True)
    finished = []

    async def run(call: str) -> str:
        if call == "first":
            raise StoreError("away")
        await asyncio.sleep(0.01)
        finished.append(call)
        return call

    monkeypatch.setattr(one.monitor.store, "run", run)
    with pytest.raises(StoreError, match="away"):
        one.wait_for(one.monitor.store.run_all(["first", "second"]))
    assert finished == ["second"]
