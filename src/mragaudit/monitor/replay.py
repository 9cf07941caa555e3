"""Traffic through the monitor itself, in simulated time.

Open loop: what the monitor counted at every query, whatever it decided, so that other thresholds can be tried on the
same counts. Closed loop: a throttled attacker waits, or gets fewer documents and asks again for what was cut away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count

import msgspec

from mragaudit.errors import StoreError
from mragaudit.monitor.client import ExfiltrationMonitor
from mragaudit.monitor.core import Judged, MonitorCore
from mragaudit.monitor.queries import Query
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.windows import WindowCounts
from mragaudit.records.monitoring import Alert, Decision
from mragaudit.records.replay import CountedQuery, DeliveredQuery, QueryEvent, Response, SeenDocument

SECRET = b"replay"
"""Users of a replay are simulated, or keyed hashes already; a fixed secret gives the same keys every time."""
REPEAT_SUFFIX = "-again"


class TapedCore(MonitorCore):
    """The monitor's rules, with the counts of the last judged query kept."""

    counts: WindowCounts

    def judge(self, query: Query, counts: WindowCounts, *, user_hash: str) -> Judged:
        """Return the decision on one query and keep what it was made from."""
        self.counts = counts
        return super().judge(query, counts, user_hash=user_hash)


@dataclass(slots=True)
class CollectionAlerts:
    """A sink that counts alerts about whole collections."""

    sent: int = 0

    def send(self, alert: Alert) -> None:
        """Count one alert."""
        self.sent += alert.kind == "collection"

    def close(self) -> None:
        """Nothing waits here."""


class Replayer:
    """One monitor that is fed with events; use it for one pass, since the store remembers."""

    def __init__(self, settings: MonitorSettings) -> None:
        """`settings.store` must hold nothing under its prefix: a query id that it knows would not count."""
        self._sink = CollectionAlerts()
        self._monitor = ExfiltrationMonitor(settings, sinks=(self._sink,), secret=SECRET)
        self._core = TapedCore(settings)
        self._monitor.session.core = self._core
        self._sizes: dict[str, int] = {}

    def ask(self, event: QueryEvent) -> tuple[Decision, CountedQuery]:
        """Return the decision on one event and what it was made from.

        Raises StoreError when the monitor could not count it: a replay with gaps would tell of an attacker who was
        not seen.
        """
        self._prepare(event)
        alerts = self._sink.sent
        decision = self._monitor.record(
            user=event.user,
            query_id=event.query_id,
            collection=event.group,
            documents=[(one.doc_id, one.level) for one in event.documents],
            role=event.profile,
            tenant=event.group,
            time=event.time,
        )
        if decision.problem is not None:
            raise StoreError(f'replay, query "{event.query_id}": {decision.problem}')
        if decision.duplicate:
            raise StoreError(f'replay, query "{event.query_id}": the store knows it already; replay on an empty store')
        return decision, self._counted(event, decision, collection_alert=self._sink.sent > alerts)

    def _prepare(self, event: QueryEvent) -> None:
        if event.collection_size is not None and self._sizes.get(event.group) != event.collection_size:
            self._sizes[event.group] = event.collection_size
            self._monitor.set_size(event.group, event.collection_size)
        if event.added:
            self._monitor.user_added(event.user, event.group, doc_ids=event.added, tenant=event.group)

    def _counted(self, event: QueryEvent, decision: Decision, *, collection_alert: bool) -> CountedQuery:
        counts = self._core.counts
        return CountedQuery(
            query_id=event.query_id,
            queries=counts.queries,
            distinct_documents=counts.distinct_documents,
            own_documents=counts.own_documents,
            returned=dict(counts.returned),
            distinct_sensitive_documents=counts.distinct_sensitive_documents,
            baseline_sensitive=counts.baseline_sensitive,
            baseline_returned=counts.baseline_returned,
            baseline_days=counts.baseline_days,
            size=counts.size,
            action=decision.action,
            alert_sent=decision.alert_sent,
            collection_alert=collection_alert,
        )

    def close(self) -> None:
        """Close the connection."""
        self._monitor.close()


