"""The ASGI middleware, before Starlette apps and before bare ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from mragaudit.errors import ConfigError
from mragaudit.monitor.front.asgi import MonitorMiddleware, record_retrieval, report_retrieval
from mragaudit.monitor.front.guard import Guard
from mragaudit.monitor.front.identity import header_values

pytestmark = pytest.mark.anyio
MakeGuard = Callable[..., Guard]
DOCUMENTS = [("d1", "public"), ("d2", "internal"), ("d3", "confidential")]
THROTTLED_AT = 7


def user_of(scope: Any) -> str | None:
    """Stand in for the host's session: the tests' word, which no proxy checks."""
    values = header_values(scope, "x-test-user")
    return values[0] if values else None


async def ask(request: Request) -> Response:
    report_retrieval(request, collection="kb", documents=DOCUMENTS)
    return PlainTextResponse("answer")


async def ask_cut(request: Request) -> Response:
    used = await record_retrieval(request, collection="kb", documents=DOCUMENTS)
    return JSONResponse([doc_id for doc_id, _ in used])


async def ask_without_request(_request: Request) -> Response:
    report_retrieval(collection="kb", documents=DOCUMENTS)
    return PlainTextResponse("answer")


def ask_in_thread(_request: Request) -> Response:
    report_retrieval(collection="kb", documents=DOCUMENTS)
    return PlainTextResponse("answer")


async def health(_request: Request) -> Response:
    return PlainTextResponse("up")


async def stream(request: Request) -> Response:
    async def chunks() -> Any:
        report_retrieval(request, collection="kb", documents=DOCUMENTS)
        for number in range(3):
            yield f"data: {number}\n\n"
            await asyncio.sleep(0.02)

    return StreamingResponse(chunks(), media_type="text/event-stream")


async def late_stream(request: Request) -> Response:
    async def chunks() -> Any:
        yield "data: searching\n\n"
        report_retrieval(request, collection="kb", documents=DOCUMENTS)
        yield "data: secret\n\n"

    return StreamingResponse(chunks(), media_type="text/event-stream")


ROUTES = [
    Route("/ask", ask),
    Route("/cut", ask_cut),
    Route("/context", ask_without_request),
    Route("/thread", ask_in_thread),
    Route("/health", health),
    Route("/stream", stream),
    Route("/late", late_stream),
]


def protected(guard: Guard) -> MonitorMiddleware:
    return MonitorMiddleware(Starlette(routes=ROUTES), guard=guard, identify=user_of)


def client_of(guard: Guard) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=protected(guard), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://app", headers={"x-test-user": "eve"})


async def throttle(client: httpx.AsyncClient, path: str = "/ask") -> None:
    """Bring the client's user to where the next query is throttled."""
    for _ in range(THROTTLED_AT - 1):
        assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize("path", ["/ask", "/context", "/thread"])
async def test_a_reported_retrieval_is_recorded_for_the_identified_user(make_guard: MakeGuard, path: str) -> None:
    guard = make_guard()
    async with client_of(guard) as client:
        answer = await client.get(path)
    assert answer.text == "answer"
    assert guard.monitor.counts.decisions == {"pass": 1}
    decision = await guard.monitor.record(user="eve", query_id="next", collection="kb", documents=DOCUMENTS)
    assert decision.signals[0].count == 2


async def test_a_request_that_reports_nothing_is_not_recorded(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(guard) as client:
        assert (await client.get("/health")).text == "up"
    assert not guard.monitor.counts.decisions


async def test_a_throttled_answer_is_held_back_for_the_delay_and_then_served(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(guard) as client:
        await throttle(client)
        started = time.perf_counter()
        answer = await client.get("/ask")
        waited = time.perf_counter() - started
    assert (answer.status_code, answer.text) == (200, "answer")
    assert waited >= 0.15
    assert guard.counts.delayed == 1
    assert guard.counts.waiting == 0


async def test_a_flood_of_delayed_requests_gets_429_beyond_the_users_places(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"delay_seconds": 0.4})
    async with client_of(guard) as client:
        await throttle(client)
        answers = await asyncio.gather(*(client.get("/ask") for _ in range(30)))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * 2 + [429] * 28
    assert {answer.headers["retry-after"] for answer in answers if answer.status_code == 429} == {"33"}
    assert guard.counts.refused == {"places": 28}


async def test_another_user_is_served_at_once_during_a_flood(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"delay_seconds": 0.6})
    async with client_of(guard) as client:
        await throttle(client)
        flood = [asyncio.ensure_future(client.get("/ask")) for _ in range(10)]
        await asyncio.sleep(0.05)
        started = time.perf_counter()
        answer = await client.get("/ask", headers={"x-test-user": "alice"})
        assert time.perf_counter() - started < 0.4
        assert answer.status_code == 200
        await asyncio.gather(*flood)


