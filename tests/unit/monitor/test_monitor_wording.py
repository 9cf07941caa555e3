"""What an alert says: observed value, threshold crossed, window."""

from __future__ import annotations

from typing import Any

import pytest

from mragaudit.monitor.core import MonitorCore
from mragaudit.monitor.queries import checked_query
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.windows import CollectiveCounts, Throttled, WindowCounts
from mragaudit.monitor.wording import span
from mragaudit.records.monitoring import CollectionSize, Decision

SETTINGS = MonitorSettings()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "1 s"),
        (59, "59 s"),
        (60, "1 min"),
        (90, "90 s"),
        (3_600, "1 h"),
        (5_400, "90 min"),
        (86_400, "1 d"),
        (604_800, "7 d"),
        (0.5, "0.5 s"),
        (3_600.5, "3600.5 s"),
    ],
)
def test_a_length_of_time_is_said_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text


def judged(*, level: str = "public", settings: MonitorSettings = SETTINGS, **given: Any) -> Decision:
    """Return the decision on a query of a user with these counts."""
    nothing: dict[str, Any] = {"time": 1_000.0, "duplicate": False, "queries": 1, "distinct_documents": 0}
    nothing |= {"own_documents": 0, "returned": {}, "distinct_sensitive_documents": 0}
    nothing["size"] = CollectionSize(size=100, version=1, age_seconds=0.0)
    query = checked_query(user="ann", query_id="q", collection="kb", documents=[("a", level)], settings=settings)
    return MonitorCore(settings).judge(query, WindowCounts(**nothing | given), user_hash="HASH").decision


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"queries": 51}, "volume: 51 queries in 1 h, at most 50"),
        (
            {"distinct_documents": 81},
            "coverage: 81 of 100 documents of the collection in 7 d (0.81), at most 0.80",
        ),
        ({"distinct_documents": 5_001}, "coverage: 5001 distinct documents in 7 d, at most 5000"),
        (
            {"returned": {"public": 14, "restricted": 7}},
            "sensitivity: 7 of 21 returned documents sensitive in 1 d (0.33), at most 0.30",
        ),
        (
            {"distinct_sensitive_documents": 501},
            "sensitivity: 501 distinct sensitive documents in 1 d, at most 500",
        ),
        ({"queries": 45, "returned": {"public": 15, "restricted": 6}, "size": None}, None),
        (
            {"queries": 40, "returned": {"public": 14, "restricted": 6}, "size": None},
            "composite risk 0.88, throttled from 0.7",  # (0.4 * 0.8 + 0.25 * 1) / 0.65
        ),
        (
            {"state": Throttled(since=1.0, last_over=990.0)},
            "throttled earlier; released once the composite stays below the release threshold",
        ),
    ],
)
def test_a_reason_names_value_threshold_and_window(given: dict[str, Any], reason: str | None) -> None:
    decision = judged(**given)
    expected = reason or "composite risk 0.92, throttled from 0.7"  # (0.4 * 0.9 + 0.25 * 0.2857 / 0.3) / 0.65
    assert decision.reasons == (expected,)
    assert decision.throttled
    assert decision.alert is not None
    assert decision.alert.reasons == decision.reasons


def test_every_alerting_signal_has_its_reason() -> None:
    decision = judged(queries=51, distinct_documents=81, returned={"restricted": 30})
    assert [reason.partition(":")[0] for reason in decision.reasons] == ["volume", "coverage", "sensitivity"]


def test_an_unremarkable_query_has_nothing_to_say() -> None:
    decision = judged()
    assert (decision.reasons, decision.alert, decision.throttled) == ((), None, False)


def test_an_unknown_level_is_said_although_nothing_alerts() -> None:
    assert judged(level="odd").reasons == ('unknown sensitivity level "odd", counted as "restricted"',)


def test_a_user_on_the_allow_list_is_said_to_be() -> None:
    decision = judged(queries=51, state=Throttled(allowed_until=2_000.0))
    assert decision.reasons == ("volume: 51 queries in 1 h, at most 50", "the user is on the allow-list")
    assert (decision.throttled, decision.alert) == (False, None)


def test_an_alert_explains_itself_without_the_settings() -> None:
    alert = judged(queries=51).alert
    assert alert is not None
    assert (alert.kind, alert.user, alert.user_hash, alert.collection) == ("throttle", "ann", "HASH", "kb")
    assert (alert.composite, alert.throttle_at, alert.time, alert.action) == (1.0, 0.7, 1_000.0, "throttle")
    volume = alert.signals[0]
    assert (volume.value, volume.threshold, volume.window_seconds) == (51, 50, 3_600.0)


@pytest.mark.parametrize(("distinct", "alerts"), [(80, False), (81, True)])
def test_a_collection_retrieved_by_all_together_is_told_of_strictly_above_the_share(
    distinct: int, alerts: bool
) -> None:
    query = checked_query(user="ann", query_id="q", collection="kb", documents=[], settings=SETTINGS)
    counts = WindowCounts(
        time=1_000.0,
        duplicate=False,
        queries=1,
        distinct_documents=0,
        own_documents=0,
        returned={},
        distinct_sensitive_documents=0,
        size=CollectionSize(size=100, version=1, age_seconds=0.0),
        collective=CollectiveCounts(distinct_documents=distinct, alerted=0.0),
    )
    found = MonitorCore(SETTINGS).judge(query, counts, user_hash="HASH")
    assert (found.collective_alert is not None) == alerts
    assert not found.decision.throttled
    if found.collective_alert is not None:
        assert found.collective_alert.reasons == (
            "collection: about 81 of 100 documents retrieved by all users together in 1 d, at most 0.8",
        )
