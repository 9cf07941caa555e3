"""What the monitor does, the same on fakeredis, a real server and a three-node cluster, by both clients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from monitor_drivers import DAY, HOUR, START, WEEK, Driver, ids, reading

pytestmark = pytest.mark.monitor
Drive = Callable[..., Driver]
US = 1_000_000


def test_fifty_queries_an_hour_do_not_alert_and_fifty_one_do(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 1_000)
    decisions = [one.ask(ids(1, 20), at=second) for second in range(51)]
    assert (reading(decisions[49], "volume").value, reading(decisions[49], "volume").alerting) == (50, False)
    assert (reading(decisions[50], "volume").value, reading(decisions[50], "volume").alerting) == (51, True)
    # 0.4 * 50/50 + 0.35 * (20/1000)/0.8 + 0.25 * 0, then the floor of the alerting signal
    assert decisions[49].composite == pytest.approx(0.40875)
    assert [one.throttled for one in decisions] == [False] * 50 + [True]
    assert decisions[50].composite == 0.7


def test_four_fifths_of_a_collection_do_not_alert_and_one_document_more_does(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 100)
    at_most = [one.ask(ids(first, first + 19), at=first) for first in (1, 21, 41, 61)][-1]
    above = one.ask(ids(81, 81), at=100)
    assert (reading(at_most, "coverage").value, reading(at_most, "coverage").alerting) == (0.8, False)
    assert (reading(above, "coverage").value, reading(above, "coverage").alerting) == (0.81, True)
    # 0.4 * 4/50 + 0.35 * 1 + 0.25 * 0 stays below 0.7: a sweeper is caught by the floor alone
    assert at_most.composite == pytest.approx(0.382)
    assert (at_most.throttled, above.throttled, above.composite) == (False, True, 0.7)


@pytest.mark.parametrize("level", ["confidential", "restricted"])
def test_three_tenths_sensitive_do_not_alert_and_one_document_more_does(drive: Drive, level: str) -> None:
    one = drive()
    one.do("set_size", "kb", 1_000)
    one.ask(ids(1, 14), at=0)
    at_most = one.ask(ids(15, 20), level=level, at=1)
    above = one.ask(ids(21, 21), level=level, at=2)
    assert (reading(at_most, "sensitivity").value, reading(at_most, "sensitivity").alerting) == (0.3, False)
    assert reading(above, "sensitivity").count == 7
    assert (reading(above, "sensitivity").total, reading(above, "sensitivity").alerting) == (21, True)
    assert (at_most.throttled, above.throttled) == (False, True)


def test_no_share_counts_before_twenty_documents_were_returned(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 25)
    first = one.ask(ids(1, 19), level="confidential", at=0)
    second = one.ask(ids(20, 20), level="confidential", at=1)
    assert set(first.missing) == {"coverage", "sensitivity"}
    assert reading(first, "sensitivity").not_evaluated == "19 documents returned, 20 needed"
    assert (reading(second, "sensitivity").value, reading(second, "coverage").value) == (1.0, 0.8)


def test_no_share_counts_in_a_collection_of_fewer_than_25_documents(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 24)
    small = one.ask(ids(1, 24), level="confidential", at=0)
    one.do("set_size", "kb", 25)
    large = one.ask(ids(25, 25), level="confidential", at=1)
    assert set(small.missing) == {"coverage", "sensitivity"}
    assert (large.missing, large.throttled) == ((), True)


def test_coverage_without_a_known_size_is_not_evaluated_and_never_0(drive: Drive) -> None:
    one = drive()
    decision = one.ask(ids(1, 30), at=0)
    coverage = reading(decision, "coverage")
    assert (coverage.value, coverage.score, coverage.not_evaluated) == (
        None,
        None,
        "the size of the collection is unknown",
    )
    assert decision.missing == ("coverage",)
    assert decision.collection_size is None
    # (0.4 * 1/50 + 0.25 * 0) / 0.65
    assert decision.composite == pytest.approx(0.4 * 0.02 / 0.65)


def test_a_collection_that_grows_is_measured_by_its_size_now(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 40)
    before = one.ask(ids(1, 30), at=0)
    one.do("set_size", "kb", 60)
    after = one.ask([], at=1)
    assert (reading(before, "coverage").value, reading(after, "coverage").value) == (0.75, 0.5)
    assert before.collection_size is not None
    assert after.collection_size is not None
    assert (before.collection_size.version, after.collection_size.version) == (1, 2)


def test_a_retried_query_counts_once(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 100)
    first = one.ask(ids(1, 20), level="confidential", at=0, query_id="the same")
    again = one.ask(ids(1, 20), level="confidential", at=1, query_id="the same")
    other = one.ask(ids(1, 20), level="confidential", at=2, query_id="another")
    assert [first.duplicate, again.duplicate, other.duplicate] == [False, True, False]
    assert [reading(d, "volume").count for d in (first, again, other)] == [1, 1, 2]
    assert [reading(d, "sensitivity").total for d in (first, again, other)] == [20, 20, 40]
    assert [reading(d, "coverage").count for d in (first, again, other)] == [20, 20, 20]
    assert one.monitor.counts.duplicates == 1


def test_volume_forgets_what_left_its_hour_also_for_an_active_user(drive: Drive) -> None:
    one = drive()
    counts = [reading(one.ask(at=minute * 60), "volume").count for minute in range(0, 181, 10)]
    # A query exactly one hour old still counts, so seven of them stand ten minutes apart.
    assert counts == [1, 2, 3, 4, 5, 6, *[7] * 13]


def test_a_window_holds_a_query_for_exactly_its_length(drive: Drive) -> None:
    one = drive()
    one.ask(at=0)
    assert reading(one.ask(at=HOUR), "volume").count == 2
    assert reading(one.ask(at=HOUR + 0.000_001), "volume").count == 2
    assert reading(one.ask(at=2 * HOUR + 0.000_002), "volume").count == 1


def test_there_is_no_boundary_at_which_a_count_starts_anew(drive: Drive) -> None:
    one = drive()
    on_the_hour = HOUR - START % HOUR
    counts = [reading(one.ask(at=on_the_hour + second), "volume").count for second in range(-10, 10)]
    assert counts == list(range(1, 21))


def test_coverage_forgets_a_document_a_week_after_its_last_retrieval_also_for_an_active_user(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 100)
    one.ask(ids(1, 60), at=0)
    counts = []
    for day in range(1, 10):
        counts.append(reading(one.ask(ids(1, 2), at=day * DAY), "coverage").count)
    assert counts == [60] * 7 + [2, 2]


def test_coverage_counts_a_documents_week_from_its_last_retrieval(drive: Drive) -> None:
    one = drive()
    one.ask(ids(1, 10), at=0)
    one.ask(ids(1, 4), at=4 * DAY)
    counts = [reading(one.ask(at=day * DAY), "coverage").count for day in (7, 8, 11, 12)]
    assert counts == [10, 4, 4, 0]


def test_sensitivity_forgets_an_answer_after_a_day_also_for_an_active_user(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 1_000)
    one.ask(ids(1, 30), level="confidential", at=0)
    shares = []
    for hour in range(6, 49, 6):
        found = reading(one.ask(ids(hour, hour + 9), at=hour * HOUR), "sensitivity")
        shares.append((found.count, found.total))
    assert shares == [(30, 40), (30, 50), (30, 60), (30, 70), *[(0, 50)] * 4]


def test_distinct_sensitive_documents_leave_their_window_too(drive: Drive) -> None:
    one = drive()
    first = one.ask(ids(1, 30), level="restricted", at=0)
    still = one.ask(ids(31, 31), level="restricted", at=DAY)
    gone = one.ask(ids(31, 31), level="restricted", at=DAY + 1)
    assert [reading(d, "sensitivity").capped_count for d in (first, still, gone)] == [30, 31, 1]


def test_coverage_accumulates_over_sessions_and_a_document_twice_changes_nothing(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 100)
    one.ask(ids(1, 20), at=0)
    one.ask(ids(11, 30), at=3 * DAY)
    assert reading(one.ask(ids(1, 40), at=6 * DAY), "coverage").count == 40


def test_users_tenants_and_collections_are_apart(drive: Drive) -> None:
    one = drive()
    for name in ("kb", "other"):
        one.do("set_size", name, 100)
    one.ask(ids(1, 30), at=0)
    other_user = one.ask(ids(1, 20), at=1, user="bob")
    other_tenant = one.ask(ids(1, 21), at=1, tenant="second")
    other_collection = one.ask(ids(1, 22), at=1, collection="other")
    assert [reading(d, "coverage").count for d in (other_user, other_tenant, other_collection)] == [20, 21, 22]
    assert [reading(d, "volume").count for d in (other_user, other_tenant, other_collection)] == [1, 1, 2]


def test_documents_that_a_user_added_count_neither_as_retrieved_nor_as_held(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 200)
    assert one.do("user_added", "ann", "kb", doc_ids=ids(101, 200)) == 100
    half = reading(one.ask(ids(61, 140), at=0), "coverage")
    assert (half.count, half.total, half.value) == (40, 100, 0.4)
    assert one.do("user_removed", "ann", "kb", doc_ids=ids(101, 150)) == 50
    assert reading(one.ask([], at=1), "coverage").total == 150


def test_seeding_as_many_documents_as_the_collection_holds_delays_nothing(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 100)
    plain = [one.ask(ids(first, first + 9), at=first).throttled for first in range(1, 101, 10)]
    one.do("set_size", "kb", 200)
    one.do("user_added", "eve", "kb", doc_ids=[f"seed {number}" for number in range(100)])
    seeded = [one.ask(ids(first, first + 9), at=first, user="eve").throttled for first in range(1, 101, 10)]
    assert plain == seeded
    assert plain.index(True) == 8


def test_an_attacker_whose_seeds_nobody_told_of_is_caught_by_the_cap(drive: Drive) -> None:
    one = drive(coverage={"max_documents": 90})
    one.do("set_size", "kb", 200)
    decisions = [one.ask(ids(first, first + 9), at=first) for first in range(1, 101, 10)]
    assert [d.throttled for d in decisions] == [False] * 9 + [True]
    last = reading(decisions[-1], "coverage")
    assert (last.capped_count, last.cap, last.value, last.score) == (100, 90, 0.5, 1.0)
    assert decisions[-1].reasons == ("coverage: 100 distinct documents in 7 d, at most 90",)


def test_the_cap_on_sensitive_documents_holds_whatever_their_share(drive: Drive) -> None:
    one = drive(sensitivity={"max_documents": 10})
    one.do("set_size", "kb", 10_000)
    one.ask(ids(1, 100), at=0)
    at_most = one.ask(ids(101, 110), level="confidential", at=1)
    above = one.ask(ids(111, 111), level="confidential", at=2, collection="other")
    assert (at_most.throttled, above.throttled) == (False, True)
    assert reading(above, "sensitivity").capped_count == 11


def test_an_unknown_level_counts_as_the_highest_and_is_reported(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 1_000)
    one.ask(ids(1, 14), at=0)
    decision = one.ask(ids(15, 21), level="Confidential ", at=1)
    assert reading(decision, "sensitivity").count == 7
    assert 'unknown sensitivity level "Confidential ", counted as "restricted"' in decision.reasons
    assert one.monitor.counts.unknown_levels == 1
    assert "input" in one.sink.kinds()


def test_a_throttle_always_carries_an_alert_which_is_sent_once_a_window(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 1_000)
    decisions = [one.ask(ids(1, 20), at=second) for second in range(55)]
    throttled = [d for d in decisions if d.throttled]
    assert len(throttled) == 5
    assert all(d.alert is not None for d in throttled)
    assert [d.alert_sent for d in throttled] == [True, False, False, False, False]
    assert one.sink.kinds() == ["throttle"]
    alert = one.sink.alerts[0]
    assert (alert.user, alert.action, alert.composite, alert.throttle_at) == ("ann", "throttle", 0.7, 0.7)
    assert alert.reasons == ("volume: 51 queries in 1 h, at most 50",)
    assert [(s.signal, s.count) for s in alert.signals] == [("volume", 51), ("coverage", 20), ("sensitivity", 0)]


def test_the_same_alert_comes_again_after_its_window(drive: Drive) -> None:
    one = drive(volume={"max_queries": 2, "window_seconds": 100.0})
    one.do("set_size", "kb", 1_000)
    sent = [one.ask(ids(1, 20), at=second).alert_sent for second in range(0, 330, 10)]
    assert [10 * position for position, was_sent in enumerate(sent) if was_sent] == [20, 130, 240]


def test_a_second_signal_alerts_although_the_first_one_did(drive: Drive) -> None:
    one = drive(volume={"max_queries": 2})
    one.do("set_size", "kb", 1_000)
    for second in range(4):
        one.ask(ids(1, 20), at=second)
    decision = one.ask(ids(21, 80), level="restricted", at=10)
    assert decision.alert_sent
    assert one.sink.kinds() == ["throttle", "throttle"]


def test_a_throttled_user_is_released_below_the_release_threshold_once_the_hold_is_over(drive: Drive) -> None:
    one = drive(volume={"max_queries": 10, "window_seconds": 60.0}, composite={"hold_seconds": 600.0})
    for second in range(11):
        last = one.ask(at=second)
    assert last.throttled
    held = one.ask(at=300)
    assert (held.throttled, held.composite) == (True, 0.1)
    assert held.reasons == ("throttled earlier; released once the composite stays below the release threshold",)
    assert held.alert is not None
    released = one.ask(at=1_000)
    assert (released.throttled, released.alert) == (False, None)
    assert not one.ask(at=1_001).throttled


def test_a_throttled_user_stays_so_while_the_composite_hovers_between_the_two_thresholds(drive: Drive) -> None:
    one = drive(volume={"max_queries": 10, "window_seconds": 60.0}, composite={"hold_seconds": 60.0})
    for second in range(11):
        one.ask(at=second)
    hovering = [one.ask(at=11 + 10 * step) for step in range(1, 30)]
    late = hovering[10:]
    assert {d.composite for d in late} == {0.7}
    between = drive(volume={"max_queries": 10, "window_seconds": 60.0}, composite={"hold_seconds": 60.0})
    for second in range(11):
        between.ask(at=second)
    kept = [between.ask(at=11 + 12 * step) for step in range(1, 30)][10:]
    assert {d.composite for d in kept} == {0.6}
    assert all(d.throttled for d in kept)


def test_a_role_moves_the_limits_of_its_users_alone(drive: Drive) -> None:
    roles = {"crawler": {"max_queries": 100}, "support": {"sensitivity_baseline": 0.6}}
    one = drive(roles=roles, volume={"max_queries": 3})
    one.do("set_size", "kb", 1_000)
    crawler = [one.ask(at=second, user="job", role="crawler") for second in range(5)][-1]
    other = [one.ask(at=second, user="ann", role="nobody knows this role") for second in range(5)][-1]
    assert (reading(crawler, "volume").threshold, reading(crawler, "volume").alerting) == (100, False)
    assert (reading(other, "volume").threshold, reading(other, "volume").alerting) == (3, True)
    support = one.ask(ids(1, 20), level="confidential", at=9, user="sue", role="support")
    assert reading(support, "sensitivity").threshold == pytest.approx(0.7)


def test_a_user_on_the_allow_list_passes_until_it_ends(drive: Drive) -> None:
    one = drive(volume={"max_queries": 2})
    one.direct.hset(one.key("state"), "allow", round((START + 100) * US))
    allowed = [one.ask(at=second) for second in range(0, 100, 20)]
    assert not any(d.throttled or d.alert for d in allowed)
    assert allowed[-1].reasons == ("volume: 5 queries in 1 h, at most 2", "the user is on the allow-list")
    assert one.ask(at=100).throttled


def test_a_place_on_the_allow_list_outlives_what_is_noted_about_the_user(drive: Drive) -> None:
    one = drive(volume={"max_queries": 1})
    one.ask(at=0)
    assert one.ask(at=1).throttled
    state = one.key("state")
    one.direct.hset(state, "allow", round((START + 60 * DAY) * US))
    one.direct.pexpire(state, round(61 * DAY * 1_000))
    assert not one.ask(at=2).throttled  # releases the user, which is noted
    assert one.direct.pttl(state) > 59 * DAY * 1_000


def test_the_users_of_a_tenant_together_raise_an_alert_which_throttles_nobody(drive: Drive) -> None:
    one = drive(alerts={"repeat_seconds": 1_000.0})
    one.do("set_size", "kb", 50)
    # The common count is at most ten seconds old.
    decisions = [one.ask(ids(10 * part + 1, 10 * part + 10), at=11 * part, user=f"sybil {part}") for part in range(5)]
    assert not any(d.throttled for d in decisions)
    assert one.sink.kinds() == ["collection"]
    alert = one.sink.alerts[0]
    assert (alert.user, alert.collection, alert.tenant, alert.action) == ("", "kb", "default", "pass")
    one.ask(ids(1, 1), at=500)
    one.ask(ids(1, 1), at=1_100)
    assert one.sink.kinds() == ["collection", "collection"]


def test_every_key_has_a_lifetime(drive: Drive) -> None:
    one = drive(volume={"max_queries": 3})
    one.do("set_size", "kb", 100)
    one.do("user_added", "ann", "kb", doc_ids=["mine"])
    one.do("hold", "ann", "request 1")
    for second in range(6):
        one.ask(ids(1, 90), level="restricted", at=second)
    keys = one.stored_keys()
    names = {key.rpartition("}:")[2].partition(":")[0] for key in keys}
    assert names == {
        "vol",
        "ret",
        "lev",
        "sens",
        "base",
        "state",
        "colls",
        "cov",
        "own",
        "size",
        "active",
        "seen",
        "held",
    }
    assert [key for key in keys if one.direct.pttl(key) <= 0] == []


def test_at_most_so_many_delayed_requests_are_held(drive: Drive) -> None:
    one = drive(throttle={"max_delayed": 2})
    assert [one.do("hold", "ann", f"request {n}") for n in range(3)] == [True, True, False]
    assert one.do("hold", "bob", "request 0")
    one.do("release", "ann", "request 0")
    assert one.do("hold", "ann", "request 3")


def test_two_monitors_on_one_store_see_the_same_user(drive: Drive) -> None:
    one = drive()
    two = drive(store={"url": one.settings.store.url, "prefix": one.prefix})
    one.ask(at=0)
    assert reading(two.ask(at=1), "volume").count == 2


def test_a_week_of_silence_leaves_no_memory_of_a_sweep(drive: Drive) -> None:
    one = drive()
    one.do("set_size", "kb", 50)
    assert one.ask(ids(1, 45), at=0).throttled
    later = one.ask(ids(1, 1), at=WEEK + 1)
    assert (later.throttled, reading(later, "coverage").count) == (False, 1)