async def test_the_client_never_sees_scores_thresholds_or_reasons(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"max_delayed": 0})
    async with client_of(guard) as client:
        await throttle(client)
        refused = await client.get("/ask")
        nobody = await client.get("/ask", headers={"x-test-user": ""})
    assert refused.json() == {"error": {"message": "Too many requests."}}
    assert dict(refused.headers) == {
        "retry-after": "33",
        "cache-control": "no-store",
        "content-type": "application/json",
        "content-length": str(len(refused.content)),
    }
    assert nobody.json() == {"error": {"message": "Unknown user."}}
    assert set(nobody.headers) == {"www-authenticate", "cache-control", "content-type", "content-length"}


async def test_nobody_gets_401_where_something_was_retrieved_and_an_answer_elsewhere(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(guard) as client:
        asked = await client.get("/ask", headers={"x-test-user": ""})
        health = await client.get("/health", headers={"x-test-user": ""})
    assert (asked.status_code, health.status_code) == (401, 200)
    assert "answer" not in asked.text
    assert guard.counts.refused == {"unidentified": 1}


async def test_a_failing_identify_counts_as_nobody_and_not_as_an_exception(make_guard: MakeGuard) -> None:
    def broken(_scope: Any) -> str:
        raise KeyError("session")

    app = MonitorMiddleware(Starlette(routes=ROUTES), guard=make_guard(), identify=broken)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        assert (await client.get("/ask")).status_code == 401


async def test_documents_recorded_before_the_answer_are_cut_to_the_first_ones(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"response": "truncate", "max_results": 2})
    async with client_of(guard) as client:
        await throttle(client, "/cut")
        assert (await client.get("/cut")).json() == ["d1", "d2"]
    assert guard.counts.truncated == 1
    assert guard.counts.delayed == 0


async def test_an_answer_that_can_no_longer_be_cut_is_held_back_instead(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"response": "truncate", "max_results": 2})
    async with client_of(guard) as client:
        await throttle(client)
        assert (await client.get("/ask")).text == "answer"
    assert guard.counts.delayed == 1


async def test_a_refused_recording_returns_no_documents_and_the_client_gets_429(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"max_delayed": 0})
    async with client_of(guard) as client:
        await throttle(client, "/cut")
        answer = await client.get("/cut")
    assert answer.status_code == 429
    assert "d1" not in answer.text


async def test_two_retrievals_of_one_request_are_two_queries_and_one_delay(make_guard: MakeGuard) -> None:
    async def twice(request: Request) -> Response:
        report_retrieval(request, collection="kb", documents=DOCUMENTS)
        report_retrieval(request, collection="wiki", documents=DOCUMENTS)
        return PlainTextResponse("answer")

    guard = make_guard(volume={"max_queries": 1})
    app = MonitorMiddleware(Starlette(routes=[Route("/", twice)]), guard=guard, identify=user_of)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        await client.get("/", headers={"x-test-user": "eve"})
    assert guard.monitor.counts.decisions == {"throttle": 2}
    assert guard.counts.delayed == 1


async def test_of_two_retrievals_at_a_time_a_refused_one_ends_the_wait_of_the_other(make_guard: MakeGuard) -> None:
    async def both(request: Request) -> Response:
        found = await asyncio.gather(
            *(record_retrieval(request, collection="kb", documents=DOCUMENTS) for _ in range(2))
        )
        return JSONResponse(found)

    guard = make_guard(volume={"max_queries": 1}, throttle={"delay_seconds": 30.0, "max_delayed": 1})
    app = MonitorMiddleware(Starlette(routes=[Route("/", both)]), guard=guard, identify=user_of)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        answer = await asyncio.wait_for(client.get("/", headers={"x-test-user": "eve"}), 5)
    assert answer.status_code == 429
    assert await guard.monitor.hold("eve", "other")


async def test_what_a_refused_request_still_reports_is_recorded_without_another_delay(make_guard: MakeGuard) -> None:
    async def stubborn(request: Request) -> Response:
        for _ in range(3):
            assert await record_retrieval(request, collection="kb", documents=DOCUMENTS) == []
        return PlainTextResponse("answer")

    guard = make_guard(volume={"max_queries": 1}, throttle={"max_delayed": 0})
    app = MonitorMiddleware(Starlette(routes=[Route("/", stubborn)]), guard=guard, identify=user_of)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        answer = await client.get("/", headers={"x-test-user": "eve"})
    assert answer.status_code == 429
    assert guard.monitor.counts.decisions == {"throttle": 3}
    assert guard.counts.refused == {"places": 1}


