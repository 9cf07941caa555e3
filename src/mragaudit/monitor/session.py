"""One query's way through the monitor, without any waiting: both clients follow these steps.

checked → prepare → (store) → settle → (store, seldom) → conclude; or `refused`, or, when the store is away,
`store_failed`.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from mragaudit.errors import DataError, StoreError
from mragaudit.monitor.breaker import Breakers, LeftAloneError
from mragaudit.monitor.calls import CACHED_USERS, Call, RecordCalls, mark_call, read_counts
from mragaudit.monitor.core import Counts, Judged, MonitorCore
from mragaudit.monitor.keys import UserKeys, encode_name, tenant_key, user_hash
from mragaudit.monitor.queries import DEFAULT_TENANT, Documents, Query, checked_query, is_time
from mragaudit.monitor.reload import SettingsFile
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.sinks import AlertSink, send_to_all
from mragaudit.monitor.sizes import SizeCache, size_call, size_of
from mragaudit.monitor.wording import unknown_level_reason
from mragaudit.records.monitoring import Alert, AlertKind, CollectionSize, Decision

logger = logging.getLogger(__name__)
PROBLEM_WINDOW_SECONDS = 60.0
ID_SHOWN = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A query as the host gave it, not yet checked."""

    user: str
    query_id: str
    collection: str
    documents: Documents
    tenant: str = DEFAULT_TENANT
    role: str | None = None
    time: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A checked query and the calls that record it."""

    query: Query
    user_hash: str
    calls: Sequence[Call]
    core: MonitorCore
    """The rules that the calls were built for; a reload in between changes nothing for this query."""


class Session:
    """The rules, counters and sinks of one monitor in one process."""

    def __init__(
        self,
        settings: MonitorSettings | SettingsFile,
        *,
        cluster: bool,
        sinks: Sequence[AlertSink],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = settings if isinstance(settings, SettingsFile) else None
        self.settings = settings.settings if isinstance(settings, SettingsFile) else settings
        self.cluster = cluster
        self.sinks = sinks
        self.counts = Counts()
        self.clock = clock
        store = self.settings.store
        self.breakers = Breakers(failures=store.breaker_failures, open_seconds=store.breaker_seconds, cluster=cluster)
        self._problems: dict[str, float] = {}
        self._hash = lru_cache(maxsize=CACHED_USERS)(_hash)
        self._apply(self.settings)

    def _apply(self, settings: MonitorSettings) -> None:
        self.settings = settings
        self.core = MonitorCore(settings)
        self._sizes = SizeCache(max_age_seconds=settings.coverage.size_max_age_seconds)
        self._calls = RecordCalls(settings, cluster=self.cluster)

    def reload(self) -> None:
        """Take over settings that changed on disk; connection and prefix stay until a restart."""
        if self._source is not None and (changed := self._source.changed()) is not None:
            self._apply(changed)

    def checked(self, request: Request) -> Query:
        """Return the query; raises DataError for one that cannot be taken."""
        return checked_query(
            user=request.user,
            query_id=request.query_id,
            collection=request.collection,
            documents=request.documents,
            settings=self.settings,
            tenant=request.tenant,
            role=request.role,
            time=request.time,
        )

    def prepare(self, query: Query, *, secret: bytes) -> Prepared:
        """Return the calls for a query."""
        hashed = self._hash(secret, query.tenant, query.user)
        return Prepared(query=query, user_hash=hashed, calls=self._calls.calls(query, hashed), core=self.core)

    def with_size(self, prepared: Prepared) -> list[Call]:
        """Return the calls of a query, on a cluster with the one that reads the collection's size when it is due."""
        calls = list(prepared.calls)
        if self.cluster and not self._sizes.is_fresh(prepared.query.collection):
            calls.append(size_call(self.settings, prepared.query.collection, size=None))
        return calls

    def now(self) -> float:
        """Return the time by which the ages of sizes are measured."""
        return self._sizes.now()

    def settle(self, prepared: Prepared, replies: Sequence[Any], *, asked_at: float) -> Judged:
        """Return the decision that the answers to `with_size`, asked for at `asked_at`, lead to."""
        own = len(prepared.calls)
        self._notice_failed(replies, prepared.query)
        size = self._size(prepared.query.collection, replies[own:], asked_at=asked_at)
        counts = read_counts(replies[:own], levels=prepared.core.settings.levels, size=size)
        if prepared.query.unknown_levels:
            self._notice_levels(prepared, counts.time)
        return prepared.core.judge(prepared.query, counts, user_hash=prepared.user_hash)

    def _size(self, collection: str, replies: Sequence[Any], *, asked_at: float) -> CollectionSize | None:
        """Return the size that was read beside the query, else a copy that is young enough, else None."""
        if not replies:
            return self._sizes.copy(collection)
        if replies[0] is None:
            return None
        self._sizes.put(collection, replies[0], asked_at=asked_at)
        return size_of(replies[0], age_seconds=self._sizes.now() - asked_at)

    def mark_calls(self, prepared: Prepared, judged: Judged) -> list[Call]:
        """Return the calls that note state and claim alerts; empty for nearly every query."""
        calls = []
        prefix = self.settings.store.prefix
        if judged.mark is not None:
            keys = UserKeys(prefix, prepared.user_hash)
            calls.append(mark_call(judged.mark, state=keys.key("state"), baseline=keys.key("base")))
        if judged.collective_mark is not None:
            seen = f"seen:{encode_name(prepared.query.collection)}"
            key = tenant_key(prefix, tenant=encode_name(prepared.query.tenant), name=seen)
            calls.append(mark_call(judged.collective_mark, state=key, baseline=None))
        return calls

    def conclude(self, prepared: Prepared, judged: Judged, claims: Sequence[Sequence[int] | None]) -> Decision:
        """Count the decision and send the alerts that this worker may send.

        `claims` are the answers of `mark_calls`; an alert whose claim got no answer is sent: twice is better than
        never.
        """
        won = [one is None or any(one) for one in claims]
        self._notice_failed(claims, prepared.query)
        decision = judged.decision
        if judged.mark is not None and judged.mark.claims and won[0] and decision.alert is not None:
            decision = msgspec.structs.replace(decision, alert_sent=True)
        if judged.collective_alert is not None and won[-1]:
            self._send(judged.collective_alert)
        return self._counted(decision)

    def _notice_failed(self, replies: Sequence[object], query: Query) -> None:
        """Count calls beside the record call that got no answer, and say so: the query itself is judged."""
        failed = sum(reply is None for reply in replies)
        if not failed:
            return
        self.counts.problems["part"] += failed
        problem = "the store did not answer in part: a collection's size, its common coverage or a state is missing"
        self._notice("part", kind="store", problem=problem, query=query, time=self.clock())

    def _notice_levels(self, prepared: Prepared, time: float) -> None:
        self.counts.unknown_levels += 1
        problem = unknown_level_reason(prepared.query, settings=prepared.core.settings)
        self._notice("level", kind="input", problem=problem, query=prepared.query, time=time)

    def _notice(self, label: str, *, kind: AlertKind, problem: str, query: Query, time: float) -> None:
        if self._is_due(label, time):
            self._send(self.core.notice(kind, problem=problem, query=query, time=time))

    def _is_due(self, label: str, time: float) -> bool:
        """Return whether a problem is told of now: once a minute, each kind for itself."""
        last = self._problems.get(label)
        due = last is None or not 0 <= time - last <= PROBLEM_WINDOW_SECONDS
        if due:
            self._problems[label] = time
        return due

    def refused(self, request: Request, error: DataError) -> Decision:
        """Return the throttle for a query that cannot be taken: whatever it was, it was not counted."""
        return self._unjudged(request, kind="input", label="input", problem=f"refused: {error}", passes=False)

    def store_away(self, request: Request, reason: str, *, label: str = "store") -> Decision:
        """Return the configured decision for a query that the store did not count."""
        passes = self.settings.store.on_failure == "open"
        problem = f"the store did not count this query ({reason}); on_failure is {self.settings.store.on_failure}"
        return self._unjudged(request, kind="store", label=label, problem=problem, passes=passes)

    def store_failed(self, request: Request, error: StoreError) -> Decision:
        """Return the configured decision after a call that failed, or that the breaker kept from the store."""
        return self.store_away(request, str(error), label="breaker" if isinstance(error, LeftAloneError) else "store")

    def broken(self, request: Request, error: Exception) -> Decision:
        """Return the configured decision after a fault of ours; it is logged, the served query goes on.

        The log gets its kind and place but not its words, which may hold an id.
        """
        place = "".join(traceback.format_tb(error.__traceback__))
        logger.error("the monitor failed on a query: %s\n%s", type(error).__name__, place)
        return self.store_away(request, f"internal fault {type(error).__name__}", label="internal")

    def _unjudged(self, request: Request, *, kind: AlertKind, label: str, problem: str, passes: bool) -> Decision:
        now = self.clock() if request.time is None or not is_time(request.time) else request.time
        self.counts.problems[label] += 1
        decision = self.core.unjudged(
            kind=kind,
            problem=problem,
            passes=passes,
            time=now,
            ids=_as_text(request),
        )
        return self._counted(msgspec.structs.replace(decision, alert_sent=self._is_due(label, now)))

    def _counted(self, decision: Decision) -> Decision:
        self.counts.decisions[decision.action] += 1
        self.counts.duplicates += decision.duplicate
        for name in decision.missing:
            self.counts.not_evaluated[name] += 1
        if decision.alert is not None and decision.alert_sent:
            self._send(decision.alert)
        return decision

    def _send(self, alert: Alert) -> None:
        self.counts.alerts[alert.kind] += 1
        send_to_all(self.sinks, alert)


def _hash(secret: bytes, tenant: str, user: str) -> str:
    return user_hash(secret, tenant=tenant, user=user)


def _as_text(request: Request) -> Mapping[str, str]:
    """Return the ids of an unchecked query, cut, whatever they are."""
    fields = {"user": request.user, "query_id": request.query_id}
    fields |= {"collection": request.collection, "tenant": request.tenant}
    return {name: str(value)[:ID_SHOWN].encode("utf-8", "replace").decode() for name, value in fields.items()}
