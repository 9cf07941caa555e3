"""ASGI middleware: the app says what it retrieved; the middleware records it and holds the answer back.

Before any ASGI app (Starlette, FastAPI, Litestar, Django). It imports no framework.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mragaudit.errors import ConfigError
from mragaudit.monitor.front.guard import (
    TOO_MANY_REQUESTS,
    ClientLeftError,
    Describe,
    Guard,
    Refusal,
    Retrieval,
    T,
    as_is,
)
from mragaudit.monitor.front.identity import Identified, Identify, Identity, Scope, identity_of
from mragaudit.records.monitoring import Decision

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]
KEY = "mragaudit.monitor"
BEFORE_THE_ANSWER = frozenset({"http.response.push", "http.response.early_hint", "websocket.accept"})
DISCONNECT = {"http": "http.disconnect", "websocket": "websocket.disconnect"}
KEPT_MESSAGES = 16
CLOSE_TRY_LATER, CLOSE_POLICY = 1013, 1008
RAISES_AFTER_DISCONNECT = (2, 4)
"""ASGI version from which sending to a client who left raises OSError, by which an endless stream ends."""


def report_retrieval(
    request: Any = None,
    *,
    collection: str,
    documents: Iterable[Any],
    describe: Describe[Any] = as_is,
    query_id: str | None = None,
    identity: Identified = None,
) -> None:
    """Say what the running request retrieved; it is recorded before the next part of the answer leaves.

    `request` is a scope or anything with one (Starlette's Request); without it, the request of the running task.
    `describe` turns a document into (id, level). `query_id` must be the host's own, never the client's. `identity`
    replaces what the middleware's `identify` would find. Raises ConfigError where no middleware stands in front.
    """
    found = _exchange(request)
    found.report(_retrieval(collection, documents, describe=describe, query_id=query_id), identity)


async def record_retrieval(
    request: Any = None,
    *,
    collection: str,
    documents: Iterable[T],
    describe: Describe[T] = as_is,
    query_id: str | None = None,
    identity: Identified = None,
) -> list[T]:
    """Record what the running request retrieved and return the documents that may be used.

    The arguments are those of `report_retrieval`. It waits where the user is held back, and returns none where the
    request is refused: whatever the app answers then, the client gets the refusal.
    """
    given = list(documents)
    retrieval = _retrieval(collection, given, describe=describe, query_id=query_id)
    return await _exchange(request).record(retrieval, given, identity=identity)


def _retrieval(
    collection: str, documents: Iterable[Any], *, describe: Describe[Any], query_id: str | None
) -> Retrieval:
    pairs = tuple(describe(one) for one in documents)
    if query_id is None:
        return Retrieval(collection=collection, documents=pairs)
    return Retrieval(collection=collection, documents=pairs, query_id=query_id)


class MonitorMiddleware:
    """Stands before an app; requests that report nothing pass untouched."""

    def __init__(self, app: App, *, guard: Guard, identify: Identify) -> None:
        """Wrap an app. `identify` says, from the scope, whose request it is; asked once the app reports something."""
        self._app = app
        self._guard = guard
        self._identify = identify

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] not in DISCONNECT:
            await self._app(scope, receive, send)
            return
        inner = {**scope}
        exchange = Exchange(guard=self._guard, identify=self._identify, scope=inner, receive=receive, send=send)
        inner[KEY] = exchange
        token = _running.set(exchange)
        try:
            await self._app(inner, exchange.inbox.receive, exchange.send)
            await exchange.finish()
        finally:
            _running.reset(token)
            exchange.inbox.close()


class Inbox:
    """The client's messages, read by the app and by the wait for its leaving; none is lost to either."""

    def __init__(self, receive: Receive, *, kind: str) -> None:
        self._receive = receive
        self._disconnect = DISCONNECT[kind]
        self._kept: deque[Message] = deque()
        self._pending: asyncio.Task[Message] | None = None
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.left = False
        """The client has left."""

    async def receive(self) -> Message:
        """Return the next message, for the app."""
        while not self._kept:
            if self.left or self._ended.done():
                return {"type": self._disconnect, "code": CLOSE_TRY_LATER}
            await self._fill()
        return self._kept.popleft()

    async def gone(self) -> None:
        """Return once the client has left or the request is over; what comes before is kept, up to a bound."""
        while not (self.left or self._ended.done()):
            if len(self._kept) >= KEPT_MESSAGES:
                await asyncio.shield(self._ended)
            else:
                await self._fill()

    def end(self) -> None:
        """Tell the app that its client is not there any more."""
        if not self._ended.done():
            self._ended.set_result(None)

    def close(self) -> None:
        """Stop reading."""
        self.end()
        if self._pending is not None:
            self._pending.cancel()

    async def _fill(self) -> None:
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._read())
        pending = self._pending
        waited: set[asyncio.Future[Any]] = {pending, self._ended}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if pending.done() and self._pending is pending:
            self._pending = None
            message = pending.result()
            self._kept.append(message)
            self.left = self.left or message["type"] == self._disconnect

    async def _read(self) -> Message:
        return await self._receive()


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A retrieval that is not recorded yet."""

    retrieval: Retrieval
    identity: Identified


class Exchange:
    """One request and its answer."""

    def __init__(self, *, guard: Guard, identify: Identify, scope: Scope, receive: Receive, send: Send) -> None:
        self.inbox = Inbox(receive, kind=scope["type"])
        self._guard = guard
        self._identify = identify
        self._scope = scope
        self._send = send
        self._reports: list[Report] = []
        self._start: Message | None = None
        """The beginning of the answer, held until its first part: until then it can be replaced."""
        self._started = False
        self._over = False
        self._finished = False

    def report(self, retrieval: Retrieval, identity: Identified) -> None:
        """Note a retrieval; raises ConfigError once the app has returned, when nothing would record it any more."""
        if self._finished:
            raise ConfigError("the request is over; what is retrieved after it is recorded with the monitor directly")
        self._reports.append(Report(retrieval=retrieval, identity=identity))

    async def record(self, retrieval: Retrieval, documents: Sequence[T], *, identity: Identified) -> list[T]:
        """Record a retrieval now and return the documents that may be used."""
        decisions = await self._settle([Report(retrieval=retrieval, identity=identity)], can_cut=True)
        return self._guard.cut(decisions[0], documents) if decisions else []

    async def send(self, message: Message) -> None:
        """Take a part of the app's answer."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        if message["type"] in BEFORE_THE_ANSWER:
            await self._send(message)
            return
        await self._settle(self._taken(), can_cut=False)
        if self._over:
            self._drop(message)
            return
        await self._begin()
        await self._send(message)

    async def finish(self) -> None:
        """Send what the app left unsent, and record what it reported after its answer."""
        self._finished = True
        for report in self._taken():
            identity = await self._identity(report)
            if identity is not None:
                await self._guard.record(identity, report.retrieval)
        if not self._over:
            await self._begin()

    async def _begin(self) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            self._started = True
            await self._send(start)

    def _taken(self) -> list[Report]:
        taken, self._reports = self._reports, []
        return taken

    async def _settle(self, reports: Sequence[Report], *, can_cut: bool) -> list[Decision]:
        """Record reports and hold the request back once, for the longest of their delays; none when it is refused."""
        longest: tuple[float, Decision, Identity] | None = None
        decisions = []
        for report in reports:
            identity = await self._identity(report)
            if identity is None:
                await self._refuse(self._guard.unidentified())
                return []
            decision = await self._guard.record(identity, report.retrieval)
            seconds = self._guard.seconds_of(decision, documents=len(report.retrieval.documents), can_cut=can_cut)
            if longest is None or seconds > longest[0]:
                longest = (seconds, decision, identity)
            decisions.append(decision)
        if self._over:
            return []
        if longest is not None and not await self._held(*longest):
            return []
        return decisions

    async def _held(self, seconds: float, decision: Decision, identity: Identity) -> bool:
        """Hold back; return False where that ended the request."""
        try:
            refusal = await self._guard.hold_back(decision, identity=identity, seconds=seconds, gone=self.inbox.gone)
        except ClientLeftError:
            self._over = True
            return False
        if refusal is not None:
            await self._refuse(refusal)
        return refusal is None

    async def _identity(self, report: Report) -> Identity | None:
        if (given := identity_of(report.identity)) is not None:
            return given
        return await self._guard.identity(self._identify, self._scope)

    async def _refuse(self, refusal: Refusal) -> None:
        if self._over:
            return
        self._over = True
        self.inbox.end()
        for message in self._refusal_messages(refusal):
            await self._send(message)

    def _refusal_messages(self, refusal: Refusal) -> list[Message]:
        """Return the refusal, or only the end of an answer that has begun."""
        if self._scope["type"] == "websocket":
            code = CLOSE_TRY_LATER if refusal.status == TOO_MANY_REQUESTS else CLOSE_POLICY
            return [{"type": "websocket.close", "code": code}]
        if self._started:
            return [{"type": "http.response.body", "body": b"", "more_body": False}]
        body = json.dumps({"error": {"message": refusal.message}}).encode()
        headers = {**refusal.headers, "content-type": "application/json", "content-length": str(len(body))}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        start: Message = {"type": "http.response.start", "status": refusal.status, "headers": raw}
        return [start, {"type": "http.response.body", "body": body, "more_body": False}]

    def _drop(self, message: Message) -> None:
        """Drop a part of an answer that nobody will read; end an endless stream as the server would."""
        version = tuple(int(part) for part in self._scope.get("asgi", {}).get("spec_version", "2.0").split("."))
        if message.get("more_body") and version >= RAISES_AFTER_DISCONNECT:
            raise OSError("the client is gone")


_running: ContextVar[Exchange | None] = ContextVar("mragaudit_monitor_exchange", default=None)


def _exchange(request: Any) -> Exchange:
    scope = getattr(request, "scope", request)
    found = _running.get() if scope is None else scope.get(KEY)
    if not isinstance(found, Exchange):
        raise ConfigError("no MonitorMiddleware stands in front of this app; add it, or use the monitor directly")
    return found