async def test_a_query_id_of_the_host_counts_a_retry_once(make_guard: MakeGuard) -> None:
    async def retried(request: Request) -> Response:
        report_retrieval(request, collection="kb", documents=DOCUMENTS, query_id="job-17")
        return PlainTextResponse("answer")

    guard = make_guard()
    app = MonitorMiddleware(Starlette(routes=[Route("/", retried)]), guard=guard, identify=user_of)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        for _ in range(3):
            await client.get("/", headers={"x-test-user": "eve"})
    assert guard.monitor.counts.duplicates == 2


async def test_a_retrieval_inside_a_streamed_answer_can_still_be_refused_with_429(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"max_delayed": 0})
    async with client_of(guard) as client:
        await throttle(client, "/stream")
        answer = await client.get("/stream")
    assert answer.status_code == 429
    assert "data" not in answer.text


async def test_a_stream_that_has_begun_ends_before_the_refused_documents_are_used(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"max_delayed": 0})
    async with client_of(guard) as client:
        await throttle(client, "/late")
        answer = await client.get("/late")
    assert answer.text == "data: searching\n\n"


async def test_an_answer_is_streamed_chunk_by_chunk_after_the_decision(make_guard: MakeGuard) -> None:
    arrivals: list[float] = []

    async def send(message: Any) -> None:
        if message.get("body"):
            arrivals.append(time.perf_counter())

    await protected(make_guard())(http_scope("/stream"), waiting_client(), send)
    assert len(arrivals) == 3
    assert min(later - earlier for earlier, later in pairwise(arrivals)) >= 0.015


async def test_an_app_that_fails_without_an_answer_counts_nothing(make_guard: MakeGuard) -> None:
    guard = make_guard()
    app = MonitorMiddleware(failing_app, guard=guard, identify=user_of)
    with pytest.raises(RuntimeError, match="broken"):
        await app(http_scope("/"), waiting_client(), _ignore)
    assert not guard.monitor.counts.decisions


async def failing_app(scope: Any, _receive: Any, _send: Any) -> None:
    report_retrieval(scope, collection="kb", documents=DOCUMENTS)
    raise RuntimeError("broken")


async def test_a_client_who_leaves_while_delayed_frees_the_place_and_gets_nothing(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"delay_seconds": 30.0, "max_delayed": 1})
    async with client_of(guard) as client:
        await throttle(client)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    leave = asyncio.Event()
    served = asyncio.ensure_future(protected(guard)(http_scope("/ask"), waiting_client(leave), send))
    await until(lambda: guard.counts.waiting == 1)
    assert not await guard.monitor.hold("eve", "other")
    leave.set()
    await asyncio.wait_for(served, 2)
    assert await guard.monitor.hold("eve", "other")
    assert sent == []
    assert guard.counts.abandoned == 1
    assert guard.counts.waiting == 0


async def test_a_request_that_is_cancelled_while_delayed_frees_the_place(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"delay_seconds": 30.0, "max_delayed": 1})
    async with client_of(guard) as client:
        await throttle(client)
    served = asyncio.ensure_future(protected(guard)(http_scope("/ask"), waiting_client(), _ignore))
    await until(lambda: guard.counts.waiting == 1)
    served.cancel()
    await asyncio.gather(served, return_exceptions=True)
    assert await guard.monitor.hold("eve", "other")


async def test_a_body_that_arrives_during_the_delay_still_reaches_the_app(make_guard: MakeGuard) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await record_retrieval(scope, collection="kb", documents=DOCUMENTS)
        body = (await receive())["body"] + (await receive())["body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    guard = make_guard(volume={"max_queries": 1})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    parts = iter(
        [
            {"type": "http.request", "body": b"one ", "more_body": True},
            {"type": "http.request", "body": b"two", "more_body": False},
        ]
    )
    receive = waiting_client(parts=parts)
    await MonitorMiddleware(app, guard=guard, identify=user_of)(http_scope("/"), receive, send)
    assert guard.counts.delayed == 1
    assert sent[-1]["body"] == b"one two"


