"""From readings to a verdict: weights, floor, hysteresis."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mragaudit.monitor.risk import CompositeRisk, ThrottlePolicy
from mragaudit.monitor.settings import Composite, Throttle
from mragaudit.monitor.windows import Throttled
from mragaudit.records.monitoring import SignalName

RISK = CompositeRisk(settings=Composite())
POLICY = ThrottlePolicy(composite=Composite(), throttle=Throttle())
NEVER = Throttled()
Scores = dict[SignalName, float | None]


@pytest.mark.parametrize(
    ("scores", "composite", "missing"),
    [
        ({"volume": 1.0, "coverage": 0.0, "sensitivity": 0.0}, 0.4, ()),
        ({"volume": 0.0, "coverage": 1.0, "sensitivity": 0.0}, 0.35, ()),
        ({"volume": 0.0, "coverage": 0.0, "sensitivity": 1.0}, 0.25, ()),
        ({"volume": 0.5, "coverage": 0.4, "sensitivity": 0.2}, 0.39, ()),  # 0.2 + 0.14 + 0.05
        ({"volume": 1.0, "coverage": 1.0, "sensitivity": 1.0}, 1.0, ()),
        ({"volume": 0.5, "coverage": None, "sensitivity": 0.2}, 0.384615384615, ("coverage",)),  # 0.25 / 0.65
        ({"volume": 1.0, "coverage": None, "sensitivity": 1.0}, 1.0, ("coverage",)),
        ({"volume": 0.3}, 0.3, ("coverage", "sensitivity")),
        ({"coverage": 0.9, "sensitivity": 0.1}, 0.566666666667, ("volume",)),  # (0.315 + 0.025) / 0.6
    ],
)
def test_the_composite_is_the_mean_renormalised_over_the_known_scores(
    scores: Scores, composite: float, missing: tuple[str, ...]
) -> None:
    risk = RISK.of_scores(scores)
    assert (risk.composite, risk.missing) == (composite, missing)


@pytest.mark.parametrize("scores", [{}, {"volume": None, "coverage": None, "sensitivity": None}])
def test_without_any_score_nothing_is_evaluated(scores: Scores) -> None:
    risk = RISK.of_scores(scores)
    assert (risk.composite, risk.mean) == (None, None)
    assert risk.missing == ("volume", "coverage", "sensitivity")


@pytest.mark.parametrize("signal", ["volume", "coverage", "sensitivity"])
def test_one_saturated_signal_is_not_diluted(signal: SignalName) -> None:
    scores: Scores = {"volume": 0.0, "coverage": 0.0, "sensitivity": 0.0} | {signal: 1.0}
    assert RISK.of_scores(scores, alerting=[signal]).composite == 0.7
    thirds = Composite(weights={"volume": 1 / 3, "coverage": 1 / 3, "sensitivity": 1 / 3}, throttle_at=0.5)
    risk = CompositeRisk(settings=thirds).of_scores(scores, alerting=[signal])
    assert risk.mean == pytest.approx(1 / 3)
    assert risk.composite == 0.5  # the naive mean stays below for ever


def test_the_floor_never_lowers_a_mean_above_it() -> None:
    scores: Scores = {"volume": 1.0, "coverage": 1.0, "sensitivity": 0.4}
    assert RISK.of_scores(scores, alerting=["volume"]).composite == 0.85


def test_the_floor_can_be_set_apart_from_the_threshold() -> None:
    risk = CompositeRisk(settings=Composite(floor=0.2)).of_scores({"volume": 0.1}, alerting=["volume"])
    assert risk.composite == 0.2


def test_a_signal_without_weight_still_alerts_by_its_floor() -> None:
    weightless = CompositeRisk(settings=Composite(weights={"volume": 1.0, "coverage": 0.0, "sensitivity": 0.0}))
    assert weightless.of_scores({"volume": 0.0, "coverage": 1.0}, alerting=["coverage"]).composite == 0.7
    assert weightless.of_scores({"coverage": 0.5, "sensitivity": 0.1}).composite == 0.3


@given(*[st.none() | st.floats(0, 1)] * 3, st.booleans())
def test_the_composite_lies_between_the_least_and_the_largest_known_score_or_is_the_floor(
    volume: float | None, coverage: float | None, sensitivity: float | None, alerting: bool
) -> None:
    scores: Scores = {"volume": volume, "coverage": coverage, "sensitivity": sensitivity}
    risk = RISK.of_scores(scores, alerting=["volume"] if alerting else [])
    known = [one for one in scores.values() if one is not None]
    if not known:
        assert risk.composite is None
        return
    assert risk.mean is not None
    assert min(known) - 1e-9 <= risk.mean <= max(known) + 1e-9
    assert risk.composite == (max(risk.mean, 0.7) if alerting else risk.mean)


def test_thirty_five_queries_alone_reach_the_threshold_to_the_digit() -> None:
    """0.4 * 0.7 / 0.4 is 0.7 less an ulp in binary floating point."""
    risk = RISK.of_scores({"volume": 35 / 50})
    assert risk.composite == 0.7
    assert POLICY.decide(risk.composite, state=NEVER, time=0.0).action == "throttle"


def decide(composite: float | None, *, time: float = 10_000.0, **state: Any) -> tuple[str, str, bool]:
    verdict = POLICY.decide(composite, state=Throttled(**state), time=time)
    return verdict.action, verdict.change, verdict.over


@pytest.mark.parametrize(
    ("composite", "expected"),
    [
        (None, ("pass", "none", False)),
        (0.0, ("pass", "none", False)),
        (0.699, ("pass", "none", False)),
        (0.7, ("throttle", "enter", True)),
        (1.0, ("throttle", "enter", True)),
    ],
)
def test_a_user_is_throttled_from_the_threshold_on(composite: float | None, expected: tuple[str, str, bool]) -> None:
    assert decide(composite) == expected


@pytest.mark.parametrize(
    ("composite", "ago", "expected"),
    [
        (0.1, 100, ("throttle", "none", False)),  # inside the hold
        (0.1, 899, ("throttle", "none", False)),
        (0.1, 989, ("throttle", "none", False)),  # a tenth of the hold may be missing from what was noted
        (0.1, 990, ("pass", "release", False)),
        (0.5, 5_000, ("throttle", "none", False)),  # not below the release threshold
        (0.499, 5_000, ("pass", "release", False)),
        (None, 5_000, ("throttle", "none", False)),  # unknown releases nobody
        (0.8, 10, ("throttle", "none", True)),  # noted a moment ago
        (0.8, 90, ("throttle", "extend", True)),
    ],
)
def test_a_throttled_user_is_released_below_the_release_threshold_after_the_hold(
    composite: float | None, ago: float, expected: tuple[str, str, bool]
) -> None:
    assert decide(composite, since=1.0, last_over=10_000.0 - ago) == expected


def test_a_clock_that_goes_back_releases_nobody() -> None:
    assert decide(0.1, time=10.0, since=9_000.0, last_over=10_000.0) == ("throttle", "none", False)


@pytest.mark.parametrize(
    ("time", "state", "expected"),
    [
        (99.9, {}, ("pass", "none", False)),
        (99.9, {"since": 1.0, "last_over": 90.0}, ("pass", "release", False)),
        (100.0, {}, ("throttle", "enter", True)),
    ],
)
def test_the_allow_list_ends_on_time(time: float, state: dict[str, float], expected: tuple[str, str, bool]) -> None:
    assert decide(1.0, time=time, allowed_until=100.0, **state) == expected


def test_a_throttle_delays_or_cuts() -> None:
    delayed = POLICY.decide(1.0, state=NEVER, time=1.0)
    cutting = ThrottlePolicy(composite=Composite(), throttle=Throttle(response="truncate", max_results=0))
    cut = cutting.decide(1.0, state=NEVER, time=1.0)
    passed = cutting.decide(0.0, state=NEVER, time=1.0)
    assert [(one.delay_seconds, one.max_results) for one in (delayed, cut, passed)] == [(5, None), (0, 0), (0, None)]
    assert cutting.strictest().max_results == 0
    assert POLICY.strictest().delay_seconds == 5.0
