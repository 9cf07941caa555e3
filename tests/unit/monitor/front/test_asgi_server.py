"""The middleware under a real server, with real connections, and among other middleware."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from mragaudit.monitor.front.asgi import MonitorMiddleware, report_retrieval
from mragaudit.monitor.front.guard import Guard

pytestmark = pytest.mark.anyio
MakeGuard = Callable[..., Guard]
DOCUMENTS = [("d1", "public")]


async def ask(request: Request) -> Response:
    question = (await request.body()).decode()
    report_retrieval(collection="kb", documents=DOCUMENTS)
    return PlainTextResponse(f"answer to {question}")


async def stream(_request: Request) -> Response:
    async def chunks() -> Any:
        report_retrieval(collection="kb", documents=DOCUMENTS)
        for number in range(3):
            yield f"data: {number}\n\n"
            await asyncio.sleep(0.05)

    return StreamingResponse(chunks(), media_type="text/event-stream")


ROUTES = [Route("/ask", ask, methods=["POST"]), Route("/stream", stream)]


class PassOn(BaseHTTPMiddleware):
    """Middleware as many apps have it: it runs the app in a task of its own."""

    async def dispatch(self, request: Request, call_next: Any) -> Response:
        answer: Response = await call_next(request)
        answer.headers["x-passed"] = "on"
        return answer


def app_of(guard: Guard, *, outer: Any = (), inner: Any = ()) -> Starlette:
    ours = Middleware(MonitorMiddleware, guard=guard, identify=lambda _scope: "eve")
    return Starlette(routes=ROUTES, middleware=[*outer, ours, *inner])


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[int]:
    """Serve on a free port, which is yielded."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    running = asyncio.ensure_future(server._serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await running


async def test_a_connection_that_is_closed_while_delayed_frees_the_place(make_guard: MakeGuard) -> None:
    guard = make_guard(volume={"max_queries": 1}, throttle={"delay_seconds": 30.0, "max_delayed": 1})
    async with served(app_of(guard)) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /ask HTTP/1.1\r\nhost: app\r\ncontent-length: 1\r\n\r\n?")
        await until(lambda: guard.counts.waiting == 1)
        assert not await guard.monitor.hold("eve", "other")
        writer.close()
        await until(lambda: guard.counts.waiting == 0)
        await until(lambda: guard.counts.abandoned == 1)
    assert await guard.monitor.hold("eve", "other")


async def test_a_delayed_answer_arrives_whole_and_the_connection_goes_on(make_guard: MakeGuard) -> None:
    guard = make_guard(volume={"max_queries": 1})
    async with served(app_of(guard)) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        answers = [await client.post("/ask", content=f"{number}") for number in range(3)]
    assert [answer.text for answer in answers] == ["answer to 0", "answer to 1", "answer to 2"]
    assert guard.counts.delayed == 3


@pytest.mark.parametrize("where", ["outer", "inner"])
async def test_among_middleware_with_tasks_of_its_own_streams_stream_and_delays_delay(
    make_guard: MakeGuard, where: str
) -> None:
    guard = make_guard(volume={"max_queries": 1})
    app = app_of(guard, **{where: [Middleware(PassOn), Middleware(GZipMiddleware)]})
    times = []
    async with served(app) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        started = time.perf_counter()
        async with client.stream("GET", "/stream", headers={"accept-encoding": "identity"}) as answer:
            async for _chunk in answer.aiter_raw():
                times.append(time.perf_counter())
        assert answer.headers["x-passed"] == "on"
    assert times[0] - started >= 0.15
    assert len(times) == 3
    assert times[-1] - times[0] >= 0.02  # the first ones may have waited together, the last did not


async def test_a_refusal_through_other_middleware_is_a_429_with_retry_after(make_guard: MakeGuard) -> None:
    guard = make_guard(volume={"max_queries": 1}, throttle={"max_delayed": 0})
    app = app_of(guard, outer=[Middleware(PassOn)], inner=[Middleware(PassOn)])
    async with served(app) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        answers = [await client.post("/ask", content="?"), await client.get("/stream")]
    assert [(answer.status_code, answer.headers["retry-after"]) for answer in answers] == [(429, "33")] * 2


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
