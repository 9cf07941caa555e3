"""The reverse proxy, before services of its own: Starlette apps, and bare sockets that misbehave."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mragaudit.errors import ConfigError
from mragaudit.monitor.front.guard import Guard
from mragaudit.monitor.front.identity import trusted_header
from mragaudit.monitor.front.proxy import ProxyOptions, ReverseProxy

pytestmark = pytest.mark.anyio
MakeGuard = Callable[..., Guard]
DOCUMENTS = [{"id": "d1", "level": "public"}, {"id": 2, "level": "confidential"}]
REPORT = json.dumps({"collection": "kb", "documents": DOCUMENTS})
THROTTLED_AT = 7
EVE = {"authorization": "Bearer eve-key"}


async def by_header(_request: Request) -> Response:
    return PlainTextResponse("answer", headers={"X-RAG-Retrieved": REPORT, "x-other": "kept"})


async def by_field(_request: Request) -> Response:
    body = b'{"id":"c-1","big":123456789012345678901234567890,"price":1.10,"rag_retrieved":' + REPORT.encode() + b"}"
    return Response(body, media_type="application/json", headers={"etag": '"1"'})


async def by_field_zipped(_request: Request) -> Response:
    body = gzip.compress(json.dumps({"choices": [], "rag_retrieved": json.loads(REPORT)}).encode())
    return Response(body, media_type="application/json", headers={"content-encoding": "gzip"})


async def silent(_request: Request) -> Response:
    return JSONResponse({"data": [1, 2.50]})


async def failing(_request: Request) -> Response:
    fields = {"error": "no such model", "rag_retrieved": json.loads(REPORT)}
    return JSONResponse(fields, status_code=404, headers={"X-RAG-Retrieved": REPORT})


async def unreadable(_request: Request) -> Response:
    return PlainTextResponse("answer", headers={"X-RAG-Retrieved": "[[["})


async def cookies(request: Request) -> Response:
    answer = PlainTextResponse(request.headers.get("cookie", "none"))
    answer.set_cookie("session", "of-the-first-user")
    return answer


async def echo(request: Request) -> Response:
    body = (await request.body()).decode()
    received = {"url": str(request.url), "headers": dict(request.headers), "body": body, "method": request.method}
    return JSONResponse(received)


UPSTREAM = Starlette(
    routes=[
        Route("/header", by_header, methods=["GET", "POST", "HEAD"]),
        Route("/field", by_field, methods=["GET", "POST"]),
        Route("/zipped", by_field_zipped),
        Route("/silent", silent, methods=["GET", "POST"]),
        Route("/failing", failing),
        Route("/unreadable", unreadable),
        Route("/cookies", cookies),
        Route("/{path:path}", echo, methods=["GET", "POST", "PUT"]),
    ]
)


def proxy_of(guard: Guard, *, upstream: Any = UPSTREAM, url: str = "http://upstream/base", **options: Any) -> Any:
    identify = options.pop("identify", None)
    return ReverseProxy(
        guard,
        ProxyOptions(upstream=url, **options),
        identify=identify,
        transport=httpx.ASGITransport(app=_without_base(upstream)) if upstream is not None else None,
    )


def _without_base(app: Any) -> Any:
    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        assert scope["path"].startswith("/base")
        await app({**scope, "path": scope["path"].removeprefix("/base")}, receive, send)

    return mounted


def client_of(proxy: Any, *, peer: str = "203.0.113.9", headers: Any = EVE) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=proxy, client=(peer, 5000))
    return httpx.AsyncClient(transport=transport, base_url="http://public", headers=headers)


async def throttle(client: httpx.AsyncClient, path: str = "/header") -> None:
    for _ in range(THROTTLED_AT - 1):
        assert (await client.get(path)).status_code == 200


async def test_ids_in_the_header_are_recorded_and_stripped(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard)) as client:
        answer = await client.get("/header")
    assert answer.text == "answer"
    assert answer.headers["x-other"] == "kept"
    assert not [name for name in answer.headers if "rag" in name]
    assert guard.monitor.counts.decisions == {"pass": 1}
    assert guard.counts.proxied == {"recorded": 1}


async def test_ids_in_a_json_field_are_recorded_and_stripped_and_the_rest_keeps_its_bytes(
    make_guard: MakeGuard,
) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard)) as client:
        answer = await client.get("/field")
    assert answer.content == b'{"id":"c-1","big":123456789012345678901234567890,"price":1.10}'
    assert answer.headers["content-length"] == str(len(answer.content))
    assert "etag" not in answer.headers
    assert guard.monitor.counts.decisions == {"pass": 1}


async def test_a_field_in_a_compressed_answer_is_found_and_stripped(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard)) as client:
        answer = await client.get("/zipped")
    assert answer.json() == {"choices": []}
    assert guard.counts.proxied == {"recorded": 1}


async def test_names_of_header_field_and_collection_can_be_chosen(make_guard: MakeGuard) -> None:
    async def app(_request: Request) -> Response:
        fields = {"sources": {"documents": [{"id": "f1", "level": "public"}]}}
        return JSONResponse(fields, headers={"X-Sources": '{"documents": [{"id": "h1", "level": "public"}]}'})

    guard = make_guard()
    proxy = proxy_of(
        guard, upstream=Starlette(routes=[Route("/", app)]), header="x-sources", field="sources", collection="wiki"
    )
    async with client_of(proxy) as client:
        answer = await client.get("/")
    assert (answer.json(), "x-sources" in answer.headers) == ({}, False)
    assert guard.monitor.counts.decisions == {"pass": 2}


async def test_an_answer_without_ids_passes_byte_by_byte_and_is_counted_as_unreported(
    make_guard: MakeGuard, caplog: pytest.LogCaptureFixture
) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard)) as client:
        answers = [await client.post("/silent") for _ in range(3)]
    assert {answer.content for answer in answers} == {b'{"data":[1,2.5]}'}
    assert guard.counts.proxied == {"unreported": 3}
    assert not guard.monitor.counts.decisions
    assert caplog.text.count("nothing was recorded") == 1


async def test_an_error_of_the_upstream_passes_unrecorded_and_stripped(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard)) as client:
        answer = await client.get("/failing")
    assert (answer.status_code, answer.json()) == (404, {"error": "no such model"})
    assert "x-rag-retrieved" not in answer.headers
    assert guard.counts.proxied == {"failed": 1}
    assert not guard.monitor.counts.decisions


async def test_a_header_that_the_client_sends_neither_reaches_the_upstream_nor_counts(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard)) as client:
        answer = await client.get("/anything", headers={"X-RAG-Retrieved": REPORT, "x-rag-retrieved": REPORT})
    assert "x-rag-retrieved" not in answer.json()["headers"]
    assert not guard.monitor.counts.decisions


async def test_method_path_query_headers_and_body_reach_the_upstream(make_guard: MakeGuard) -> None:
    async with client_of(proxy_of(make_guard())) as client:
        answer = await client.put(
            "/v1/a%2Fb?x=1&y=%20", content=b"body", headers={"x-mine": "1", "connection": "x-hop", "x-hop": "no"}
        )
    seen = answer.json()
    assert seen["url"].endswith("/v1/a%2Fb?x=1&y=%20") or seen["url"].endswith("/v1/a/b?x=1&y=%20")
    assert (seen["method"], seen["body"], seen["headers"]["x-mine"]) == ("PUT", "body", "1")
    assert seen["headers"]["host"] == "upstream"
    assert seen["headers"]["accept-encoding"] == "identity"
    assert seen["headers"]["x-forwarded-for"] == "203.0.113.9"
    assert seen["headers"]["authorization"] == "Bearer eve-key"
    assert "x-hop" not in seen["headers"]


async def test_one_users_cookie_is_never_sent_for_another(make_guard: MakeGuard) -> None:
    proxy = proxy_of(make_guard())
    async with client_of(proxy) as first, client_of(proxy) as second:
        assert (await first.get("/cookies")).headers["set-cookie"].startswith("session=of-the-first-user")
        assert (await second.get("/cookies")).text == "none"


async def test_a_throttled_user_waits_and_is_refused_beyond_the_places(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"delay_seconds": 0.4})
    async with client_of(proxy_of(guard)) as client:
        await throttle(client)
        started = time.perf_counter()
        answers = await asyncio.gather(*(client.get("/header") for _ in range(10)))
    assert time.perf_counter() - started >= 0.4
    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [429] * 8
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json() == {"error": {"message": "Too many requests.", "code": 429}}
    assert set(refused.headers) == {"retry-after", "cache-control", "content-type", "content-length"}
    assert refused.headers["retry-after"] == "33"


async def test_each_bearer_token_is_a_user_of_its_own_and_is_kept_nowhere(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"max_delayed": 0})
    proxy = proxy_of(guard)
    async with client_of(proxy) as eve, client_of(proxy, headers={"authorization": "bearer alice-key"}) as alice:
        await throttle(eve)
        assert (await eve.get("/header")).status_code == 429
        assert (await alice.get("/header")).status_code == 200
    keys = await guard.monitor.store.client.keys("*")  # type: ignore[union-attr]
    assert not [key for key in keys if b"eve" in key or b"alice" in key]


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Basic ZXZl"}, {"authorization": "Bearer "}, {"authorization": "Bearer"}]
)
async def test_nobody_gets_401_where_documents_were_retrieved(make_guard: MakeGuard, headers: Any) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard), headers=headers) as client:
        answer = await client.get("/field")
        models = await client.get("/silent")
    assert (answer.status_code, models.status_code) == (401, 200)
    assert answer.json() == {"error": {"message": "Unknown user.", "code": 401}}
    assert guard.counts.proxied == {"unidentified": 1, "unreported": 1}


async def test_a_user_header_counts_only_from_a_configured_proxy(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"max_delayed": 0})
    proxy = proxy_of(guard, identify=trusted_header("X-User", proxies=["10.0.0.0/8"]))
    eve = {"x-user": "eve"}
    async with client_of(proxy, peer="10.1.2.3", headers=eve) as trusted, client_of(proxy, headers=eve) as spoofer:
        assert (await spoofer.get("/header")).status_code == 401
        await throttle(trusted)
        assert (await trusted.get("/header")).status_code == 429
        assert (await trusted.get("/header", headers={"x-forwarded-for": "10.1.2.3"})).status_code == 429
        assert (await spoofer.get("/header", headers={"x-forwarded-for": "10.1.2.3"})).status_code == 401


async def test_an_unreadable_report_is_throttled_alerted_and_counted(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard)) as client:
        started = time.perf_counter()
        answer = await client.get("/unreadable")
    assert time.perf_counter() - started >= 0.15
    assert answer.text == "answer"
    assert guard.monitor.counts.problems["input"] == 1
    assert guard.monitor.counts.alerts["input"] == 1
    assert guard.counts.proxied == {"unreadable": 1}


@pytest.mark.parametrize(
    "report",
    [
        '{"documents": [{"id": "a"}]}',
        '{"collection": "kb"}',
        '{"collection": "kb", "documents": [1]}',
        '{"collection": "kb", "documents": [{"id": null}]}',
        '"kb"',
        "\xff",
    ],
)
async def test_a_report_that_is_none_is_not_taken_for_nothing_retrieved(make_guard: MakeGuard, report: str) -> None:
    async def app(_request: Request) -> Response:
        answer = PlainTextResponse("answer")
        answer.raw_headers.append((b"x-rag-retrieved", report.encode("latin-1")))
        return answer

    guard = make_guard()
    async with client_of(proxy_of(guard, upstream=Starlette(routes=[Route("/", app)]))) as client:
        await client.get("/")
    assert guard.counts.proxied == {"unreadable": 1}


async def test_a_hundred_thousand_reported_ids_are_refused_and_held_back(make_guard: MakeGuard) -> None:
    ids = [{"id": str(number), "level": "public"} for number in range(100_000)]
    body = json.dumps({"rag_retrieved": {"collection": "kb", "documents": ids}}).encode()

    async def app(_request: Request) -> Response:
        return Response(body, media_type="application/json")

    guard = make_guard()
    async with client_of(proxy_of(guard, upstream=Starlette(routes=[Route("/", app)]))) as client:
        assert (await client.get("/")).content == b"{}"
    assert guard.monitor.counts.problems["input"] == 1
    assert guard.counts.delayed == 1


async def test_bodies_beyond_the_bound_are_refused(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(proxy_of(guard, max_body_bytes=10)) as client:
        request = await client.post("/silent", content=b"x" * 11)
        answer = await client.get("/silent")
    assert (request.status_code, answer.status_code) == (413, 502)
    assert guard.counts.proxied == {"too_large": 2}


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", ""])
def test_an_upstream_that_is_no_url_is_one_clear_error(url: str) -> None:
    with pytest.raises(ConfigError, match=r"it must be like http://127\.0\.0\.1:8000"):
        ProxyOptions(upstream=url)


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def bare_upstream(serve: Serve) -> AsyncIterator[str]:
    """Serve connections by hand on a free port; yield the URL."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def scope_of(path: str = "/") -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer eve-key")],
        "client": ("203.0.113.9", 5000),
    }


