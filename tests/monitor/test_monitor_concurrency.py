"""Many workers on one user: the count is exact."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections import Counter
from typing import Any

import pytest
from monitor_drivers import SECRET, Driver, ids, made_settings, reading

from mragaudit.monitor import AsyncExfiltrationMonitor, ExfiltrationMonitor, MonitorSettings
from mragaudit.monitor.connection import MAX_CONNECTIONS
from mragaudit.records.monitoring import Decision

pytestmark = [pytest.mark.monitor, pytest.mark.redis]
WORKERS = 32
EACH = 25
KINDS = ("server", "cluster")


def hammered(settings: MonitorSettings, worker: int) -> list[int]:
    """Record a worker's queries, every fifth one twice, and return the counts that it saw for new ones."""
    counts = []
    with ExfiltrationMonitor(settings, sinks=[], secret=SECRET) as monitor:
        for number in range(EACH):
            for _ in range(1 + (number % 5 == 0)):
                decision = monitor.record(
                    user="ann",
                    query_id=f"{worker} {number}",
                    collection="kb",
                    documents=[(f"doc {worker} {number}", "restricted"), ("doc", "public")],
                )
                assert decision.problem is None
                if not decision.duplicate:
                    counts.append(reading(decision, "volume").count)
    return counts


async def hammered_async(monitor: AsyncExfiltrationMonitor, worker: int) -> list[int]:
    """Do the same on one event loop."""
    counts = []
    for number in range(EACH):
        for _ in range(1 + (number % 5 == 0)):
            decision = await monitor.record(
                user="ann",
                query_id=f"{worker} {number}",
                collection="kb",
                documents=[(f"doc {worker} {number}", "restricted"), ("doc", "public")],
            )
            assert decision.problem is None
            if not decision.duplicate:
                counts.append(reading(decision, "volume").count)
    return counts


def check_exact(settings: MonitorSettings, counts: list[int]) -> None:
    """Every count from 1 to the number of queries was seen by exactly one query, and all windows add up."""
    total = WORKERS * EACH
    assert Counter(counts) == Counter(range(1, total + 1))
    one = Driver(settings, asynchronous=False)
    try:
        last = one.ask(ids(1, 0))
        assert reading(last, "volume").count == total + 1
        assert reading(last, "coverage").count == total + 1  # one document a query, and one that all retrieved
        assert (reading(last, "sensitivity").count, reading(last, "sensitivity").total) == (total, 2 * total)
        assert reading(last, "sensitivity").capped_count == total
    finally:
        one.close()


def busy_settings(url: str) -> MonitorSettings:
    return made_settings(url, store={"url": url, "timeout_seconds": 20.0})


@pytest.mark.parametrize("kind", KINDS)
def test_32_threads_on_one_user_lose_and_invent_nothing(kind: str, url_of: Any) -> None:
    settings, found = busy_settings(url_of(kind)), []
    lock = threading.Lock()

    def work(worker: int) -> None:
        counts = hammered(settings, worker)
        with lock:
            found.extend(counts)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_exact(settings, found)


def test_32_threads_that_share_one_monitor_lose_and_invent_nothing(url_of: Any) -> None:
    settings, found = busy_settings(url_of("server")), []
    with ExfiltrationMonitor(settings, sinks=[], secret=SECRET) as monitor:

        def work(worker: int) -> None:
            for number in range(EACH):
                query = {"user": "ann", "query_id": f"{worker} {number}", "collection": "kb"}
                documents = [(f"doc {worker} {number}", "restricted"), ("doc", "public")]
                found.append(reading(monitor.record(**query, documents=documents), "volume").count)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    check_exact(settings, found)


