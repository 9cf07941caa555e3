"""Random interleavings of users, retries, clock jumps and expiries: the store counts what a plain model counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitor_drivers import START, made_settings
from window_model import SECOND_US, Asked, WindowModel, Windows

from mragaudit.monitor.breaker import Breakers
from mragaudit.monitor.calls import Mark, RecordCalls, mark_call, read_counts
from mragaudit.monitor.connection import connect
from mragaudit.monitor.keys import UserKeys
from mragaudit.monitor.queries import Query
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.sizes import own_call
from mragaudit.monitor.store import Store
from mragaudit.monitor.windows import WindowCounts

pytestmark = pytest.mark.monitor
KINDS = ["memory", *(pytest.param(kind, marks=pytest.mark.redis) for kind in ("server", "cluster"))]
USERS, COLLECTIONS = ("ann", "bob"), ("kb", "wiki: {x}")
DOCUMENTS = [*(f"d{number}" for number in range(7)), "d:d1", "+", "h:x", "long " * 30]
LEVELS = ("public", "internal", "confidential", "restricted")
AGES_FOREVER = 10**12
"""Milliseconds; a key with so much left was not given a lifetime by the last call."""
_numbers = itertools.count()

documents = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from(LEVELS), max_size=5)
# Ends of the windows of 100, 250 and 400 seconds to the microsecond, given that each query takes one; parts of them,
# so that keys are kept alive by queries in between; days, and the way to the first midnight.
SECONDS = [0.000_001, 1.0, 40.0, 60.0, 99.999_999, 100.0, 130.0, 150.0, 249.999_999, 250.0, 399.999_999, 400.0, 460.1]
DAYS = [6_400.0, 43_200.0, 86_400.0, 86_400.0, 200_000.0, 700_000.0]
forward = st.tuples(st.just("move"), st.sampled_from([*SECONDS, *SECONDS, *DAYS]))
back_a_little = st.tuples(st.just("move"), st.sampled_from([-0.5, -10.0, -59.0]))
back_far = st.tuples(st.just("move"), st.sampled_from([-one for one in (*SECONDS, *DAYS)]))
query = st.tuples(
    st.just("ask"),
    st.sampled_from(["ann", "ann", "ann", "bob"]),
    st.integers(0, 12),
    st.sampled_from(["kb", "kb", "wiki: {x}"]),
    documents,
)
own = st.tuples(
    st.sampled_from(["add", "remove"]),
    st.sampled_from(USERS),
    st.sampled_from(COLLECTIONS),
    st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=3, unique=True),
)
alert = st.tuples(st.just("alert"), st.sampled_from(USERS))


def steps(back: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Return sequences of mostly queries and moves forward."""
    kinds = [query] * 7 + [forward] * 4 + [back, own, alert]  # a union would count equal ones once
    return st.lists(st.sampled_from(kinds).flatmap(lambda kind: kind), min_size=25, max_size=80)


def small(url: str, **coverage: Any) -> MonitorSettings:
    """Return settings with short windows, and with bounds below what a user is allowed, to reach them."""
    found = made_settings(
        url,
        volume={"window_seconds": 100.0},
        coverage={"window_seconds": 400.0, "sub_window_seconds": 100.0} | coverage,
        sensitivity={"window_seconds": 250.0, "baseline": {"weeks": 1}},
        collective={"window_seconds": 400.0, "sub_window_seconds": 100.0},
    )
    volume = found.volume.model_copy(update={"tracked_queries": 6})
    sensitivity = found.sensitivity.model_copy(update={"tracked_queries": 5})
    bounded = found.coverage.model_copy(update={"tracked_documents": 9})
    return found.model_copy(update={"volume": volume, "sensitivity": sensitivity, "coverage": bounded})


def windows_of(given: MonitorSettings) -> Windows:
    """Return the same windows and bounds for the model."""
    return Windows(
        volume_us=100 * SECOND_US,
        coverage_us=400 * SECOND_US,
        sensitivity_us=250 * SECOND_US,
        tracked_queries=given.volume.tracked_queries,
        tracked_answers=given.sensitivity.tracked_queries,
        tracked_documents=given.coverage.tracked_documents,
        baseline_days=7,
        sensitive_levels=given.sensitive_levels,
    )


