"""From three readings to one decision: the composite, its hysteresis, and what a throttled query meets.

Composite = max(weighted mean of the known scores, floor while any signal alerts). The mean alone would dilute one
saturated signal: at equal weights a pure sweeper reaches 1/3 and never crosses 0.5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from mragaudit.monitor.settings import Composite, Throttle
from mragaudit.monitor.windows import Throttled
from mragaudit.records.monitoring import Action, SignalName, SignalReading

SIGNALS: tuple[SignalName, ...] = get_args(SignalName)
Change = Literal["none", "enter", "extend", "release"]
EXTENSIONS_PER_HOLD = 10
COMPOSITE_DIGITS = 12
"""Weights that are renormalised miss 0.7 by an ulp where the mean of the scores is 0.7."""


class Risk(msgspec.Struct, frozen=True, kw_only=True):
    """The composite risk of one user at one query."""

    composite: float | None
    """From 0 to 1; None when no signal has a score."""
    mean: float | None
    """Weighted mean of the known scores, before the floor."""
    missing: tuple[SignalName, ...]
    """Signals without a score; their weight went to the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompositeRisk:
    """One number from three scores."""

    settings: Composite

    def of(self, readings: Collection[SignalReading]) -> Risk:
        """Return the composite of three readings."""
        scores = {one.signal: one.score for one in readings}
        return self.of_scores(scores, alerting=[one.signal for one in readings if one.alerting])

    def of_scores(self, scores: Mapping[SignalName, float | None], *, alerting: Collection[SignalName] = ()) -> Risk:
        """Return the composite of scores from 0 to 1; an absent or None score is missing, not 0."""
        known = {name: score for name in SIGNALS if (score := scores.get(name)) is not None}
        missing = tuple(name for name in SIGNALS if name not in known)
        mean = self._mean(known)
        if mean is None:
            return Risk(composite=None, mean=None, missing=missing)
        composite = max(mean, self.settings.signal_floor) if alerting else mean
        return Risk(composite=composite, mean=mean, missing=missing)

    def _mean(self, known: Mapping[SignalName, float]) -> float | None:
        """Return the renormalised mean; None without a score; equal weights where all known ones weigh 0."""
        if not known:
            return None
        weighted = total = 0.0
        for name, score in known.items():
            weight = self.settings.weights[name]
            weighted += weight * score
            total += weight
        if total == 0:
            return sum(known.values()) / len(known)
        return round(weighted / total, COMPOSITE_DIGITS)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether this query is throttled, and what the store has to remember of it."""

    action: Action
    change: Change
    over: bool
    """The composite itself reached the threshold; False while only the hysteresis holds."""
    delay_seconds: float
    max_results: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ThrottlePolicy:
    """Throttle from `throttle_at` on; release below `release_at`, once `hold_seconds` are over."""

    composite: Composite
    throttle: Throttle

    def decide(self, composite: float | None, *, state: Throttled, time: float) -> Verdict:
        """Return the verdict; an unknown composite neither throttles nor releases."""
        if time < state.allowed_until:
            return self._verdict("pass", change="release" if state.since else "none", over=False)
        over = composite is not None and composite >= self.composite.throttle_at
        if over:
            return self._verdict("throttle", change=self._noted(state, time), over=True)
        if not state.since:
            return self._verdict("pass", change="none", over=False)
        # Up to a tenth of a hold may lie between the last query above the threshold and the last noted one.
        held = time < state.last_over + self.composite.hold_seconds * (1 + 1 / EXTENSIONS_PER_HOLD)
        if held or composite is None or composite >= self.composite.release_at:
            return self._verdict("throttle", change="none", over=False)
        return self._verdict("pass", change="release", over=False)

    def strictest(self) -> Verdict:
        """Return the throttle for a query that could not be judged and must not pass."""
        return self._verdict("throttle", change="none", over=False)

    def _noted(self, state: Throttled, time: float) -> Change:
        """Return what to note: a queue of queries above the threshold is noted a few times a hold, not each."""
        if not state.since:
            return "enter"
        stale = time - state.last_over >= self.composite.hold_seconds / EXTENSIONS_PER_HOLD
        return "extend" if stale else "none"

    def _verdict(self, action: Action, *, change: Change, over: bool) -> Verdict:
        delayed = action == "throttle" and self.throttle.response == "delay"
        cut = action == "throttle" and self.throttle.response == "truncate"
        return Verdict(
            action=action,
            change=change,
            over=over,
            delay_seconds=self.throttle.delay_seconds if delayed else 0.0,
            max_results=self.throttle.max_results if cut else None,
        )