def in_order(events: Iterable[QueryEvent]) -> list[QueryEvent]:
    """Return events group by group, each in order of time."""
    return sorted(events, key=lambda one: (one.group, one.time, one.query_id))


def open_loop(events: Iterable[QueryEvent], *, settings: MonitorSettings) -> Iterator[CountedQuery]:
    """Yield what the monitor counted and decided at every event; nothing that it decides changes what follows."""
    replayer = Replayer(settings)
    try:
        for event in in_order(events):
            yield replayer.ask(event)[1]
    finally:
        replayer.close()


def closed_loop(
    events: Sequence[QueryEvent], *, response: Response, settings: MonitorSettings
) -> Iterator[DeliveredQuery]:
    """Yield what each attacker was given when throttled queries are answered by `response`.

    With `delay` an account waits for its answer before it goes on, so that all its later queries move. With
    `truncate` it gets `max_results` documents, and asks once more at the end for a target that was cut away.
    """
    throttle = settings.throttle.model_copy(update={"response": response})
    replayer = Replayer(settings.model_copy(update={"throttle": throttle}))
    by_group: dict[str, list[QueryEvent]] = {}
    for event in in_order(events):
        by_group.setdefault(event.group, []).append(event)
    try:
        for one in by_group.values():
            yield from _attack(one, replayer=replayer, response=response)
    finally:
        replayer.close()


def _attack(events: Sequence[QueryEvent], *, replayer: Replayer, response: Response) -> Iterator[DeliveredQuery]:
    """Yield one attacker's queries; the accounts run beside each other, each with its own delay."""
    numbers = count()
    waiting = [(event.time, next(numbers), event) for event in events]
    heapify(waiting)
    delays: dict[str, float] = {}
    end = events[-1].time
    while waiting:
        planned, _, event = heappop(waiting)
        asked_at = event.time + delays.get(event.user, 0.0)
        if asked_at > planned:  # others may come first now
            heappush(waiting, (asked_at, next(numbers), event))
            continue
        decision, _ = replayer.ask(msgspec.structs.replace(event, time=asked_at))
        delays[event.user] = delays.get(event.user, 0.0) + decision.delay_seconds
        delivered = event.documents[: decision.max_results]
        if _worth_repeating(event, delivered):
            end = max(end, asked_at) + 1.0
            heappush(waiting, (end, next(numbers), _again(event, time=end - delays[event.user])))
        yield DeliveredQuery(
            response=response,
            query_id=event.query_id,
            actor=event.actor,
            time=round(asked_at, 3),
            answered=round(asked_at + decision.delay_seconds, 3),
            throttled=decision.throttled,
            delivered=delivered,
            target=event.target,
        )


def _worth_repeating(event: QueryEvent, delivered: Sequence[SeenDocument]) -> bool:
    """Return whether the target was retrieved and cut away, for the first time."""
    if event.query_id.endswith(REPEAT_SUFFIX):
        return False
    cut = event.documents[len(delivered) :]
    return any(one.doc_id == event.target for one in cut)


def _again(event: QueryEvent, *, time: float) -> QueryEvent:
    return msgspec.structs.replace(event, query_id=f"{event.query_id}{REPEAT_SUFFIX}", time=time, added=())


def undisturbed(events: Iterable[QueryEvent], *, response: Response) -> Iterator[DeliveredQuery]:
    """Yield the closed loop of attackers who are never throttled: everything as planned."""
    for event in events:
        yield DeliveredQuery(
            response=response,
            query_id=event.query_id,
            actor=event.actor,
            time=event.time,
            answered=event.time,
            throttled=False,
            delivered=event.documents,
            target=event.target,
        )