@dataclass
class Storehouse:
    """A real store under simulated time: keys whose lifetime has passed are deleted, as a server would."""

    settings: MonitorSettings
    store: Store
    direct: Any
    now: int = round(START * SECOND_US)
    dies_at: dict[bytes, int] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        return self.settings.store.prefix

    def move(self, by_seconds: float) -> None:
        self.now = max(1, self.now + round(by_seconds * SECOND_US))
        for key in [key for key, end in self.dies_at.items() if end <= self.now]:
            self.direct.delete(key)
            del self.dies_at[key]

    def note_lifetimes(self) -> None:
        """Note when each key dies by simulated time; one without a lifetime is a fault."""
        keys = list(self.direct.scan_iter(match=f"{self.prefix}:*", count=1_000))
        with self.direct.pipeline(transaction=False) as batch:
            for key in keys:
                batch.pttl(key)
            lifetimes = batch.execute()
        for key, left in zip(keys, lifetimes, strict=True):
            assert left != -1, f"{key!r} has no lifetime"
            if left < AGES_FOREVER // 2:
                # Fractions of a second passed for real since the call.
                self.dies_at[key] = self.now + (left + 999) // 1_000 * SECOND_US
                self.direct.pexpire(key, AGES_FOREVER)

    def ask(self, user: str, query_id: str, collection: str, levels: dict[str, str]) -> WindowCounts:
        by_level = grouped(levels)
        made = Query(
            user=user,
            query_id=query_id,
            collection=collection,
            tenant="default",
            role=None,
            by_level=by_level,
            unknown_levels=(),
            time=self.now / SECOND_US,
        )
        calls = RecordCalls(self.settings, cluster=self.store.cluster).calls(made, user)
        counts = read_counts(self.store.run_all(calls), levels=self.settings.levels)
        self.note_lifetimes()
        return counts

    def own(self, user: str, collection: str, doc_ids: list[str], *, added: bool) -> None:
        self.store.run(own_call(self.settings, user_hash=user, collection=collection, doc_ids=doc_ids, added=added))
        self.note_lifetimes()

    def alert(self, user: str) -> None:
        keys = UserKeys(self.prefix, user)
        mark = Mark(change="none", flag_day=True, claims={}, time=self.now / SECOND_US, lifetime_seconds=1_000.0)
        self.store.run(mark_call(mark, state=keys.key("state"), baseline=keys.key("base")))


def grouped(levels: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Return document ids by level."""
    return {level: tuple(d for d, one in levels.items() if one == level) for level in dict.fromkeys(levels.values())}


@pytest.fixture
def opened(url_of: Callable[[str], str]) -> Iterator[Callable[..., Storehouse]]:
    """Return a maker of storehouses, each under a prefix of its own on one connection."""
    made: dict[str, tuple[Store, Any]] = {}

    def open_(kind: str, **coverage: Any) -> Storehouse:
        if kind not in made:
            url = url_of(kind)
            given = small(url)
            breakers = Breakers(failures=1_000, open_seconds=1.0, cluster=kind == "cluster")
            store = Store(connect(given.store), prefix="unused", breakers=breakers)
            made[kind] = store, connect(given.store).client
        store, direct = made[kind]
        return Storehouse(small("memory://unused", **coverage), store, direct)

    yield open_
    for store, direct in made.values():
        store.close()
        direct.close()


def counted(house: Storehouse, model: WindowModel, *, script: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Run a script against both and yield what each counted at every query, all counts of one in one tuple."""
    for step in script:
        if step[0] == "move":
            house.move(step[1])
        elif step[0] == "alert":
            house.alert(step[1])
            model.alert(step[1], house.now)
        elif step[0] in ("add", "remove"):
            house.own(*step[1:], added=step[0] == "add")
            (model.add_own if step[0] == "add" else model.remove_own)(*step[1:])
        else:
            _, user, number, collection, levels = step
            house.move(0.000_001)  # no two queries at one microsecond, so that the oldest is always one
            found = house.ask(user, f"q{number}", collection, levels)
            asked = Asked(
                user=user, query_id=f"q{number}", collection=collection, by_level=grouped(levels), time=house.now
            )
            expected = model.ask(asked)
            baseline = (found.baseline_sensitive, found.baseline_returned, found.baseline_days)
            yield (
                (found.time, *_counts(found), baseline),
                (house.now / SECOND_US, *_counts(expected), expected.baseline),
            )


def _counts(one: Any) -> tuple[Any, ...]:
    documents = (one.distinct_documents, one.own_documents, one.distinct_sensitive_documents)
    return (one.duplicate, one.queries, *documents, one.returned)


@pytest.mark.parametrize("kind", KINDS)
def test_no_interleaving_counts_otherwise_than_the_model(kind: str, opened: Callable[..., Storehouse]) -> None:
    """Keys die when their lifetime has passed; the clock goes forward, and back by less than a lifetime's margin."""

    @settings(settings.get_profile("monitor"), max_examples=12 if kind == "cluster" else 40)
    @given(steps(back_a_little))
    def check(script: list[Any]) -> None:
        house = opened(kind)
        for found, expected in counted(house, WindowModel(windows_of(house.settings)), script=script):
            assert found == expected

    check()


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_clock_that_jumps_back_far_counts_as_the_model_does(kind: str, opened: Callable[..., Storehouse]) -> None:
    """No key dies here: which ones a server has deleted before its clock went back is no matter of the script."""

    @settings(settings.get_profile("monitor"), max_examples=12 if kind == "cluster" else 40)
    @given(steps(back_far))
    def check(script: list[Any]) -> None:
        house = opened(kind)
        house.note_lifetimes = lambda: None  # type: ignore[method-assign]
        for found, expected in counted(house, WindowModel(windows_of(house.settings)), script=script):
            assert found == expected

    check()