class Client:
    """A client at the level of ASGI: it can leave, and notes when parts of the answer came."""

    def __init__(self) -> None:
        self.leave = asyncio.Event()
        self.sent: list[Any] = []
        self.times: list[float] = []
        self._asked = False

    async def receive(self) -> Any:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"{}", "more_body": False}
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if message.get("body"):
            self.times.append(time.perf_counter())

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])


async def stream_events(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"{}")
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nX-RAG-Retrieved: {REPORT}\r\n"
    writer.write(head.encode() + b"transfer-encoding: chunked\r\n\r\n")
    for _ in range(3):
        writer.write(b"9\r\ndata: x\n\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
    writer.write(b"0\r\n\r\n")
    writer.close()


async def test_a_streamed_answer_is_relayed_as_it_comes(make_guard: MakeGuard) -> None:
    client = Client()
    guard = make_guard()
    async with bare_upstream(stream_events) as url:
        await proxy_of(guard, upstream=None, url=url)(scope_of(), client.receive, client.send)
    assert client.status == 200
    assert b"".join(one.get("body", b"") for one in client.sent) == b"data: x\n\n" * 3
    assert min(later - earlier for earlier, later in pairwise(client.times)) >= 0.03
    assert not [name for name, _ in client.sent[0]["headers"] if name.lower() in (b"x-rag-retrieved", b"connection")]
    assert guard.monitor.counts.decisions == {"pass": 1}


async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await asyncio.sleep(60)
    finally:
        writer.close()


async def test_an_upstream_that_hangs_is_answered_with_504(make_guard: MakeGuard) -> None:
    client, guard = Client(), make_guard()
    async with bare_upstream(hang) as url:
        proxy = proxy_of(guard, upstream=None, url=url, timeout_seconds=0.2)
        await asyncio.wait_for(proxy(scope_of(), client.receive, client.send), 5)
    assert client.status == 504
    assert guard.counts.proxied == {"timeout": 1}


async def test_a_client_who_leaves_a_hanging_upstream_ends_the_request(make_guard: MakeGuard) -> None:
    client, guard = Client(), make_guard()
    async with bare_upstream(hang) as url:
        proxy = proxy_of(guard, upstream=None, url=url)
        served = asyncio.ensure_future(proxy(scope_of(), client.receive, client.send))
        await asyncio.sleep(0.1)
        client.leave.set()
        await asyncio.wait_for(served, 2)
    assert client.sent == []
    assert guard.counts.proxied == {"left": 1}


async def test_an_upstream_that_is_away_is_answered_with_502(make_guard: MakeGuard) -> None:
    client, guard = Client(), make_guard()
    await proxy_of(guard, upstream=None, url="http://127.0.0.1:1")(scope_of(), client.receive, client.send)
    assert client.status == 502
    assert guard.counts.proxied == {"unreachable": 1}


async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"{}")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.close()


