"""What a decision means for one request, whatever framework it came through.

A front records what a request retrieved, then either uses all documents, uses fewer, holds the answer back, or
refuses. What the client gets tells it nothing of scores, thresholds or reasons.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mragaudit.errors import ConfigError, DataError, MragauditError
from mragaudit.monitor.aio import AsyncExfiltrationMonitor
from mragaudit.monitor.client import ExfiltrationMonitor
from mragaudit.monitor.core import Counts
from mragaudit.monitor.front.counts import FrontCounts
from mragaudit.monitor.front.identity import Identify, Identity, Scope, identity_of
from mragaudit.monitor.queries import DEFAULT_TENANT, RetrievedDocument
from mragaudit.monitor.session import Request
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.records.monitoring import Decision

logger = logging.getLogger(__name__)
TOO_MANY_REQUESTS = 429
UNAUTHORIZED = 401
T = TypeVar("T")
Pair = RetrievedDocument | tuple[str, str]
Describe = Callable[[T], Pair]


def as_is(document: Any) -> Any:
    """Return a document that is a pair (id, level) already."""
    return document


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval:
    """What one query of a request retrieved."""

    collection: str
    documents: Sequence[Pair]
    query_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The host's own id, the same for its retries. A client that could choose it would have its queries not counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An answer in place of the host's."""

    status: int
    retry_after_seconds: int | None = None

    @property
    def message(self) -> str:
        """What the client is told."""
        return "Too many requests." if self.status == TOO_MANY_REQUESTS else "Unknown user."

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        if self.retry_after_seconds is None:
            return {"www-authenticate": "Bearer", "cache-control": "no-store"}
        return {"retry-after": str(self.retry_after_seconds), "cache-control": "no-store"}


UNIDENTIFIED = Refusal(status=UNAUTHORIZED)


class RequestRefusedError(MragauditError):
    """A retriever may return nothing now: `refusal` is what the host should answer its client."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class ClientLeftError(MragauditError):
    """The client left while its answer was held back."""


class Threaded:
    """A synchronous monitor whose waiting is done in threads."""

    def __init__(self, monitor: ExfiltrationMonitor) -> None:
        self.blocking = monitor
        self.session = monitor.session

    @property
    def settings(self) -> MonitorSettings:
        """The settings in force."""
        return self.blocking.settings

    @property
    def counts(self) -> Counts:
        """What the monitor did."""
        return self.blocking.counts

    async def record(self, **query: Any) -> Decision:
        """Record one query; the arguments are those of `ExfiltrationMonitor.record`."""
        return await asyncio.to_thread(self.blocking.record, **query)

    async def hold(self, user: str, request_id: str, *, tenant: str = DEFAULT_TENANT) -> bool:
        """Take a place for a delayed request."""
        return await asyncio.to_thread(self.blocking.hold, user, request_id, tenant=tenant)

    async def release(self, user: str, request_id: str, *, tenant: str = DEFAULT_TENANT) -> None:
        """Give it back."""
        await asyncio.to_thread(self.blocking.release, user, request_id, tenant=tenant)

    async def user_hash(self, user: str, *, tenant: str = DEFAULT_TENANT) -> str:
        """Return a user's keyed hash."""
        return await asyncio.to_thread(self.blocking.user_hash, user, tenant=tenant)


class LocalPlaces:
    """Places for delayed requests that this process counts itself: for users whom the store could not count."""

    def __init__(self) -> None:
        self._taken: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def take(self, identity: Identity, *, most: int) -> bool:
        """Take a place of the user's; False when all are taken."""
        key = (identity.tenant, str(identity.user))
        with self._lock:
            if self._taken[key] >= most:
                return False
            self._taken[key] += 1
            return True

    def give_back(self, identity: Identity) -> None:
        """Give a place back."""
        key = (identity.tenant, str(identity.user))
        with self._lock:
            self._taken[key] -= 1
            if self._taken[key] <= 0:
                del self._taken[key]