async def test_a_websocket_of_a_refused_user_is_closed_before_the_documents_are_sent(make_guard: MakeGuard) -> None:
    async def chat(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        for number in range(THROTTLED_AT):
            report_retrieval(scope, collection="kb", documents=DOCUMENTS)
            await send({"type": "websocket.send", "text": f"answer {number}"})

    guard = make_guard(throttle={"max_delayed": 0})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {**http_scope("/"), "type": "websocket"}
    receive = waiting_client(parts=iter([{"type": "websocket.connect"}]))
    await MonitorMiddleware(chat, guard=guard, identify=user_of)(scope, receive, send)
    assert [message["type"] for message in sent] == ["websocket.accept", *["websocket.send"] * 6, "websocket.close"]
    assert sent[-1]["code"] == 1013


async def test_reporting_without_the_middleware_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match="no MonitorMiddleware stands in front"):
        report_retrieval({"type": "http"}, collection="kb", documents=DOCUMENTS)
    with pytest.raises(ConfigError, match="no MonitorMiddleware stands in front"):
        report_retrieval(collection="kb", documents=DOCUMENTS)


async def test_what_is_reported_after_the_answer_is_still_recorded(make_guard: MakeGuard) -> None:
    async def app(scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"early"})
        report_retrieval(scope, collection="kb", documents=DOCUMENTS)

    guard = make_guard()
    await MonitorMiddleware(app, guard=guard, identify=user_of)(http_scope("/"), waiting_client(), _ignore)
    assert guard.monitor.counts.decisions == {"pass": 1}


@pytest.mark.parametrize(("on_failure", "status"), [("open", 200), ("closed", 429)])
async def test_a_store_that_is_away_serves_or_throttles_as_configured(
    make_guard: MakeGuard, on_failure: str, status: int
) -> None:
    away = {"url": "redis://127.0.0.1:1", "timeout_seconds": 0.2, "on_failure": on_failure}
    guard = make_guard(store=away, throttle={"max_delayed": 0})
    async with client_of(guard) as client:
        answer = await client.get("/ask")
    assert answer.status_code == status
    assert guard.monitor.counts.problems["store"] >= 1


async def test_delayed_requests_stay_bounded_while_the_store_is_away(make_guard: MakeGuard) -> None:
    away = {"url": "redis://127.0.0.1:1", "timeout_seconds": 0.2, "on_failure": "closed"}
    guard = make_guard(store=away, throttle={"delay_seconds": 0.3})
    async with client_of(guard) as client:
        answers = await asyncio.gather(*(client.get("/ask") for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [429] * 6


@pytest.mark.parametrize("user", ["a:b{c}\n", "u" * 10_000, "💣", "ü" * 300])
async def test_hostile_user_ids_are_recorded_like_others(make_guard: MakeGuard, user: str) -> None:
    guard = make_guard()
    app = MonitorMiddleware(Starlette(routes=ROUTES), guard=guard, identify=lambda _scope: user)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        assert (await client.get("/ask")).status_code == 200
    assert guard.monitor.counts.decisions == {"pass": 1}


@pytest.mark.parametrize("user", ["u" * 20_000, "\ud800", 7])
async def test_an_impossible_user_id_is_throttled_and_never_an_exception(make_guard: MakeGuard, user: Any) -> None:
    guard = make_guard()
    app = MonitorMiddleware(Starlette(routes=ROUTES), guard=guard, identify=lambda _scope: user)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        assert (await client.get("/ask")).status_code == 200
    assert guard.monitor.counts.decisions == {"throttle": 1}
    assert guard.counts.delayed == 1


async def test_a_million_ids_in_one_query_are_refused_by_the_monitor_and_held_back(make_guard: MakeGuard) -> None:
    async def greedy(request: Request) -> Response:
        report_retrieval(request, collection="kb", documents=[(str(number), "public") for number in range(1_000_000)])
        return PlainTextResponse("answer")

    guard = make_guard()
    app = MonitorMiddleware(Starlette(routes=[Route("/", greedy)]), guard=guard, identify=user_of)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        await client.get("/", headers={"x-test-user": "eve"})
    assert guard.monitor.counts.problems["input"] == 1
    assert guard.counts.delayed == 1


def http_scope(path: str) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"x-test-user", b"eve")],
        "client": ("203.0.113.9", 5000),
        "server": ("app", 80),
        "scheme": "http",
        "http_version": "1.1",
    }


def waiting_client(leave: asyncio.Event | None = None, *, parts: Any = None) -> Any:
    """Return a `receive` that gives the parts (by default an empty body), then waits for the client to leave."""
    given = parts if parts is not None else iter([{"type": "http.request", "body": b"", "more_body": False}])
    leaving = leave or asyncio.Event()

    async def receive() -> Any:
        for part in given:
            return part
        await leaving.wait()
        return {"type": "http.disconnect"}

    return receive


async def _ignore(_message: Any) -> None:
    return None


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
