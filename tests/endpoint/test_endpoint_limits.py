"""How many calls are under way, how fast they come, and what closing early leaves behind."""

from __future__ import annotations

import asyncio
import selectors
import threading
import time

import pytest
from endpoint_requests import Make, asks, choice, texts
from fake_openai import FakeServer, Fault

from mragaudit.llm.http_client import Bucket

pytestmark = pytest.mark.http


class _Skipping(selectors.DefaultSelector):
    """Waits no time: its clock jumps to the end of every wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


def taken_at(per_minute: float, amounts: list[float]) -> list[float]:
    """Return the seconds at which a bucket gives these amounts, asked for one after another."""

    async def take() -> list[float]:
        bucket = Bucket(per_minute)
        times = []
        for amount in amounts:
            await bucket.take(amount)
            times.append(loop.time())
        return times

    selector = _Skipping()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(take())
    finally:
        loop.close()


def test_requests_of_a_slow_limit_come_one_by_one() -> None:
    assert taken_at(30, [1] * 4) == pytest.approx([0, 2, 4, 6], abs=0.01)


def test_of_a_fast_limit_a_seconds_worth_may_come_at_once() -> None:
    assert taken_at(300, [1] * 12) == pytest.approx([0] * 5 + [0.2 * step for step in range(1, 8)], abs=0.01)


def test_an_amount_above_the_burst_is_waited_for_in_parts() -> None:
    assert taken_at(600, [10, 40, 5]) == pytest.approx([0, 4, 4.5], abs=0.01)


def test_a_minute_holds_no_more_than_its_limit_and_one_burst() -> None:
    times = taken_at(120, [1] * 400)
    assert max(sum(start <= other < start + 60 for other in times) for start in times) <= 120 + 2


def test_the_server_sees_as_many_calls_at_once_as_allowed_and_no_more(make: Make) -> None:
    with FakeServer(latency_seconds=0.05) as server:
        assert len(texts(make(server.base_url, concurrency=7).generate(asks(40)))) == 40
        assert server.most_under_way == 7
        assert len(list(make(server.base_url, concurrency=3).choose([choice(str(n)) for n in range(9)]))) == 9
    assert len(server.seen) == 40 + 18


def test_a_limit_of_requests_a_minute_slows_the_calls_down(make: Make) -> None:
    with FakeServer() as server:
        started = time.perf_counter()
        texts(make(server.base_url, requests_per_minute=1200).generate(asks(30)))
        # 20 at once, then 10 at 20 a second.
        assert time.perf_counter() - started >= 0.5


def test_a_limit_of_tokens_a_minute_counts_prompt_and_answer(make: Make) -> None:
    with FakeServer() as server:
        started = time.perf_counter()
        # A request counts at least the 8 tokens of its answer: 10 of them, less a burst of 60, at 60 a second.
        texts(make(server.base_url, tokens_per_minute=3600).generate(asks(10)))
        assert time.perf_counter() - started >= (10 * 8 - 60) / 60


def test_answers_come_out_as_they_finish(make: Make) -> None:
    slow = Fault(sleep_seconds=1.0)
    with FakeServer(fault=lambda _number, seen: slow if "Question 0" in seen.text else None) as server:
        found = make(server.base_url, concurrency=2).generate(asks(4))
        assert [position for position, _ in found] == [1, 2, 3, 0]


def test_closing_early_ends_the_calls_under_way(make: Make) -> None:
    with FakeServer(latency_seconds=0.2) as server:
        backend = make(server.base_url, concurrency=4)
        running = backend.generate(asks(100))
        next(running)
        running.close()  # type: ignore[attr-defined]
        calls = backend.meter.calls
        time.sleep(0.5)
        assert backend.meter.calls == calls
        assert server.under_way == 0
        assert len(server.seen) <= 12
        # The backend is as good as new.
        assert len(texts(backend.generate(asks(3)))) == 3


def test_closing_the_backend_ends_the_calls_of_an_answer_that_nobody_took(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with FakeServer(latency_seconds=0.2) as server:
        backend = make(server.base_url, concurrency=4)
        running = backend.generate(asks(100))
        next(running)
        backend.close()
        assert len(server.seen) <= 12
        running.close()  # type: ignore[attr-defined]
    # The server's own log tells of clients that went away.
    assert [record.name for record in caplog.records if record.name != "aiohttp.server"] == []


def test_nothing_is_asked_before_the_first_answer_is_wanted(make: Make) -> None:
    with FakeServer() as server:
        make(server.base_url).generate(asks(3))
        time.sleep(0.1)
        assert server.seen == []


def test_a_consumer_that_falls_behind_stops_the_asking(make: Make) -> None:
    with FakeServer() as server:
        backend = make(server.base_url, concurrency=4)
        running = backend.generate(asks(300))
        next(running)
        time.sleep(1.0)
        assert len(server.seen) <= 1 + backend.batch_calls + 2 * 4
        assert len(list(running)) == 299


def test_the_meter_counts_every_call_and_the_time_with_any_under_way_once(make: Make) -> None:
    with FakeServer(latency_seconds=0.1) as server:
        backend = make(server.base_url, concurrency=10)
        started = time.perf_counter()
        texts(backend.generate(asks(20)))
        wall = time.perf_counter() - started
    assert backend.meter.calls == 20
    assert 0.2 <= backend.meter.seconds <= wall


def test_closing_leaves_no_thread(make: Make) -> None:
    before = threading.active_count()
    with FakeServer() as server:
        backend = make(server.base_url)
        texts(backend.generate(asks(2)))
        backend.close()
    assert threading.active_count() == before
