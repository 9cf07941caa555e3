"""A small reverse proxy before a RAG service that cannot be changed but says what it retrieved.

The service reports in a header or a field of its JSON answer (`reports`); the proxy takes it from there alone,
records it, and strips it before the client sees the answer. Streamed answers stay streamed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mragaudit.errors import ConfigError, DataError
from mragaudit.monitor.aio import AsyncExfiltrationMonitor
from mragaudit.monitor.alerts import sinks_from
from mragaudit.monitor.connection import MEMORY
from mragaudit.monitor.front.admin import operations_app
from mragaudit.monitor.front.asgi import Inbox, Message, Receive, Send
from mragaudit.monitor.front.guard import ClientLeftError, Guard, Refusal
from mragaudit.monitor.front.identity import BearerIdentity, Identify, Identity, Scope
from mragaudit.monitor.front.packages import needed
from mragaudit.monitor.front.reports import FIELD, HEADER, read_reports, strip_field
from mragaudit.monitor.reload import SettingsFile
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.records.monitoring import Decision

with needed("httpx", "uvicorn"):
    import httpx
    import uvicorn

logger = logging.getLogger(__name__)
T = TypeVar("T")
Headers = list[tuple[bytes, bytes]]
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
REPLACED_IN_REQUEST = frozenset({b"host", b"content-length", b"accept-encoding", b"expect", b"x-forwarded-for"})
UNTRUE_AFTER_STRIPPING = frozenset(
    {b"content-length", b"content-encoding", b"etag", b"content-md5", b"digest", b"content-digest", b"repr-digest"}
)
FIRST_ERROR = 400
PAYLOAD_TOO_LARGE, BAD_GATEWAY, GATEWAY_TIMEOUT = 413, 502, 504
UNSUPPORTED_DATA = 1003
CONNECT_SECONDS = 5.0
COMPLAINT_SECONDS = 60.0
MIB = 1024 * 1024
MESSAGES = {
    PAYLOAD_TOO_LARGE: "The request is too large.",
    BAD_GATEWAY: "The service cannot be reached.",
    GATEWAY_TIMEOUT: "The service did not answer in time.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxyOptions:
    """How the proxy talks to the service."""

    upstream: str
    """http(s)://host[:port][/path]."""
    collection: str | None = None
    """Collection of reports that name none."""
    header: str = HEADER
    field: str = FIELD
    timeout_seconds: float = 300.0
    """Longest silence of the service."""
    max_body_bytes: int = 64 * MIB
    """Largest request, and largest JSON answer."""

    def __post_init__(self) -> None:
        url = httpx.URL(self.upstream)
        if url.scheme not in ("http", "https") or not url.host:
            raise ConfigError(f'the upstream is "{self.upstream}"; it must be like http://127.0.0.1:8000')


class BodyTooLargeError(Exception):
    """A body that must be read whole exceeds the bound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the service answered, its report apart; the body is read already, or still flows."""

    response: httpx.Response
    headers: Headers
    body: bytes | None
    reports: Sequence[bytes]


