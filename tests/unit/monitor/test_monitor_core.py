"""Which decisions send an alert, over counts written by hand."""

from __future__ import annotations

from mragaudit.monitor.core import Judged, MonitorCore
from mragaudit.monitor.queries import checked_query
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.windows import Throttled, WindowCounts

NOW = 1_700_000_000.0
SETTINGS = MonitorSettings()


def judged(*, queries: int, state: Throttled) -> Judged:
    query = checked_query(user="u", query_id="q", collection="kb", documents=[], settings=SETTINGS)
    counts = WindowCounts(
        time=NOW,
        duplicate=False,
        queries=queries,
        distinct_documents=0,
        own_documents=0,
        returned={},
        distinct_sensitive_documents=0,
        state=state,
    )
    return MonitorCore(SETTINGS).judge(query, counts, user_hash="h")


def test_a_query_throttled_by_the_hold_alone_carries_an_alert_and_sends_none() -> None:
    held = judged(queries=5, state=Throttled(since=NOW - 60, last_over=NOW - 60, alerted={"volume": NOW - 60}))
    assert (held.decision.action, held.decision.composite) == ("throttle", 0.1)
    assert held.decision.alert is not None
    assert held.mark is None


def test_a_signal_that_alerts_during_a_hold_is_told_of() -> None:
    again = judged(queries=51, state=Throttled(since=NOW - 60, last_over=NOW - 60, alerted={"coverage": NOW - 60}))
    assert again.mark is not None
    assert list(again.mark.claims) == ["volume"]


def test_a_composite_that_throttles_by_itself_is_told_of() -> None:
    first = judged(queries=35, state=Throttled())
    assert (first.decision.action, first.decision.composite) == ("throttle", 0.7)
    assert first.mark is not None
    assert first.mark.change == "enter"
    assert "composite" in first.mark.claims