class Guard:
    """One monitor and what the fronts before it share; make one a process.

    With an asyncio monitor it serves asyncio code alone; with a synchronous one both, its waiting done in threads.
    """

    def __init__(self, monitor: ExfiltrationMonitor | AsyncExfiltrationMonitor) -> None:
        self.counts = FrontCounts()
        self.monitor = Threaded(monitor) if isinstance(monitor, ExfiltrationMonitor) else monitor
        self._places = LocalPlaces()
        self._releases: set[asyncio.Task[None]] = set()

    @property
    def blocking(self) -> ExfiltrationMonitor:
        """The monitor of synchronous code; raises ConfigError where the guard was given an asyncio one."""
        if not isinstance(self.monitor, Threaded):
            raise ConfigError("the guard holds an AsyncExfiltrationMonitor; synchronous code needs ExfiltrationMonitor")
        return self.monitor.blocking

    async def identity(self, identify: Identify, scope: Scope) -> Identity | None:
        """Return whose request it is; nobody's, with the fault logged, where the host's function fails."""
        try:
            return identity_of(await resolved(identify(scope)))
        except Exception:  # unknown is not trusted: the request is refused
            logger.exception("`identify` failed; the request counts as nobody's")
            return None

    async def record(self, identity: Identity, retrieval: Retrieval) -> Decision:
        """Record what a request retrieved and return the decision; never raises."""
        started = time.perf_counter()
        decision = await self.monitor.record(**_query(identity, retrieval))
        self.counts.recorded(time.perf_counter() - started)
        return decision

    def record_blocking(self, identity: Identity, retrieval: Retrieval) -> Decision:
        """Do what `record` does, in synchronous code."""
        started = time.perf_counter()
        decision = self.blocking.record(**_query(identity, retrieval))
        self.counts.recorded(time.perf_counter() - started)
        return decision

    def unreadable(self, identity: Identity, error: DataError) -> Decision:
        """Return the decision on a request whose retrieved documents could not be read: throttled, with an alert."""
        request = Request(user=identity.user, query_id="", collection="", documents=(), tenant=identity.tenant)
        return self.monitor.session.refused(request, error)

    def seconds_of(self, decision: Decision, *, documents: int, can_cut: bool) -> float:
        """Return how long to hold an answer back that was made from so many documents.

        A front that learns of the documents when the answer is made already cannot cut them: it holds back instead.
        """
        most = decision.max_results
        if most is not None and documents > most and not can_cut:
            return self.monitor.settings.throttle.delay_seconds
        return decision.delay_seconds

    def cut(self, decision: Decision, documents: Iterable[T]) -> list[T]:
        """Return the documents that may be used: the first ones, in the order given."""
        given = list(documents)
        if decision.max_results is None or len(given) <= decision.max_results:
            return given
        self.counts.truncate()
        return given[: decision.max_results]

    def too_many(self) -> Refusal:
        """Return the refusal of a user who has too many delayed requests, and count it."""
        self.counts.refuse("places")
        seconds = self.monitor.settings.throttle.retry_after_seconds
        return Refusal(status=TOO_MANY_REQUESTS, retry_after_seconds=seconds)

    def unidentified(self) -> Refusal:
        """Return the refusal of a request by nobody that retrieved something, and count it."""
        self.counts.refuse("unidentified")
        logger.warning("a request by nobody retrieved documents; it was refused and could not be recorded")
        return UNIDENTIFIED

    async def hold_back(
        self,
        decision: Decision,
        *,
        identity: Identity,
        seconds: float,
        gone: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> Refusal | None:
        """Hold an answer back for so long; return the refusal where the user has no place left.

        `gone` returns once the client has left; its place is then free at once. Raises ClientLeftError.
        """
        if seconds <= 0:
            return None
        request_id = uuid.uuid4().hex
        if not await self._take(decision, identity, request_id):
            return self.too_many()
        self.counts.start_waiting()
        started, stayed = time.monotonic(), False
        try:
            stayed = await _wait(seconds, gone)
        finally:
            self.counts.end_waiting(time.monotonic() - started, abandoned=not stayed)
            await self._give_back(decision, identity, request_id)
        if not stayed:
            raise ClientLeftError("the client left")
        return None

    def hold_back_blocking(self, decision: Decision, *, identity: Identity, seconds: float) -> Refusal | None:
        """Do what `hold_back` does, in synchronous code."""
        if seconds <= 0:
            return None
        request_id = uuid.uuid4().hex
        if not self._take_blocking(decision, identity, request_id):
            return self.too_many()
        self.counts.start_waiting()
        started, stayed = time.monotonic(), False
        try:
            time.sleep(seconds)
            stayed = True
        finally:
            self.counts.end_waiting(time.monotonic() - started, abandoned=not stayed)
            if decision.problem is None:
                self.blocking.release(identity.user, request_id, tenant=identity.tenant)
            else:
                self._places.give_back(identity)
        return None

    async def _take(self, decision: Decision, identity: Identity, request_id: str) -> bool:
        if decision.problem is not None:
            return self._places.take(identity, most=self.monitor.settings.throttle.max_delayed)
        return await self.monitor.hold(identity.user, request_id, tenant=identity.tenant)

    def _take_blocking(self, decision: Decision, identity: Identity, request_id: str) -> bool:
        if decision.problem is not None:
            return self._places.take(identity, most=self.monitor.settings.throttle.max_delayed)
        return self.blocking.hold(identity.user, request_id, tenant=identity.tenant)

    async def _give_back(self, decision: Decision, identity: Identity, request_id: str) -> None:
        """Free a place also while the request is being cancelled, when every further wait is cancelled too."""
        if decision.problem is not None:
            self._places.give_back(identity)
            return
        task = asyncio.ensure_future(self.monitor.release(identity.user, request_id, tenant=identity.tenant))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)
        await asyncio.shield(task)


def _query(identity: Identity, retrieval: Retrieval) -> dict[str, Any]:
    return {
        "user": identity.user,
        "query_id": retrieval.query_id,
        "collection": retrieval.collection,
        "documents": retrieval.documents,
        "role": identity.role,
        "tenant": identity.tenant,
    }


async def _wait(seconds: float, gone: Callable[[], Coroutine[Any, Any, None]] | None) -> bool:
    """Return True after the time, False as soon as the client is gone."""
    if gone is None:
        await asyncio.sleep(seconds)
        return True
    leaving = asyncio.ensure_future(gone())
    try:
        done, _ = await asyncio.wait({leaving}, timeout=seconds)
        return not done
    finally:
        leaving.cancel()


async def resolved(found: T | Awaitable[T]) -> T:
    """Return what a host's function, plain or async, found."""
    return await found if isinstance(found, Awaitable) else found