class ReverseProxy:
    """An ASGI app that forwards requests to the service."""

    def __init__(
        self,
        guard: Guard,
        options: ProxyOptions,
        *,
        identify: Identify | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        on_close: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Stand before a service; `identify` is by default the keyed hash of the bearer token."""
        self._guard = guard
        self._options = options
        self._identify = identify or BearerIdentity(guard.monitor)
        # A transport, not a client: a client would keep one user's cookies and send them for another.
        self._transport = transport or httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=None))
        self._upstream = httpx.URL(options.upstream)
        self._on_close = on_close
        self._header = options.header.lower().encode("latin-1")
        self._next_complaint = 0.0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": UNSUPPORTED_DATA})

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await self._transport.aclose()
        if self._on_close is not None:
            await self._on_close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        inbox = Inbox(receive, kind="http")
        try:
            outcome = await self._forward(scope, inbox, send)
        except ClientLeftError:
            outcome = "left"
        except BodyTooLargeError:
            outcome = "too_large"
            await _refuse(send, PAYLOAD_TOO_LARGE)
        finally:
            inbox.close()
        self._guard.counts.proxy(outcome)
        if outcome == "unreported" and scope["method"] == "POST":
            self._complain()

    async def _forward(self, scope: Scope, inbox: Inbox, send: Send) -> str:
        """Serve one request and return what became of it."""
        request = self._request(scope, await self._read_request(inbox))
        try:
            response = await _unless_left(self._transport.handle_async_request(request), inbox)
        except httpx.RequestError as error:
            return await _unreachable(send, error)
        try:
            return await self._answer(scope, response, inbox=inbox, send=send)
        finally:
            await response.aclose()

    async def _answer(self, scope: Scope, response: httpx.Response, *, inbox: Inbox, send: Send) -> str:
        try:
            answer = await _unless_left(self._read(scope, response), inbox)
        except httpx.RequestError as error:
            return await _unreachable(send, error)
        except BodyTooLargeError:
            logger.error("a JSON answer of the upstream exceeds %d bytes; it was not relayed", self._most)
            await _refuse(send, BAD_GATEWAY)
            return "too_large"
        outcome, refusal = await self._judge(scope, answer, inbox)
        if refusal is not None:
            await _refuse(send, refusal.status, message=refusal.message, headers=refusal.headers)
        else:
            await _unless_left(_relay(answer, send), inbox)
        return outcome

    async def _judge(self, scope: Scope, answer: Answer, inbox: Inbox) -> tuple[str, Refusal | None]:
        if answer.response.status_code >= FIRST_ERROR:
            return "failed", None
        if not answer.reports:
            return "unreported", None
        identity = await self._guard.identity(self._identify, scope)
        if identity is None:
            return "unidentified", self._guard.unidentified()
        try:
            retrievals = read_reports(answer.reports, collection=self._options.collection)
        except DataError as error:
            decision = self._guard.unreadable(identity, error)
            return "unreadable", await self._hold_back([(decision, self._longest)], identity, inbox)
        held = []
        for one in retrievals:
            decision = await self._guard.record(identity, one)
            seconds = self._guard.seconds_of(decision, documents=len(one.documents), can_cut=False)
            held.append((decision, seconds))
        return "recorded", await self._hold_back(held, identity, inbox)

    async def _hold_back(
        self, held: Sequence[tuple[Decision, float]], identity: Identity, inbox: Inbox
    ) -> Refusal | None:
        if not held:
            return None
        decision, seconds = max(held, key=lambda one: one[1])
        return await self._guard.hold_back(decision, identity=identity, seconds=seconds, gone=inbox.gone)

    @property
    def _longest(self) -> float:
        return self._guard.monitor.settings.throttle.delay_seconds

    @property
    def _most(self) -> int:
        return self._options.max_body_bytes

    def _request(self, scope: Scope, body: bytes) -> httpx.Request:
        kept = _kept(scope["headers"], dropped=REPLACED_IN_REQUEST | {self._header})
        peer = scope["client"][0] if scope.get("client") else ""
        before = [value for name, value in scope["headers"] if name.lower() == b"x-forwarded-for"]
        forwarded = b", ".join([*before, *([peer.encode("latin-1")] if peer else [])])
        headers = [*kept, (b"accept-encoding", b"identity")]
        if forwarded:
            headers.append((b"x-forwarded-for", forwarded))
        path = self._upstream.raw_path.partition(b"?")[0].rstrip(b"/") + (scope.get("raw_path") or _raw_path(scope))
        query = b"?" + scope["query_string"] if scope.get("query_string") else b""
        seconds = self._options.timeout_seconds
        timeout = {"connect": CONNECT_SECONDS, "read": seconds, "write": seconds, "pool": seconds}
        return httpx.Request(
            scope["method"],
            self._upstream.copy_with(raw_path=path + query),
            headers=headers,
            content=body or None,
            extensions={"timeout": timeout},
        )

    async def _read_request(self, inbox: Inbox) -> bytes:
        chunks, size = [], 0
        while True:
            message = await inbox.receive()
            if message["type"] == "http.disconnect":
                raise ClientLeftError("the client left")
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self._most:
                raise BodyTooLargeError
            if not message.get("more_body"):
                return b"".join(chunks)

    async def _read(self, scope: Scope, response: httpx.Response) -> Answer:
        """Return the answer, the header with the report taken out, and the field too where the body is JSON."""
        reports = [value for name, value in response.headers.raw if name.lower() == self._header]
        headers = _kept(response.headers.raw, dropped={self._header})
        if scope["method"] == "HEAD" or not _is_json(response):
            return Answer(response=response, headers=headers, body=None, reports=reports)
        body = await _whole(response, most=self._most)
        stripped = strip_field(body, self._options.field)
        if stripped.report is not None:
            reports.append(stripped.report)
        if stripped.body is not body or "content-encoding" in response.headers:
            headers = _kept(headers, dropped=UNTRUE_AFTER_STRIPPING)
            headers.append((b"content-length", str(len(stripped.body)).encode()))
        return Answer(response=response, headers=headers, body=stripped.body, reports=reports)

    def _complain(self) -> None:
        """Say, once a minute, that an answer reported nothing: a service that stops reporting is not watched."""
        if time.monotonic() >= self._next_complaint:
            self._next_complaint = time.monotonic() + COMPLAINT_SECONDS
            logger.warning("an answer to a POST had neither %s nor a field %s; nothing was recorded", *self._names)

    @property
    def _names(self) -> tuple[str, str]:
        return self._options.header, self._options.field


def _kept(headers: Iterable[tuple[bytes, bytes]], *, dropped: Iterable[bytes]) -> Headers:
    """Return the headers that go on: not those of the connection, nor those it names, nor the dropped ones."""
    given = list(headers)
    named = {one.strip().lower() for name, value in given if name.lower() == b"connection" for one in value.split(b",")}
    out = HOP_BY_HOP | named | set(dropped)
    return [(name, value) for name, value in given if name.lower() not in out]


def _raw_path(scope: Scope) -> bytes:
    return httpx.URL("http://upstream").copy_with(path=scope["path"]).raw_path


def _is_json(response: httpx.Response) -> bool:
    content_type: str = response.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


async def _whole(response: httpx.Response, *, most: int) -> bytes:
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            raise BodyTooLargeError
    return b"".join(chunks)


async def _unless_left(work: Coroutine[Any, Any, T], inbox: Inbox) -> T:
    """Return what the work returns; stop it and raise ClientLeftError as soon as the client has left."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(inbox.gone())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientLeftError("the client left")
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _relay(answer: Answer, send: Send) -> None:
    """Send the answer; one that breaks off at the upstream breaks off here, too."""
    await send({"type": "http.response.start", "status": answer.response.status_code, "headers": answer.headers})
    if answer.body is not None:
        await send({"type": "http.response.body", "body": answer.body, "more_body": False})
        return
    try:
        async for chunk in answer.response.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except httpx.RequestError as error:
        logger.warning("an answer of the upstream broke off: %s", type(error).__name__)
        return
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _unreachable(send: Send, error: httpx.RequestError) -> str:
    timeout = isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout)
    logger.warning("the upstream did not answer: %s", type(error).__name__)
    await _refuse(send, GATEWAY_TIMEOUT if timeout else BAD_GATEWAY)
    return "timeout" if timeout else "unreachable"


