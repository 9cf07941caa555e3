"""Coverage by sketches: never less than the window, at most one sub-window more, 0.81 % standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitor_drivers import DAY, START, WEEK, Driver, ids, reading

pytestmark = pytest.mark.monitor
Drive = Callable[..., Driver]
HLL = {"mode": "hyperloglog"}
STANDARD_ERROR = 0.0081
"""1.04 / sqrt(16384), the standard error of Redis' HyperLogLog."""


def count(one: Driver, doc_ids: list[str], *, at: float) -> int:
    return reading(one.ask(doc_ids, at=at), "coverage").count


def test_small_numbers_of_documents_are_counted_exactly(drive: Drive) -> None:
    one = drive(coverage=HLL)
    one.do("set_size", "kb", 100)
    assert count(one, ids(1, 30), at=0) == 30
    assert count(one, ids(21, 50), at=1) == 50
    assert reading(one.ask([], at=2), "coverage").value == 0.5


def test_a_document_leaves_at_the_earliest_after_the_window_and_a_sub_window_later_at_the_latest(drive: Drive) -> None:
    """Seen at 22:13 of a day: it has left the window a week later and is counted until that day's end."""
    one = drive(coverage=HLL)
    count(one, ids(1, 10), at=0)
    to_midnight = DAY - START % DAY
    found = [count(one, [], at=at) for at in (1, WEEK - 1, WEEK, WEEK + to_midnight - 1, WEEK + to_midnight)]
    assert found == [10, 10, 10, 10, 0]


def test_an_active_user_is_forgotten_day_by_day(drive: Drive) -> None:
    one = drive(coverage=HLL)
    found = [count(one, ids(10 * day + 1, 10 * day + 10), at=day * DAY) for day in range(14)]
    # Seven whole days and the running one, never more than eight.
    assert found == [10, 20, 30, 40, 50, 60, 70, *[80] * 7]


def test_a_slot_that_was_not_used_for_long_starts_empty(drive: Drive) -> None:
    one = drive(coverage=HLL)
    count(one, ids(1, 20), at=0)
    ring = one.settings.coverage.ring
    assert count(one, ids(31, 33), at=5 * ring * DAY) == 3  # the same slot, five rounds later
    assert count(one, ids(34, 34), at=5 * ring * DAY + 1) == 4


def test_a_clock_that_goes_back_loses_nothing_new(drive: Drive) -> None:
    one = drive(coverage=HLL)
    ring = one.settings.coverage.ring
    count(one, ids(1, 5), at=0)
    assert count(one, ids(6, 10), at=-DAY) == 10
    assert count(one, ids(11, 15), at=-ring * DAY) == 15  # the slot of day 0, which is newer: nothing is emptied
    assert count(one, [], at=WEEK) == 10  # of day -1 nothing is left; what was seen on day -8 shares a slot with day 0


def test_a_retry_adds_nothing_to_a_sketch(drive: Drive) -> None:
    one = drive(coverage=HLL)
    one.ask(ids(1, 5), at=0, query_id="same")
    again = one.ask(ids(6, 9), at=1, query_id="same")
    assert (again.duplicate, reading(again, "coverage").count) == (True, 5)


def test_a_users_own_documents_stay_out_of_the_sketch(drive: Drive) -> None:
    one = drive(coverage=HLL)
    one.do("user_added", "ann", "kb", doc_ids=ids(1, 10))
    assert count(one, ids(1, 15), at=0) == 5


def test_every_sketch_has_a_lifetime_and_they_are_bounded_in_number(drive: Drive) -> None:
    one = drive(coverage=HLL)
    for day in range(20):
        count(one, ids(day, day + 1), at=day * DAY)
    keys = [key for key in one.stored_keys() if ":hll:" in key]
    assert len(keys) == one.settings.coverage.ring + 1 == 9
    assert [key for key in one.stored_keys() if one.direct.pttl(key) <= 0] == []


@pytest.mark.redis
def test_the_estimate_has_the_stated_standard_error(make_driver: Drive) -> None:
    """Mean squared relative error over 60 users of 2,000 documents each, on a real server.

    Under a standard error of 0.81 % the sum of squared standardised errors is near chi squared with 60 degrees of
    freedom, of which 99.99 % lies between 27.0 and 110.0: so the root mean square lies from 0.54 to 1.10 %.
    """
    one = make_driver("server", coverage=HLL, limits={"documents_per_query": 1_000})
    errors = []
    for user in range(60):
        for part in range(2):
            documents = [f"document {user} {number}" for number in range(1_000 * part, 1_000 * part + 1_000)]
            last = one.ask(documents, user=f"user {user}", at=part)
        errors.append(reading(last, "coverage").count / 2_000 - 1)
    root_mean_square = math.sqrt(sum(error**2 for error in errors) / len(errors))
    low, high = (STANDARD_ERROR * math.sqrt(chi / 60) for chi in (27.0, 110.0))
    assert low < root_mean_square < high
    # The mean of 60 errors has a standard error of 0.81 % / sqrt(60); four of them.
    assert abs(sum(errors) / 60) < 4 * STANDARD_ERROR / math.sqrt(60)


steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 10.0, 99.0, 100.0, 150.0, 350.0, 399.0, 400.0, 1_000.0]),
        st.lists(st.sampled_from([f"d{number}" for number in range(10)]), max_size=4, unique=True),
    ),
    min_size=5,
    max_size=25,
)


@pytest.mark.parametrize("kind", ["memory", pytest.param("server", marks=pytest.mark.redis)])
def test_the_ring_counts_between_the_window_and_a_sub_window_more(kind: str, make_driver: Drive) -> None:
    """Ten documents are few enough to be told apart by a sketch without error."""
    one = make_driver(kind, coverage=HLL | {"window_seconds": 400.0, "sub_window_seconds": 100.0})
    users = iter(range(10_000))

    @settings(settings.get_profile("monitor"), max_examples=30)
    @given(steps)
    def check(script: list[Any]) -> None:
        user, now, seen = f"user {next(users)}", 0.0, {}
        for by, doc_ids in script:
            now += by
            seen |= dict.fromkeys(doc_ids, now)
            found = reading(one.ask(doc_ids, at=now, user=user), "coverage").count
            in_window = sum(now - last <= 400 for last in seen.values())
            in_longer = sum(now - last < 500 for last in seen.values())
            assert in_window <= found <= in_longer

    check()


def test_the_common_count_of_a_tenant_forgets_too(drive: Drive) -> None:
    """It is at most ten seconds old, and spans a day and the running four hours."""
    one = drive(alerts={"repeat_seconds": 60.0})
    one.do("set_size", "kb", 50)
    one.ask(ids(1, 45), at=0)
    assert one.sink.kinds().count("collection") == 1
    one.ask([], at=DAY, user="bob")
    assert one.sink.kinds().count("collection") == 2
    one.ask([], at=DAY + 14_400 + 1, user="bob")
    assert one.sink.kinds().count("collection") == 2
