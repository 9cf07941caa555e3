"""What an alert says: observed value, threshold crossed, window, in sentences."""

from __future__ import annotations

from mragaudit.monitor.queries import Query
from mragaudit.monitor.risk import Risk, Verdict
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.windows import CollectiveCounts, WindowCounts
from mragaudit.records.monitoring import CollectionSize, SignalReading

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def reasons_of(
    readings: tuple[SignalReading, ...],
    *,
    risk: Risk,
    verdict: Verdict,
    query: Query,
    counts: WindowCounts,
    settings: MonitorSettings,
) -> tuple[str, ...]:
    """Return why a query is throttled or noticed; empty for a query about which there is nothing to say."""
    reasons = [_signal_reason(one) for one in readings if one.alerting]
    if verdict.over and not reasons:
        reasons.append(f"composite risk {risk.composite:.2f}, throttled from {settings.composite.throttle_at:g}")
    if verdict.action == "throttle" and not verdict.over:
        reasons.append("throttled earlier; released once the composite stays below the release threshold")
    if query.unknown_levels:
        reasons.append(unknown_level_reason(query, settings=settings))
    if counts.time < counts.state.allowed_until:
        reasons.append("the user is on the allow-list")
    return tuple(reasons)


def unknown_level_reason(query: Query, *, settings: MonitorSettings) -> str:
    """Return which levels of a query the settings do not list, and what became of them."""
    named = ", ".join(f'"{level}"' for level in query.unknown_levels[:3])
    return f'unknown sensitivity level {named}, counted as "{settings.levels[-1]}"'


def _signal_reason(reading: SignalReading) -> str:
    window = span(reading.window_seconds)
    if reading.cap is not None and reading.capped_count is not None and reading.capped_count > reading.cap:
        noun = "distinct sensitive documents" if reading.signal == "sensitivity" else "distinct documents"
        return f"{reading.signal}: {reading.capped_count} {noun} in {window}, at most {reading.cap}"
    if reading.signal == "volume":
        return f"volume: {reading.count} queries in {window}, at most {reading.threshold:g}"
    noun = "documents of the collection" if reading.signal == "coverage" else "returned documents sensitive"
    return (
        f"{reading.signal}: {reading.count} of {reading.total} {noun} in {window} "
        f"({reading.value:.2f}), at most {reading.threshold:.2f}"
    )


def collective_reason(together: CollectiveCounts, *, size: CollectionSize, settings: MonitorSettings) -> str:
    """Return what all users of a tenant together retrieved."""
    collective = settings.collective
    return (
        f"collection: about {together.distinct_documents} of {size.size} documents retrieved by all users together "
        f"in {span(collective.window_seconds)}, at most {collective.max_share:g}"
    )


def span(seconds: float) -> str:
    """Return a length of time in its largest whole unit: 3600 is `1 h`, 604800 is `7 d`."""
    for unit, length in (("d", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"
