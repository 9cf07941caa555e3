"""A user's own baseline: learnt from preceding days, bounded against creep, without the days of an alert."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from monitor_drivers import DAY, START, Driver, ids, reading

pytestmark = pytest.mark.monitor
Drive = Callable[..., Driver]
NOON = DAY - START % DAY + 43_200.0
"""Seconds from START to the noon of day 0."""
STEP = DAY + 60.0
"""From one day's work to the next, whose window then holds nothing of the day before."""


def day_of_work(one: Driver, day: int, *, sensitive: int, public: int) -> float:
    """Record a day's two answers and return the threshold of sensitivity that holds at its end."""
    at = NOON + day * STEP
    one.ask(ids(1, public), at=at)
    last = one.ask(ids(1_001, 1_000 + sensitive), level="confidential", at=at + 1)
    return reading(last, "sensitivity").threshold


def test_a_user_with_too_few_days_has_no_baseline(drive: Drive) -> None:
    one = drive()
    thresholds = [day_of_work(one, day, sensitive=25, public=75) for day in range(6)]
    # On day 6 the days 0 to 4 lie before the window of a day, of which the first part lies in the day before.
    assert thresholds == [0.3] * 6
    assert day_of_work(one, 6, sensitive=25, public=75) == pytest.approx(0.25 + 0.1)


def test_a_user_with_too_few_documents_has_no_baseline(drive: Drive) -> None:
    one = drive()
    thresholds = [day_of_work(one, day, sensitive=8, public=24) for day in range(9)]
    # 32 documents a day: 200 are known from the seventh day before the window on.
    assert thresholds[:8] == [0.3] * 8
    assert thresholds[8] == pytest.approx(0.35)


def test_a_baseline_with_its_margin_never_passes_the_ceiling(drive: Drive) -> None:
    """Creep: a little more each day, always under the threshold of the day; it ends at 0.5."""
    one = drive(coverage={"max_documents": None})
    share, thresholds, throttled = 0.28, [], False
    for day in range(60):
        at = NOON + day * STEP
        sensitive = round(100 * share)
        one.ask(ids(1, 100 - sensitive), at=at)
        last = one.ask(ids(1_001, 1_000 + sensitive), level="confidential", at=at + 1)
        throttled = throttled or last.throttled
        thresholds.append(reading(last, "sensitivity").threshold)
        share = min(0.8, thresholds[-1] - 0.01)
    assert not throttled
    assert max(thresholds) == 0.5
    assert thresholds[-1] == 0.5


def test_without_a_ceiling_the_same_creep_goes_on(drive: Drive) -> None:
    """What the ceiling is for: the test above would pass for any bound if creep ended by itself."""
    one = drive(sensitivity={"baseline": {"ceiling": 1.0}}, coverage={"max_documents": None})
    share, thresholds = 0.28, []
    for day in range(60):
        at = NOON + day * STEP
        sensitive = round(100 * share)
        one.ask(ids(1, 100 - sensitive), at=at)
        last = one.ask(ids(1_001, 1_000 + sensitive), level="confidential", at=at + 1)
        thresholds.append(reading(last, "sensitivity").threshold)
        share = min(0.8, thresholds[-1] - 0.01)
    assert thresholds[-1] > 0.6


def test_days_with_an_alert_are_left_out(drive: Drive) -> None:
    one = drive()
    for day in range(6):
        day_of_work(one, day, sensitive=10, public=90)
    assert one.ask(ids(2_001, 2_400), level="restricted", at=NOON + 6 * STEP).throttled
    for day in range(9, 12):
        last = day_of_work(one, day, sensitive=10, public=90)
    # With the alert's day the share would be (90 + 400) / (900 + 400), far above.
    assert last == 0.3
    baseline = one.direct.hgetall(one.key("base"))
    assert sum(name.startswith(b"f:") for name in baseline) == 1


def test_the_first_day_with_an_alert_does_not_hide_the_others(drive: Drive) -> None:
    one = drive()
    assert one.ask(ids(1, 400), level="restricted", at=NOON).throttled
    thresholds = [day_of_work(one, day, sensitive=25, public=75) for day in range(2, 10)]
    assert thresholds[-1] == pytest.approx(0.35)


def test_days_before_the_weeks_of_the_baseline_are_forgotten(drive: Drive) -> None:
    one = drive(sensitivity={"baseline": {"weeks": 1}})
    for day in range(8):
        day_of_work(one, day, sensitive=28, public=72)
    for day in range(8, 16):
        last = day_of_work(one, day, sensitive=0, public=100)
    assert last == 0.3
    days = [name for name in one.direct.hgetall(one.key("base")) if name.startswith(b"t:")]
    assert len(days) <= 7 + 3


def test_a_baseline_can_be_switched_off(drive: Drive) -> None:
    one = drive(sensitivity={"baseline": {"user": False}})
    assert [day_of_work(one, day, sensitive=25, public=75) for day in range(9)] == [0.3] * 9


def test_a_user_within_the_learnt_baseline_passes_and_one_without_it_does_not(drive: Drive) -> None:
    one = drive()
    for day in range(8):
        day_of_work(one, day, sensitive=28, public=72)
    at = NOON + 9 * STEP
    for user in ("ann", "new"):
        one.ask(ids(1, 65), at=at, user=user)
    used_to_it = one.ask(ids(1_001, 1_035), level="confidential", at=at + 1)
    new = one.ask(ids(1_001, 1_035), level="confidential", at=at + 1, user="new")
    assert reading(used_to_it, "sensitivity").value == reading(new, "sensitivity").value == 0.35
    assert (used_to_it.throttled, new.throttled) == (False, True)
