"""Benign users come when their profile says, and ask about their field."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest
from pydantic import ValidationError
from replay_sample import material, profiles

from mragaudit.monitor.traffic.benign import arrival_times, benign_events
from mragaudit.monitor.traffic.campaigns import START
from mragaudit.monitor.traffic.profiles import BenignProfile
from mragaudit.records.replay import QueryEvent


@pytest.fixture(scope="module")
def by_profile() -> dict[str, list[QueryEvent]]:
    found: dict[str, list[QueryEvent]] = {}
    for event in benign_events(material(), profiles(), seed=3, count=1, days=28):
        found.setdefault(event.profile, []).append(event)
    return found


def test_the_traffic_begins_on_a_monday() -> None:
    assert datetime.fromtimestamp(START, tz=UTC).strftime("%A %H:%M") == "Monday 00:00"


def test_every_kind_of_user_of_the_issue_comes(by_profile: dict[str, list[QueryEvent]]) -> None:
    kinds = {"daily_reader", "bursty_researcher", "support_agent", "newcomer", "automated_job"}
    assert set(by_profile) == set(profiles().benign) == kinds


def test_readers_come_on_working_days_alone(by_profile: dict[str, list[QueryEvent]]) -> None:
    days = {datetime.fromtimestamp(one.time, tz=UTC).weekday() for one in by_profile["daily_reader"]}
    assert days <= {0, 1, 2, 3, 4}


def test_an_automated_job_asks_the_same_80_questions_every_week(by_profile: dict[str, list[QueryEvent]]) -> None:
    asked = [one.documents[0].doc_id for one in by_profile["automated_job"]]
    assert len(asked) == 4 * 80
    assert asked[:80] == asked[80:160] == asked[240:]


def test_most_queries_of_a_support_agent_are_about_sensitive_documents(
    by_profile: dict[str, list[QueryEvent]],
) -> None:
    first = Counter(one.documents[0].level for one in by_profile["support_agent"])
    assert 0.7 < first["confidential"] / first.total() < 0.9


def test_a_newcomer_asks_three_times_as_much_in_the_first_week() -> None:
    profile = profiles().benign["newcomer"]
    generator = np.random.default_rng(1)
    times = [time for _ in range(40) for time in arrival_times(profile, generator=generator, days=14)]
    week = 7 * 86_400.0
    first, second = sum(one < week for one in times), sum(one >= week for one in times)
    assert first / second == pytest.approx(3.0, rel=0.15)


def test_users_of_one_seed_share_a_tenant_and_seeds_do_not() -> None:
    one = {event.group for event in benign_events(material(), profiles(), seed=1, count=2, days=7)}
    other = {event.group for event in benign_events(material(), profiles(), seed=2, count=2, days=7)}
    assert len(one) == len(other) == 1
    assert one != other


def test_more_users_leave_the_first_as_it_is() -> None:
    alone = list(benign_events(material(), profiles(), seed=1, count=1, days=7))
    first = [one for one in benign_events(material(), profiles(), seed=1, count=2, days=7) if one.actor.endswith("-1")]
    assert alone == first


def test_hours_that_end_before_they_begin_are_refused() -> None:
    with pytest.raises(ValidationError, match="the first must lie before the second"):
        BenignProfile(reason="x", sessions=1.0, queries=1.0, gap_seconds=1.0, hours=(9, 9))
