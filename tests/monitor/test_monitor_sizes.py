"""How old a collection's size may be: read by the script on one server, a copy with its age on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from monitor_drivers import Driver, ids, reading

from mragaudit.errors import DataError
from mragaudit.monitor.sizes import CACHED_COLLECTIONS, SizeCache
from mragaudit.records.monitoring import CollectionSize

pytestmark = pytest.mark.monitor
Make = Callable[..., Driver]
CLIENTS = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "asyncio"])


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def with_clock(one: Driver) -> Clock:
    """Let the driver's monitor measure ages by a clock of the test."""
    clock = Clock()
    one.monitor.session._sizes._clock = clock
    return clock


def lose_size_reads(one: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the node that holds the size be away."""
    kept = one.monitor.store.run_all

    def run_all(calls: Any) -> Any:
        answers = kept(calls)
        return [*answers[:2], *[None] * (len(answers) - 2)]

    async def run_all_async(calls: Any) -> Any:
        answers = await kept(calls)
        return [*answers[:2], *[None] * (len(answers) - 2)]

    asynchronous = type(one.monitor).__name__.startswith("Async")
    monkeypatch.setattr(one.monitor.store, "run_all", run_all_async if asynchronous else run_all)


@pytest.mark.redis
@CLIENTS
def test_on_a_cluster_a_decision_carries_the_age_of_the_copy_it_used(make_driver: Make, asynchronous: bool) -> None:
    one = make_driver("cluster", asynchronous=asynchronous, coverage={"size_max_age_seconds": 1.0})
    clock = with_clock(one)
    one.do("set_size", "kb", 100)
    ages, versions = [], []
    for step in (0.0, 0.4, 0.6, 0.1):
        clock.now += step
        size = one.ask(ids(1, 30), at=clock.now).collection_size
        assert size is not None
        ages.append(round(size.age_seconds, 6))
        versions.append(size.version)
    # Read, copy, copy of just a second, read again.
    assert ages == [0.0, 0.4, 1.0, 0.0]
    assert versions == [1, 1, 1, 1]


@pytest.mark.redis
@CLIENTS
def test_on_a_cluster_a_new_size_is_seen_once_the_copy_is_too_old(make_driver: Make, asynchronous: bool) -> None:
    one = make_driver("cluster", asynchronous=asynchronous, coverage={"size_max_age_seconds": 1.0})
    clock = with_clock(one)
    one.do("set_size", "kb", 40)
    one.ask(ids(1, 20), at=0)
    one.do("set_size", "kb", 80)
    clock.now += 0.9
    copy = reading(one.ask([], at=1), "coverage")
    clock.now += 0.2
    read = reading(one.ask([], at=2), "coverage")
    assert (copy.value, read.value) == (0.5, 0.25)


@pytest.mark.redis
@CLIENTS
def test_a_size_that_cannot_be_read_is_unknown_and_never_0_once_the_copy_is_too_old(
    make_driver: Make, asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_driver("cluster", asynchronous=asynchronous, coverage={"size_max_age_seconds": 1.0})
    clock = with_clock(one)
    one.do("set_size", "kb", 40)
    one.ask(ids(1, 40), level="public", at=0)
    lose_size_reads(one, monkeypatch)
    clock.now += 1.0
    assert reading(one.ask([], at=1), "coverage").value == 1.0
    clock.now += 0.001
    decision = one.ask([], at=2)
    coverage = reading(decision, "coverage")
    assert (coverage.value, coverage.score, coverage.total) == (None, None, None)
    assert coverage.not_evaluated == "the size of the collection is unknown"
    assert (decision.missing, decision.collection_size) == (("coverage",), None)
    assert one.monitor.counts.problems == {"part": 1}
    assert one.sink.kinds().count("store") == 1


@pytest.mark.parametrize("kind", ["memory", pytest.param("server", marks=pytest.mark.redis)])
def test_on_one_server_the_script_reads_the_size_itself(kind: str, make_driver: Make) -> None:
    one = make_driver(kind)
    for size in (40, 50):
        one.do("set_size", "kb", size)
        found = one.ask(ids(1, 20), at=size).collection_size
        assert found == CollectionSize(size=size, version=1 + (size == 50), age_seconds=0.0)


def test_a_size_below_nothing_is_refused(make_driver: Make) -> None:
    with pytest.raises(DataError, match='collection "kb": the size is -1; it must be at least 0'):
        make_driver().do("set_size", "kb", -1)


def test_an_empty_collection_is_known_to_be_empty(drive: Make) -> None:
    one = drive()
    one.do("set_size", "kb", 0)
    coverage = reading(one.ask(ids(1, 30), at=0), "coverage")
    assert (coverage.value, coverage.total) == (None, 0)
    assert coverage.not_evaluated == "the collection holds 0 documents by others, 25 needed"


def test_a_cache_keeps_the_collections_used_last() -> None:
    clock = Clock()
    cache = SizeCache(max_age_seconds=10, clock=clock)
    for number in range(CACHED_COLLECTIONS + 1):
        cache.put(f"kb-{number}", (number, 1), asked_at=clock.now)
    assert not cache.is_fresh("kb-0")
    assert cache.copy("kb-1") == CollectionSize(size=1, version=1, age_seconds=0.0)


def test_the_age_of_a_copy_counts_from_when_it_was_asked_for() -> None:
    clock = Clock()
    cache = SizeCache(max_age_seconds=1, clock=clock)
    cache.put("kb", (7, 3), asked_at=clock.now - 0.75)
    assert cache.copy("kb") == CollectionSize(size=7, version=3, age_seconds=0.75)
    clock.now += 0.26
    assert cache.copy("kb") is None


def test_an_entry_that_no_indexer_wrote_is_no_size() -> None:
    cache = SizeCache(max_age_seconds=1, clock=Clock())
    cache.put("kb", (-1, -1), asked_at=1_000.0)
    assert cache.is_fresh("kb")
    assert cache.copy("kb") is None