@pytest.mark.parametrize("kind", KINDS)
def test_32_tasks_on_one_event_loop_lose_and_invent_nothing(kind: str, url_of: Any) -> None:
    settings = busy_settings(url_of(kind))

    async def work() -> list[int]:
        async with AsyncExfiltrationMonitor(settings, sinks=[], secret=SECRET) as monitor:
            parts = await asyncio.gather(*(hammered_async(monitor, worker) for worker in range(WORKERS)))
        return [count for part in parts for count in part]

    check_exact(settings, asyncio.run(work()))


def test_processes_on_one_user_lose_and_invent_nothing(url_of: Any) -> None:
    """Four processes of eight workers each, forked, as a web server's workers are."""
    settings = busy_settings(url_of("server"))
    context = multiprocessing.get_context("fork")
    with context.Pool(4) as pool:
        parts = pool.starmap(hammered, [(settings, worker) for worker in range(WORKERS)])
    check_exact(settings, [count for part in parts for count in part])


def test_a_forked_worker_takes_a_connection_of_its_own(url_of: Any) -> None:
    """A connection that two processes share would mix up their answers."""
    settings = busy_settings(url_of("server"))
    with ExfiltrationMonitor(settings, sinks=[], secret=SECRET) as monitor:
        monitor.record(user="ann", query_id="before", collection="kb", documents=[])

        def work(number: int, results: Any) -> None:
            for turn in range(40):
                decision = monitor.record(
                    user=f"user {number}", query_id=f"{turn}", collection="kb", documents=[("doc", "public")]
                )
                results.put((number, turn + 1, reading(decision, "volume").count))

        context = multiprocessing.get_context("fork")
        results = context.Queue()
        workers = [context.Process(target=work, args=(number, results)) for number in range(3)]
        for worker in workers:
            worker.start()
        work(9, results)
        found = [results.get(timeout=30) for _ in range(160)]
        for worker in workers:
            worker.join()
    assert all(expected == count for _, expected, count in found)


def test_one_worker_alone_sends_an_alert_that_many_see(url_of: Any) -> None:
    url = url_of("server")
    settings = made_settings(url, volume={"max_queries": 5})
    settings = settings.model_copy(update={"store": settings.store.model_copy(update={"timeout_seconds": 20.0})})
    workers = [Driver(settings, asynchronous=False) for _ in range(8)]
    barrier = threading.Barrier(len(workers))

    def work(one: Driver) -> None:
        barrier.wait()
        for _ in range(6):
            one.ask(ids(1, 20))

    threads = [threading.Thread(target=work, args=(one,)) for one in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in workers:
        one.close()
    throttles = [alert for one in workers for alert in one.sink.alerts if "volume" in alert.reasons[0]]
    assert len(throttles) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_more_tasks_than_connections_wait_and_none_goes_uncounted(kind: str, url_of: Any) -> None:
    settings = busy_settings(url_of(kind))

    async def work() -> list[Decision]:
        async with AsyncExfiltrationMonitor(settings, sinks=[], secret=SECRET) as monitor:
            queries = [
                monitor.record(user="ann", query_id=f"{number}", collection="kb", documents=[("doc", "public")])
                for number in range(4 * MAX_CONNECTIONS)
            ]
            return list(await asyncio.gather(*queries))

    decisions = asyncio.run(work())
    assert {decision.problem for decision in decisions} == {None}
    counts = [reading(decision, "volume").count for decision in decisions]
    assert sorted(counts) == list(range(1, 4 * MAX_CONNECTIONS + 1))


def test_more_threads_than_connections_wait_and_none_goes_uncounted(url_of: Any) -> None:
    settings = busy_settings(url_of("cluster"))
    decisions: list[Decision] = []
    with ExfiltrationMonitor(settings, sinks=[], secret=SECRET) as monitor:

        def work(worker: int) -> None:
            query = {"user": "ann", "query_id": f"{worker}", "collection": "kb"}
            decisions.append(monitor.record(**query, documents=[("doc", "public")]))

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(2 * MAX_CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {decision.problem for decision in decisions} == {None}
    assert monitor.counts.problems == {}