async def test_an_answer_that_breaks_off_is_not_completed(make_guard: MakeGuard) -> None:
    client = Client()
    async with bare_upstream(break_off) as url:
        await proxy_of(make_guard(), upstream=None, url=url)(scope_of(), client.receive, client.send)
    assert client.sent[-1] == {"type": "http.response.body", "body": b"half", "more_body": True}


async def test_a_client_who_leaves_while_delayed_frees_the_place(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"delay_seconds": 30.0, "max_delayed": 1})
    proxy = proxy_of(guard)
    async with client_of(proxy) as client:
        await throttle(client)
    leaving = Client()
    served = asyncio.ensure_future(proxy(scope_of("/header"), leaving.receive, leaving.send))
    while guard.counts.waiting == 0:
        await asyncio.sleep(0.01)
    leaving.leave.set()
    await asyncio.wait_for(served, 2)
    assert leaving.sent == []
    assert guard.counts.abandoned == 1
    user = "token-" + await guard.monitor.user_hash("eve-key", tenant="bearer")
    assert await guard.monitor.hold(user, "other")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
    head = f"HTTP/1.1 200 OK\r\nX-RAG-Retrieved: {REPORT}\r\ncontent-length: {len(path)}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + path)
    await writer.drain()
    writer.close()


async def test_the_served_proxy_keeps_metrics_from_clients_and_ends_on_a_signal(tmp_path: Path) -> None:
    port, admin_port = free_ports(2)
    code = (
        "from mragaudit.monitor import MonitorSettings;"
        "from mragaudit.monitor.front.proxy import ProxyOptions, run_proxy;"
        f"run_proxy(settings=MonitorSettings(store={{'url': 'memory://served', 'timeout_seconds': 5}}),"
        f" options=ProxyOptions(upstream='URL'), port={port}, admin_port={admin_port})"
    )
    async with bare_upstream(answer_once) as url, httpx.AsyncClient(headers=EVE) as client:
        served = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code.replace("URL", url), cwd=tmp_path, env={**os.environ, "PYTHONWARNINGS": "error"}
        )
        try:
            answer = await _first_answer(client, f"http://127.0.0.1:{port}/metrics")
            metrics = await client.get(f"http://127.0.0.1:{admin_port}/metrics")
            admin = await client.post(f"http://127.0.0.1:{admin_port}/monitor/explain", json={"user": "eve"})
        finally:
            served.send_signal(signal.SIGTERM)
            code_of_end = await asyncio.wait_for(served.wait(), 20)
    assert answer.text == "/metrics"  # the upstream's, not the proxy's
    assert "x-rag-retrieved" not in answer.headers
    assert 'mragaudit_monitor_proxied_total{outcome="recorded"} 1.0' in metrics.text
    assert admin.status_code == 404
    assert code_of_end in (0, -signal.SIGTERM)


async def _first_answer(client: httpx.AsyncClient, url: str) -> httpx.Response:
    deadline = time.monotonic() + 30
    while True:
        try:
            return await client.get(url)
        except httpx.ConnectError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
