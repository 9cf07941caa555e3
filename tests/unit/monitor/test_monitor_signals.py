"""The three signals: hand-worked values, scores and reasons."""

from __future__ import annotations

from typing import Any

import pytest

from mragaudit.monitor.settings import MonitorSettings, RoleLimits
from mragaudit.monitor.signals import CoverageMonitor, QueryVolumeTracker, SensitivityMonitor, score_of
from mragaudit.monitor.windows import WindowCounts
from mragaudit.records.monitoring import CollectionSize

SETTINGS = MonitorSettings()


def counts(*, size: int | None = 1_000, **given: Any) -> WindowCounts:
    """Return counts of a user who has done nothing, but for what is given."""
    nothing = {
        "time": 0.0,
        "duplicate": False,
        "queries": 0,
        "distinct_documents": 0,
        "own_documents": 0,
        "returned": {},
        "distinct_sensitive_documents": 0,
    }
    read = None if size is None else CollectionSize(size=size, version=1, age_seconds=0.0)
    return WindowCounts(**nothing | {"size": read} | given)


def coverage(settings: MonitorSettings = SETTINGS, *, role: RoleLimits | None = None, **given: Any) -> Any:
    return CoverageMonitor(settings=settings).read(counts(**given), **({"role": role} if role else {}))


def sensitivity(settings: MonitorSettings = SETTINGS, *, role: RoleLimits | None = None, **given: Any) -> Any:
    return SensitivityMonitor(settings=settings).read(counts(**given), **({"role": role} if role else {}))


@pytest.mark.parametrize(("value", "threshold", "score"), [(0, 50, 0), (25, 50, 0.5), (50, 50, 1), (500, 50, 1)])
def test_a_score_is_the_value_by_its_threshold_and_at_most_1(value: float, threshold: float, score: float) -> None:
    assert score_of(value, threshold) == score


@pytest.mark.parametrize(("queries", "score", "alerting"), [(0, 0.0, False), (50, 1.0, False), (51, 1.0, True)])
def test_volume_alerts_strictly_above_its_threshold(queries: int, score: float, alerting: bool) -> None:
    reading = QueryVolumeTracker(settings=SETTINGS).read(counts(queries=queries))
    assert (reading.value, reading.score, reading.alerting) == (queries, score, alerting)
    assert (reading.threshold, reading.window_seconds, reading.not_evaluated) == (50, 3_600.0, None)


def test_volume_of_a_role_has_the_roles_threshold() -> None:
    reading = QueryVolumeTracker(settings=SETTINGS).read(counts(queries=60), role=RoleLimits(max_queries=120))
    assert (reading.threshold, reading.score, reading.alerting) == (120, 0.5, False)


@pytest.mark.parametrize(
    ("distinct", "value", "score", "alerting"),
    [(400, 0.4, 0.5, False), (800, 0.8, 1.0, False), (801, 0.801, 1.0, True), (1_200, 1.2, 1.0, True)],
)
def test_coverage_is_the_share_of_the_collection(distinct: int, value: float, score: float, alerting: bool) -> None:
    reading = coverage(distinct_documents=distinct)
    assert (reading.value, reading.score, reading.alerting) == (value, score, alerting)
    assert (reading.count, reading.total, reading.window_seconds) == (distinct, 1_000, 604_800.0)


def test_coverage_is_held_against_what_others_added() -> None:
    reading = coverage(distinct_documents=80, own_documents=900)
    assert (reading.value, reading.total) == (0.8, 100)


def test_more_own_documents_than_the_collection_holds_leave_nothing_to_share() -> None:
    """The indexer may be behind; the cap goes on counting."""
    reading = coverage(distinct_documents=5_001, own_documents=1_100)
    assert (reading.value, reading.total) == (None, 0)
    assert reading.not_evaluated == "the collection holds 0 documents by others, 25 needed"
    assert (reading.score, reading.alerting) == (1.0, True)


@pytest.mark.parametrize(("distinct", "alerting"), [(5_000, False), (5_001, True)])
def test_the_cap_on_distinct_documents_is_strict_too(distinct: int, alerting: bool) -> None:
    reading = coverage(distinct_documents=distinct, size=1_000_000)
    assert (reading.capped_count, reading.cap, reading.alerting) == (distinct, 5_000, alerting)
    assert reading.score == (1.0 if alerting else pytest.approx(0.005 / 0.8))


def test_the_cap_holds_although_the_size_is_unknown() -> None:
    reading = coverage(distinct_documents=5_001, size=None)
    assert (reading.value, reading.score, reading.alerting) == (None, 1.0, True)
    assert reading.not_evaluated == "the size of the collection is unknown"


def test_without_a_cap_only_the_share_counts() -> None:
    settings = MonitorSettings.model_validate({"coverage": {"max_documents": None}})
    reading = coverage(settings, distinct_documents=90_000, size=1_000_000)
    assert (reading.cap, reading.capped_count, reading.alerting) == (None, None, False)


@pytest.mark.parametrize(("distinct", "returned", "evaluated"), [(19, 19, False), (20, 20, True), (19, 21, True)])
def test_coverage_counts_from_twenty_returned_documents_on(distinct: int, returned: int, evaluated: bool) -> None:
    reading = coverage(distinct_documents=distinct, returned={"public": returned}, size=30)
    assert (reading.not_evaluated is None) == evaluated


