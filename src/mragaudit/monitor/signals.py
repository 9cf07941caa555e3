"""The three signals: from counts inside a window to a value, a score and an alert.

Source of the thresholds and of the rule `score = min(1, value / threshold)`: the defaults table of the monitor's
reference (volume 50 queries an hour, coverage 0.8 a week, sensitivity 0.3 a day; strictly above alerts). Caps on
distinct documents are ours: whoever can add documents can dilute any share.
"""

from __future__ import annotations

from dataclasses import dataclass

from mragaudit.monitor.settings import MonitorSettings, RoleLimits
from mragaudit.monitor.windows import WindowCounts
from mragaudit.records.monitoring import SignalName, SignalReading

NO_ROLE = RoleLimits()


def score_of(value: float, threshold: float) -> float:
    """Return min(1, value / threshold)."""
    return min(1.0, value / threshold)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryVolumeTracker:
    """Queries of one user in a sliding window."""

    settings: MonitorSettings

    def read(self, counts: WindowCounts, *, role: RoleLimits = NO_ROLE) -> SignalReading:
        """Return the reading; volume is always evaluated."""
        threshold = role.max_queries or self.settings.volume.max_queries
        return SignalReading(
            signal="volume",
            value=counts.queries,
            threshold=threshold,
            score=score_of(counts.queries, threshold),
            alerting=counts.queries > threshold,
            count=counts.queries,
            total=None,
            capped_count=None,
            cap=None,
            window_seconds=self.settings.volume.window_seconds,
            not_evaluated=None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CoverageMonitor:
    """Share of a collection's documents that one user has retrieved and did not add."""

    settings: MonitorSettings

    def read(self, counts: WindowCounts, *, role: RoleLimits = NO_ROLE) -> SignalReading:
        """Return the reading; without a live collection size the share is not evaluated, the cap still is."""
        coverage = self.settings.coverage
        total = None if counts.size is None else max(0, counts.size.size - counts.own_documents)
        return _share_reading(
            "coverage",
            count=counts.distinct_documents,
            total=total,
            threshold=role.max_share or coverage.max_share,
            capped_count=counts.distinct_documents,
            cap=role.max_documents or coverage.max_documents,
            window_seconds=coverage.window_seconds,
            not_evaluated=_unknown_size(counts)
            or too_few(_returned(counts, least=counts.distinct_documents), self.settings)
            or too_small(total, self.settings, by="others"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SensitivityMonitor:
    """Share of the documents returned to one user that are sensitive."""

    settings: MonitorSettings

    def read(self, counts: WindowCounts, *, role: RoleLimits = NO_ROLE) -> SignalReading:
        """Return the reading, against the larger of the fixed threshold and the baseline with its margin."""
        sensitivity = self.settings.sensitivity
        sensitive = sum(n for level, n in counts.returned.items() if level in self.settings.sensitive_levels)
        returned = _returned(counts)
        # The whole collection: what a user adds must not silence this signal.
        size = None if counts.size is None else counts.size.size
        return _share_reading(
            "sensitivity",
            count=sensitive,
            total=returned,
            threshold=self.threshold(counts, role=role),
            capped_count=counts.distinct_sensitive_documents,
            cap=role.max_sensitive_documents or sensitivity.max_documents,
            window_seconds=sensitivity.window_seconds,
            not_evaluated=too_few(returned, self.settings) or too_small(size, self.settings),
        )

    def threshold(self, counts: WindowCounts, *, role: RoleLimits = NO_ROLE) -> float:
        """Return max(fixed share, role baseline + margin, user baseline + margin up to the ceiling), at most 1."""
        fixed, baseline = self.settings.sensitivity.max_share, self.settings.sensitivity.baseline
        candidates = [fixed]
        if role.sensitivity_baseline is not None:
            candidates.append(role.sensitivity_baseline + baseline.margin)
        known = counts.baseline_returned >= baseline.min_documents and counts.baseline_days >= baseline.min_days
        if baseline.user and known:
            own = counts.baseline_sensitive / counts.baseline_returned + baseline.margin
            candidates.append(min(baseline.ceiling, own))
        return min(1.0, max(candidates))


def _unknown_size(counts: WindowCounts) -> str | None:
    return "the size of the collection is unknown" if counts.size is None else None


def _returned(counts: WindowCounts, *, least: int = 0) -> int:
    """Return the documents returned inside the sensitivity window; a longer window may know of more."""
    return max(least, sum(counts.returned.values()))


def too_few(returned: int, settings: MonitorSettings) -> str | None:
    """Return why a share of so many returned documents does not count yet, None when it does."""
    if returned < settings.min_documents:
        return f"{returned} documents returned, {settings.min_documents} needed"
    return None


def too_small(held: int | None, settings: MonitorSettings, *, by: str | None = None) -> str | None:
    """Return why a share does not count in a collection of so many documents, None when it does or none is known."""
    if held is not None and held < settings.min_collection:
        of_whom = f" by {by}" if by else ""
        return f"the collection holds {held} documents{of_whom}, {settings.min_collection} needed"
    return None


def _share_reading(
    signal: SignalName,
    *,
    count: int,
    total: int | None,
    threshold: float,
    capped_count: int,
    cap: int | None,
    window_seconds: float,
    not_evaluated: str | None,
) -> SignalReading:
    value = None if not_evaluated or not total else count / total
    over_cap = cap is not None and capped_count > cap
    known_score = None if value is None else score_of(value, threshold)
    return SignalReading(
        signal=signal,
        value=value,
        threshold=threshold,
        score=1.0 if over_cap else known_score,
        alerting=over_cap or (value is not None and value > threshold),
        count=count,
        total=total,
        capped_count=None if cap is None else capped_count,
        cap=cap,
        window_seconds=window_seconds,
        not_evaluated=not_evaluated,
    )
