"""What both clients share: from a query and its counts to a decision, an alert, and what is to be noted.

No server, no clock and no thread here.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from mragaudit.monitor.calls import Mark, ring_lifetime
from mragaudit.monitor.queries import Query
from mragaudit.monitor.risk import SIGNALS, CompositeRisk, Risk, ThrottlePolicy, Verdict
from mragaudit.monitor.settings import MonitorSettings, RoleLimits
from mragaudit.monitor.signals import NO_ROLE, CoverageMonitor, QueryVolumeTracker, SensitivityMonitor
from mragaudit.monitor.windows import WindowCounts
from mragaudit.monitor.wording import collective_reason, reasons_of
from mragaudit.records.monitoring import Alert, AlertKind, Decision, SignalReading

WEEK_SECONDS = 604_800.0
COMPOSITE = "composite"
COLLECTION = "collection"
THROTTLE = "throttle"
YOUNGER_SECONDS = 60.0
"""By so much another worker's alert may be younger than a query; as in mark.lua."""


@dataclass(slots=True)
class Counts:
    """What a monitor did since it was made; `mragaudit.monitor.metrics` exports it."""

    decisions: Counter[str] = field(default_factory=Counter)
    """pass, throttle."""
    alerts: Counter[str] = field(default_factory=Counter)
    """Alert kind → alerts handed to the sinks."""
    problems: Counter[str] = field(default_factory=Counter)
    """store, breaker, input, internal: queries not judged; part: calls beside a judged query that failed."""
    not_evaluated: Counter[str] = field(default_factory=Counter)
    """Signal → queries at which it had no score."""
    unknown_levels: int = 0
    duplicates: int = 0


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, and what the store has to note because of it."""

    decision: Decision
    mark: Mark | None
    collective_alert: Alert | None
    """An alert about the collection as a whole, whatever this user did."""
    collective_mark: Mark | None


class MonitorCore:
    """The rules of the monitor over counts that a store made."""

    def __init__(self, settings: MonitorSettings) -> None:
        self.settings = settings
        self.risk = CompositeRisk(settings=settings.composite)
        self.policy = ThrottlePolicy(composite=settings.composite, throttle=settings.throttle)
        self._windows = _alert_windows(settings)
        self._signals = (
            QueryVolumeTracker(settings=settings),
            CoverageMonitor(settings=settings),
            SensitivityMonitor(settings=settings),
        )

    def readings(self, counts: WindowCounts, *, role: str | None) -> tuple[SignalReading, ...]:
        """Return the three readings of a user of this role."""
        limits = self.settings.roles.get(role, NO_ROLE) if role else NO_ROLE
        return self._read(counts, limits)

    def _read(self, counts: WindowCounts, limits: RoleLimits) -> tuple[SignalReading, ...]:
        return tuple(one.read(counts, role=limits) for one in self._signals)

    def judge(self, query: Query, counts: WindowCounts, *, user_hash: str) -> Judged:
        """Return the decision on one query."""
        readings = self.readings(counts, role=query.role)
        risk = self.risk.of(readings)
        verdict = self.policy.decide(risk.composite, state=counts.state, time=counts.time)
        kinds = self._kinds(readings, risk, verdict, counts)
        decision = Decision(
            action=verdict.action,
            delay_seconds=verdict.delay_seconds,
            max_results=verdict.max_results,
            composite=risk.composite,
            throttle_at=self.settings.composite.throttle_at,
            signals=readings,
            missing=risk.missing,
            reasons=reasons_of(
                readings, risk=risk, verdict=verdict, query=query, counts=counts, settings=self.settings
            ),
            alert=None,
            alert_sent=False,
            problem=None,
            collection_size=counts.size,
            duplicate=counts.duplicate,
            time=counts.time,
        )
        if kinds:
            kind = _alert_kind(decision, kinds)
            alert = _alert(decision, kind=kind, ids=_ids(query), user_hash=user_hash)
            decision = msgspec.structs.replace(decision, alert=alert)
        collective = self._collective(query, counts)
        return Judged(
            decision=decision,
            mark=self._mark(kinds, verdict, counts, alerting=any(one.alerting for one in readings)),
            collective_alert=collective,
            collective_mark=None if collective is None else self._collective_mark(counts),
        )

    def _kinds(
        self, readings: tuple[SignalReading, ...], risk: Risk, verdict: Verdict, counts: WindowCounts
    ) -> tuple[str, ...]:
        """Return what there is to tell: the alerting signals, or the composite when it acts alone."""
        if counts.time < counts.state.allowed_until:
            return ()
        alerting = tuple(one.signal for one in readings if one.alerting)
        if alerting:
            return alerting
        alert_at = self.settings.composite.alert_at
        noticed = alert_at is not None and risk.composite is not None and risk.composite >= alert_at
        return (COMPOSITE,) if verdict.action == "throttle" or noticed else ()

    def _mark(self, kinds: tuple[str, ...], verdict: Verdict, counts: WindowCounts, *, alerting: bool) -> Mark | None:
        """Return what is to be noted; None for nearly every query, which then costs one round trip."""
        alerted, time = counts.state.alerted, counts.time
        due = {kind: self._windows[kind] for kind in kinds if _is_due(alerted.get(kind), self._windows[kind], time)}
        if verdict.change == "enter":
            # Told of even where its signal was told of before it throttled.
            window = max((self._windows[kind] for kind in kinds), default=0.0)
            due |= {THROTTLE: window} if _is_due(alerted.get(THROTTLE), window, time) else {}
        if verdict.change == "none" and not due:
            return None
        return Mark(
            change=verdict.change,
            flag_day=alerting or verdict.over,
            claims=due,
            time=counts.time,
            lifetime_seconds=max(WEEK_SECONDS, self.settings.coverage.window_seconds),
        )

    def _collective(self, query: Query, counts: WindowCounts) -> Alert | None:
        """Return an alert when all users together retrieved nearly a whole collection."""
        together, size = counts.collective, counts.size
        if together is None or size is None or size.size < self.settings.min_collection:
            return None
        share = together.distinct_documents / size.size
        due = _is_due(together.alerted or None, self._windows[COLLECTION], counts.time)
        if share <= self.settings.collective.max_share or not due:
            return None
        reason = collective_reason(together, size=size, settings=self.settings)
        return self.notice("collection", problem=reason, query=query, time=counts.time)

    def _collective_mark(self, counts: WindowCounts) -> Mark:
        collective = self.settings.collective
        return Mark(
            change="none",
            flag_day=False,
            claims={COLLECTION: self._windows[COLLECTION]},
            time=counts.time,
            lifetime_seconds=ring_lifetime(collective.window_seconds, sub_window_seconds=collective.sub_window_seconds),
        )

    def notice(self, kind: AlertKind, *, problem: str, query: Query, time: float) -> Alert:
        """Return an alert that blames no user: about a collection, the store, or what the host sent."""
        return Alert(
            alert_id=uuid.uuid4().hex,
            kind=kind,
            time=time,
            user="",
            user_hash="",
            tenant=query.tenant,
            collection=query.collection,
            query_id=query.query_id,
            action="pass",
            composite=None,
            throttle_at=self.settings.composite.throttle_at,
            signals=(),
            reasons=(problem,),
        )

    def unjudged(self, *, kind: AlertKind, problem: str, passes: bool, time: float, ids: Mapping[str, str]) -> Decision:
        """Return the decision on a query that could not be judged; `ids` are its user, query_id, collection, tenant."""
        verdict = None if passes else self.policy.strictest()
        decision = Decision(
            action="pass" if verdict is None else verdict.action,
            delay_seconds=0.0 if verdict is None else verdict.delay_seconds,
            max_results=None if verdict is None else verdict.max_results,
            composite=None,
            throttle_at=self.settings.composite.throttle_at,
            signals=(),
            missing=SIGNALS,
            reasons=(problem,),
            alert=None,
            alert_sent=False,
            problem=problem,
            collection_size=None,
            duplicate=False,
            time=time,
        )
        alert = _alert(decision, kind=kind, ids=ids, user_hash="")
        return msgspec.structs.replace(decision, alert=alert)


def _ids(query: Query) -> dict[str, str]:
    return {
        "user": query.user,
        "query_id": query.query_id,
        "collection": query.collection,
        "tenant": query.tenant,
    }


def _alert_kind(decision: Decision, kinds: tuple[str, ...]) -> AlertKind:
    if decision.throttled:
        return "throttle"
    return "composite" if kinds == (COMPOSITE,) else "signal"


def _alert(decision: Decision, *, kind: AlertKind, ids: Mapping[str, str], user_hash: str) -> Alert:
    """Return the alert that tells of a decision."""
    return Alert(
        alert_id=uuid.uuid4().hex,
        kind=kind,
        time=decision.time,
        user=ids["user"],
        user_hash=user_hash,
        tenant=ids["tenant"],
        collection=ids["collection"],
        query_id=ids["query_id"],
        action=decision.action,
        composite=decision.composite,
        throttle_at=decision.throttle_at,
        signals=decision.signals,
        reasons=decision.reasons,
    )


def _is_due(last: float | None, window_seconds: float, time: float) -> bool:
    """Return whether an alert that last went out then may go out again; after the clock went back it may."""
    return last is None or last - time > YOUNGER_SECONDS or time - last > window_seconds


def _alert_windows(settings: MonitorSettings) -> dict[str, float]:
    """Return for how long each kind of alert is not repeated for a user: its window, at most repeat_seconds."""
    windows = {
        "volume": settings.volume.window_seconds,
        "coverage": settings.coverage.window_seconds,
        "sensitivity": settings.sensitivity.window_seconds,
        COMPOSITE: settings.volume.window_seconds,
        COLLECTION: settings.collective.window_seconds,
    }
    return {kind: min(seconds, settings.alerts.repeat_seconds) for kind, seconds in windows.items()}