async def _refuse(
    send: Send, status: int, *, message: str | None = None, headers: MutableMapping[str, str] | None = None
) -> None:
    """Answer in the form that clients of OpenAI-compatible services read."""
    body = json.dumps({"error": {"message": message or MESSAGES[status], "code": status}}).encode()
    named = {**(headers or {}), "content-type": "application/json", "content-length": str(len(body))}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    start: Message = {"type": "http.response.start", "status": status, "headers": raw}
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": False})


def run_proxy(
    *,
    settings: MonitorSettings | SettingsFile,
    options: ProxyOptions,
    host: str = "127.0.0.1",
    port: int = 8080,
    identify: Identify | None = None,
    admin_host: str = "127.0.0.1",
    admin_port: int | None = 9464,
) -> None:
    """Serve until a signal comes: the proxy on one port, metrics and admin end points on another (None: not at all).

    Raises ConfigError and MissingPackageError before anything is served.
    """
    asyncio.run(
        _serve_all(
            settings,
            options=options,
            public=(host, port),
            identify=identify,
            admin=None if admin_port is None else (admin_host, admin_port),
        )
    )


async def _serve_all(
    settings: MonitorSettings | SettingsFile,
    *,
    options: ProxyOptions,
    public: tuple[str, int],
    identify: Identify | None,
    admin: tuple[str, int] | None,
) -> None:
    given = settings.settings if isinstance(settings, SettingsFile) else settings
    if given.store.url.startswith(MEMORY):
        logger.warning(
            "store.url is %s: what is counted is lost with this process; for production name a Redis", MEMORY
        )
    monitor = AsyncExfiltrationMonitor(settings, sinks=sinks_from(given))
    guard = Guard(monitor)
    proxy = ReverseProxy(guard, options, identify=identify, on_close=monitor.close)
    servers = [_server(proxy, public, lifespan="on")]
    if admin is not None:
        servers.append(_server(operations_app(guard), admin, lifespan="off"))
    await asyncio.gather(*(server.serve() for server in servers))


def _server(app: Any, address: tuple[str, int], *, lifespan: Any) -> uvicorn.Server:
    """Return a server that adds nothing to answers, takes no client's word for its address and logs no requests."""
    config = uvicorn.Config(
        app,
        host=address[0],
        port=address[1],
        lifespan=lifespan,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        access_log=False,
        log_config=None,
    )
    return uvicorn.Server(config)
