"""The FastAPI dependency, in a FastAPI app.

Annotations are not postponed here: FastAPI could not resolve those that name a local dependency.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import httpx
import pytest
from fastapi import Body, Depends, FastAPI, HTTPException, Request

from mragaudit.monitor.front.fastapi import RequestGuard, retrieval_guard
from mragaudit.monitor.front.guard import Guard
from mragaudit.monitor.front.identity import Identity

pytestmark = pytest.mark.anyio
MakeGuard = Callable[..., Guard]
THROTTLED_AT = 7


class Passage(NamedTuple):
    """What the sample app's retriever returns."""

    name: str
    level: str
    text: str


PASSAGES = [Passage("d1", "public", "one"), Passage("d2", "internal", "two"), Passage("d3", "restricted", "three")]


def user_of(request: Request) -> str | None:
    return request.headers.get("x-test-user")


def service(guard: Guard, *, identify: Any = user_of) -> FastAPI:
    app = FastAPI()
    depends = retrieval_guard(guard, identify=identify)

    @app.post("/ask")
    async def ask(
        question: Annotated[str, Body(embed=True)], monitored: Annotated[RequestGuard, Depends(depends)]
    ) -> dict[str, Any]:
        used = await monitored.record("kb", PASSAGES, describe=lambda one: (one.name, one.level))
        return {"question": question, "used": [one.text for one in used]}

    @app.get("/ask")
    async def ask_by_get(monitored: Annotated[RequestGuard, Depends(depends)]) -> list[str]:
        return [name for name, _ in await monitored.record("kb", [("d1", "public")])]

    return app


def client_of(guard: Guard, **options: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=service(guard, **options))
    return httpx.AsyncClient(transport=transport, base_url="http://app", headers={"x-test-user": "eve"})


async def throttle(client: httpx.AsyncClient) -> None:
    for _ in range(THROTTLED_AT - 1):
        assert (await client.post("/ask", json={"question": "?"})).status_code == 200


async def test_the_endpoint_gets_its_own_documents_back(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(guard) as client:
        answer = await client.post("/ask", json={"question": "why?"})
    assert answer.json() == {"question": "why?", "used": ["one", "two", "three"]}
    assert guard.monitor.counts.decisions == {"pass": 1}


async def test_a_throttled_endpoint_waits_and_then_answers(make_guard: MakeGuard) -> None:
    async with client_of(make_guard()) as client:
        await throttle(client)
        started = time.perf_counter()
        answer = await client.post("/ask", json={"question": "why?"})
    assert answer.status_code == 200
    assert time.perf_counter() - started >= 0.15


async def test_a_truncating_monitor_leaves_the_first_documents(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"response": "truncate", "max_results": 1})
    async with client_of(guard) as client:
        await throttle(client)
        answer = await client.post("/ask", json={"question": "why?"})
    assert answer.json()["used"] == ["one"]


async def test_beyond_the_users_places_a_delayed_endpoint_answers_429(make_guard: MakeGuard) -> None:
    guard = make_guard(throttle={"delay_seconds": 0.4})
    async with client_of(guard) as client:
        await throttle(client)
        answers = await asyncio.gather(*(client.post("/ask", json={"question": "?"}) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [429] * 8
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json() == {"detail": "Too many requests."}
    assert refused.headers["retry-after"] == "33"
    assert not any("risk" in name or "throttle" in name for name in refused.headers)


async def test_nobody_gets_401(make_guard: MakeGuard) -> None:
    async with client_of(make_guard()) as client:
        del client.headers["x-test-user"]
        answer = await client.post("/ask", json={"question": "?"})
    assert (answer.status_code, answer.json()) == (401, {"detail": "Unknown user."})
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_dependency_of_the_app_may_name_the_user(make_guard: MakeGuard) -> None:
    async def current_user(request: Request) -> Identity:
        if request.headers.get("authorization") != "Bearer good":
            raise HTTPException(403)
        return Identity(user="alice", tenant="acme")

    guard = make_guard()
    async with client_of(guard, identify=Depends(current_user)) as client:
        refused = await client.get("/ask")
        served = await client.get("/ask", headers={"authorization": "Bearer good"})
    assert (refused.status_code, served.json()) == (403, ["d1"])
    decision = await guard.monitor.record(
        user="alice", tenant="acme", query_id="next", collection="kb", documents=[("d1", "public")]
    )
    assert decision.signals[0].count == 2


async def test_an_identify_without_annotations_never_reads_a_query_parameter(make_guard: MakeGuard) -> None:
    guard = make_guard()
    async with client_of(guard, identify=lambda request: request.headers.get("x-test-user")) as client:
        answer = await client.get("/ask", params={"request": "spoofed"})
    assert answer.json() == ["d1"]
    decision = await guard.monitor.record(user="eve", query_id="next", collection="kb", documents=[("d1", "public")])
    assert decision.signals[0].count == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_client_who_leaves_while_delayed_frees_the_place(make_guard: MakeGuard, method: str) -> None:
    guard = make_guard(throttle={"delay_seconds": 30.0, "max_delayed": 1})
    async with client_of(guard) as client:
        await throttle(client)
    body = b'{"question": "?"}' if method == "POST" else b""
    leave = asyncio.Event()
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        for part in parts:
            return part
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        return None

    scope = {
        "type": "http",
        "method": method,
        "path": "/ask",
        "query_string": b"",
        "headers": [(b"x-test-user", b"eve"), (b"content-type", b"application/json")],
    }
    served = asyncio.ensure_future(service(guard)(scope, receive, send))
    while guard.counts.waiting == 0:
        await asyncio.sleep(0.01)
    assert not await guard.monitor.hold("eve", "other")
    leave.set()
    await asyncio.wait_for(served, 2)
    assert await guard.monitor.hold("eve", "other")
    assert guard.counts.abandoned == 1