@pytest.mark.parametrize(("size", "evaluated"), [(24, False), (25, True)])
def test_neither_share_counts_in_a_collection_below_25(size: int, evaluated: bool) -> None:
    given = {"distinct_documents": 20, "returned": {"public": 20}, "size": size}
    assert [(one(**given).not_evaluated is None) for one in (coverage, sensitivity)] == [evaluated] * 2


@pytest.mark.parametrize(
    ("returned", "value", "score", "alerting"),
    [
        ({"public": 20}, 0.0, 0.0, False),
        ({"public": 17, "internal": 3}, 0.0, 0.0, False),
        ({"public": 17, "confidential": 3}, 0.15, 0.5, False),
        ({"public": 14, "confidential": 3, "restricted": 3}, 0.3, 1.0, False),
        ({"public": 13, "restricted": 7}, 0.35, 1.0, True),
        ({"confidential": 20}, 1.0, 1.0, True),
    ],
)
def test_sensitivity_is_the_share_of_confidential_and_restricted(
    returned: dict[str, int], value: float, score: float, alerting: bool
) -> None:
    reading = sensitivity(returned=returned)
    assert (reading.value, reading.score, reading.alerting) == (value, pytest.approx(score), alerting)
    assert (reading.total, reading.window_seconds) == (20, 86_400.0)


def test_sensitivity_needs_twenty_documents_of_its_own_window() -> None:
    reading = sensitivity(returned={"restricted": 2}, distinct_documents=500)
    assert (reading.value, reading.not_evaluated) == (None, "2 documents returned, 20 needed")


def test_sensitivity_is_not_silenced_by_what_a_user_adds() -> None:
    assert sensitivity(returned={"restricted": 20}, own_documents=1_000).alerting


def test_sensitivity_needs_no_size() -> None:
    assert sensitivity(returned={"restricted": 20}, size=None).value == 1.0


@pytest.mark.parametrize(("distinct", "alerting"), [(500, False), (501, True)])
def test_the_cap_on_sensitive_documents_is_strict_too(distinct: int, alerting: bool) -> None:
    reading = sensitivity(returned={"public": 10_000, "restricted": 500}, distinct_sensitive_documents=distinct)
    assert (reading.capped_count, reading.cap, reading.alerting) == (distinct, 500, alerting)


@pytest.mark.parametrize(
    ("sensitive", "returned", "days", "threshold"),
    [
        (0, 0, 0, 0.3),
        (60, 200, 5, 0.4),  # 0.3 + 0.1
        (60, 199, 5, 0.3),  # too few documents
        (60, 200, 4, 0.3),  # too few days
        (20, 200, 5, 0.3),  # 0.1 + 0.1 lies below the fixed threshold
        (80, 200, 5, 0.5),
        (180, 200, 28, 0.5),  # 0.9 + 0.1, stopped at the ceiling
    ],
)
def test_a_users_baseline_raises_the_threshold_up_to_its_ceiling(
    sensitive: int, returned: int, days: int, threshold: float
) -> None:
    given = counts(baseline_sensitive=sensitive, baseline_returned=returned, baseline_days=days)
    assert SensitivityMonitor(settings=SETTINGS).threshold(given) == pytest.approx(threshold)


@pytest.mark.parametrize(("baseline", "threshold"), [(0.1, 0.3), (0.6, 0.7), (0.95, 1.0), (1.0, 1.0)])
def test_a_roles_baseline_is_given_by_a_person_and_has_no_ceiling(baseline: float, threshold: float) -> None:
    role = RoleLimits(sensitivity_baseline=baseline)
    assert SensitivityMonitor(settings=SETTINGS).threshold(counts(), role=role) == pytest.approx(threshold)


def test_roles_replace_caps_and_share() -> None:
    role = RoleLimits(max_share=0.5, max_documents=10, max_sensitive_documents=3)
    read = coverage(role=role, distinct_documents=600)
    assert (read.threshold, read.cap, read.alerting) == (0.5, 10, True)
    assert sensitivity(role=role, returned={"public": 20}).cap == 3


def test_levels_are_those_of_the_settings() -> None:
    settings = MonitorSettings.model_validate({"levels": ("low", "mid", "high"), "sensitive_from": "mid"})
    reading = sensitivity(settings, returned={"low": 10, "mid": 5, "high": 5})
    assert reading.value == 0.5


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"volume": {"max_queries": 10_000}}, "volume.tracked_queries is 10000; it must be above 10000"),
        ({"roles": {"job": {"max_queries": 20_000}}}, "volume.tracked_queries is 10000; it must be above 20000"),
        ({"coverage": {"max_documents": 100_000}}, "coverage.tracked_documents is 100000; it must be above 100000"),
        ({"sensitivity": {"max_documents": 200_000}}, "coverage.tracked_documents is 100000; it must be above 200000"),
    ],
)
def test_a_limit_beyond_what_is_remembered_is_refused(section: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=key.replace(".", r"\.")):
        MonitorSettings.model_validate(section)
