"""The counts of an open loop judged again, by the monitor's own rules, at other settings: no store is needed.

One approximation: on which days a user's baseline was learnt was settled by the alerts of the replay itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mragaudit.monitor.core import MonitorCore
from mragaudit.monitor.queries import DEFAULT_TENANT, Query
from mragaudit.monitor.risk import SIGNALS
from mragaudit.monitor.settings import MonitorSettings, RoleLimits
from mragaudit.monitor.windows import Throttled, WindowCounts
from mragaudit.records.monitoring import Decision, SignalName, SignalReading
from mragaudit.records.replay import ActorKind, CountedQuery, QueryEvent

NEVER = math.inf
BELOW_ONE = 1 - 1e-9
"""Score of a signal that is used alone and does not alert, at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One event with what was counted at it."""

    event: QueryEvent
    counted: CountedQuery


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """One benign user, or one attacker with all accounts, with all queries in order of time."""

    name: str
    kind: ActorKind
    profile: str
    lang: str | None
    asked: Sequence[Asked]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What the monitor would have done at one query."""

    decision: Decision
    entered: bool
    """The account became throttled here."""
    alerted: bool
    """An alert about the account went out here."""


class AloneCore(MonitorCore):
    """One signal in place of all: throttled as long as it alerts, by the same hysteresis."""

    def __init__(self, settings: MonitorSettings, *, signal: SignalName) -> None:
        certain = settings.composite.model_copy(update={"throttle_at": 1.0, "floor": None})
        super().__init__(settings.model_copy(update={"composite": certain}))
        self._signal = signal

    def readings(self, counts: WindowCounts, *, role: str | None) -> tuple[SignalReading, ...]:
        """Return the one reading; a value that only equals its threshold does not alert, so it scores below 1."""
        read = super().readings(counts, role=role)
        return tuple(_below_one(one) for one in read if one.signal == self._signal)


def _below_one(reading: SignalReading) -> SignalReading:
    if reading.alerting or reading.score is None:
        return reading
    return msgspec.structs.replace(reading, score=min(reading.score, BELOW_ONE))


def core_of(settings: MonitorSettings, *, signal: str) -> MonitorCore:
    """Return the rules of one signal alone, or of all for `composite`."""
    alone = next((one for one in SIGNALS if one == signal), None)
    return MonitorCore(settings) if alone is None else AloneCore(settings, signal=alone)


def actors_of(events: Iterable[QueryEvent], counted: Mapping[str, CountedQuery]) -> list[Actor]:
    """Return all actors by name, their queries in order of time."""
    by_actor: dict[str, list[Asked]] = {}
    for event in events:
        by_actor.setdefault(event.actor, []).append(Asked(event=event, counted=counted[event.query_id]))
    return [_actor(name, by_actor[name]) for name in sorted(by_actor)]


def _actor(name: str, asked: Sequence[Asked]) -> Actor:
    first = asked[0].event
    ordered = sorted(asked, key=lambda one: (one.event.time, one.event.query_id))
    return Actor(name=name, kind=first.kind, profile=first.profile, lang=first.lang, asked=ordered)


def with_roles(settings: MonitorSettings, roles: Mapping[str, RoleLimits]) -> MonitorSettings:
    """Return the settings with these roles beside their own; a role is named as the profile that has it."""
    return settings.model_copy(update={"roles": {**settings.roles, **roles}})


def judge(actor: Actor, core: MonitorCore) -> list[Judgement]:
    """Return what the rules decide at every query of an actor, each account with a state of its own."""
    states: dict[str, Throttled] = {}
    found = []
    for one in actor.asked:
        user = one.event.user
        judgement, states[user] = _judge(one, core, state=states.get(user, Throttled()))
        found.append(judgement)
    return found


def window_counts(one: Asked, *, state: Throttled = Throttled()) -> WindowCounts:  # noqa: B008 - it is frozen
    """Return what the store counted, with a state of our own in place of the store's."""
    counted = one.counted
    return WindowCounts(
        time=one.event.time,
        duplicate=False,
        queries=counted.queries,
        distinct_documents=counted.distinct_documents,
        own_documents=counted.own_documents,
        returned=counted.returned,
        distinct_sensitive_documents=counted.distinct_sensitive_documents,
        baseline_sensitive=counted.baseline_sensitive,
        baseline_returned=counted.baseline_returned,
        baseline_days=counted.baseline_days,
        size=counted.size,
        state=state,
    )


def _judge(one: Asked, core: MonitorCore, *, state: Throttled) -> tuple[Judgement, Throttled]:
    event = one.event
    role = event.profile if event.profile in core.settings.roles else None
    query = Query(
        user=event.user,
        query_id=event.query_id,
        collection=event.group,
        tenant=DEFAULT_TENANT,
        role=role,
        by_level={},
        unknown_levels=(),
        time=event.time,
    )
    judged = core.judge(query, window_counts(one, state=state), user_hash="")
    mark = judged.mark
    if mark is None:
        return Judgement(decision=judged.decision, entered=False, alerted=False), state
    claimed = {**state.alerted, **dict.fromkeys(mark.claims, event.time)}
    since, over = {
        "enter": (event.time, event.time),
        "extend": (state.since, event.time),
        "release": (0.0, 0.0),
        "none": (state.since, state.last_over),
    }[mark.change]
    after = Throttled(since=since, last_over=over, alerted=claimed)
    return Judgement(decision=judged.decision, entered=mark.change == "enter", alerted=bool(mark.claims)), after


@dataclass(frozen=True, kw_only=True, slots=True)
class Take:
    """What an attacker had taken before the first throttled query, or by the end when there was none."""

    detected: bool
    documents: int
    """Distinct documents of the audited collection that were returned."""
    items: int
    """Distinct targets among them: items that a perfect generator would have given away."""
    disclosed: int | None
    """Distinct targets whose item the audit's answer disclosed; None where no answer was used."""
    seconds: float
    """From the first query to the first throttled one; infinite when there was none."""
    queries: int


def take_until(actor: Actor, first: int | None) -> Take:
    """Return what was taken before the query at position `first`, None for never throttled."""
    before = actor.asked if first is None else actor.asked[:first]
    start = actor.asked[0].event.time
    documents = {one.doc_id for asked in before for one in asked.event.documents if one.planted}
    items = {asked.event.target for asked in before if _reached(asked.event)}
    known = [asked.event for asked in before if asked.event.disclosed is not None]
    asked_any = any(one.event.disclosed is not None for one in actor.asked)
    return Take(
        detected=first is not None,
        documents=len(documents),
        items=len(items),
        disclosed=len({event.target for event in known if event.disclosed}) if asked_any else None,
        seconds=NEVER if first is None else actor.asked[first].event.time - start,
        queries=len(before),
    )


def _reached(event: QueryEvent) -> bool:
    return event.target is not None and any(one.doc_id == event.target for one in event.documents)


def first_throttled(judgements: Sequence[Judgement]) -> int | None:
    """Return the position of the first throttled query, None for none."""
    return next((position for position, one in enumerate(judgements) if one.decision.throttled), None)
