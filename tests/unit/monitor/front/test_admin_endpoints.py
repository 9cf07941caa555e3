"""The operators' end points: the token first, then explain, clear and allow."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from mragaudit.monitor.front.admin import TOKEN_ENV, operations_app
from mragaudit.monitor.front.guard import Guard, Retrieval
from mragaudit.monitor.front.identity import Identity

pytestmark = pytest.mark.anyio
MakeGuard = Callable[..., Guard]
TOKEN = "correct horse battery staple"  # noqa: S105 - made up for these tests
EVE = Identity(user="eve")
ENDPOINTS = ("/monitor/explain", "/monitor/clear", "/monitor/allow")


def client_of(guard: Guard, *, token: str | None = TOKEN, given: str | None = f"Bearer {TOKEN}") -> httpx.AsyncClient:
    app = operations_app(guard, environ={} if token is None else {TOKEN_ENV: token})
    headers = {} if given is None else {"authorization": given}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://ops", headers=headers)


async def throttle(guard: Guard) -> None:
    for number in range(7):
        documents = ((f"d{number}", "confidential"),)
        decision = await guard.record(EVE, Retrieval(collection="kb", documents=documents, query_id=f"q{number}"))
    assert decision.throttled


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize("given", [None, f"Bearer {TOKEN}", "Bearer ", "Bearer None"])
async def test_without_a_configured_token_the_end_points_do_not_exist(
    make_guard: MakeGuard, path: str, given: str | None
) -> None:
    for token in (None, ""):
        async with client_of(make_guard(), token=token, given=given) as client:
            answer = await client.post(path, json={"user": "eve"})
            nowhere = await client.post("/monitor/nowhere", json={"user": "eve"})
        assert (answer.status_code, answer.text) == (nowhere.status_code, nowhere.text) == (404, "Not Found")


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize(
    "given", [None, "", TOKEN, f"Basic {TOKEN}", "Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ü"]
)
async def test_a_wrong_token_is_refused_before_the_body_is_read(
    make_guard: MakeGuard, path: str, given: str | None
) -> None:
    async with client_of(make_guard(), given=None) as client:
        headers = {} if given is None else {b"authorization": given.encode()}
        answer = await client.post(path, content=b"no json", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_token_may_hold_any_characters(make_guard: MakeGuard) -> None:
    async with client_of(make_guard(), token="schlüssel", given=None) as client:  # noqa: S106 - made up
        headers = {b"authorization": "Bearer schlüssel".encode()}
        answer = await client.post("/monitor/explain", json={"user": "eve"}, headers=headers)
    assert answer.status_code == 200


async def test_tokens_are_compared_in_constant_time(make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[Any, Any]] = []
    real = hmac.compare_digest

    def compare(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    async with client_of(make_guard(), given="Bearer wrong") as client:
        await client.post("/monitor/explain", json={"user": "eve"})
    assert compared == [(b"wrong", TOKEN.encode())]


@pytest.fixture(params=["asyncio", "threads"])
def any_guard(request: pytest.FixtureRequest) -> Guard:
    """Return a guard over either monitor."""
    make = request.getfixturevalue("make_guard" if request.param == "asyncio" else "make_blocking_guard")
    guard: Guard = make()
    return guard


async def test_explain_says_which_signal_and_which_documents(any_guard: Guard) -> None:
    await throttle(any_guard)
    async with client_of(any_guard) as client:
        answer = await client.post("/monitor/explain", json={"user": "eve"})
    state = answer.json()
    assert (state["throttled"], state["collections"][0]["collection"]) == (True, "kb")
    assert {one["doc_id"] for one in state["collections"][0]["documents"]} == {f"d{number}" for number in range(7)}
    assert state["user_hash"] == await any_guard.monitor.user_hash("eve")
    assert answer.headers["cache-control"] == "no-store"


async def test_explain_takes_the_hash_that_an_alert_shows(make_guard: MakeGuard) -> None:
    guard = make_guard()
    await throttle(guard)
    hashed = await guard.monitor.user_hash("eve")
    async with client_of(guard) as client:
        answer = await client.post("/monitor/explain", json={"user": hashed, "hashed": True})
    assert answer.json()["throttled"] is True


async def test_clear_lets_a_throttled_user_start_anew(any_guard: Guard) -> None:
    await throttle(any_guard)
    async with client_of(any_guard) as client:
        answer = await client.post("/monitor/clear", json={"user": "eve"})
    assert answer.json()["keys"] > 0
    decision = await any_guard.record(EVE, Retrieval(collection="kb", documents=(("d", "public"),)))
    assert (decision.action, decision.signals[0].count) == ("pass", 1)


async def test_allow_lets_a_throttled_user_pass(any_guard: Guard) -> None:
    await throttle(any_guard)
    async with client_of(any_guard) as client:
        answer = await client.post("/monitor/allow", json={"user": "eve", "seconds": 60, "reason": "migration"})
    assert answer.json()["reason"] == "migration"
    decision = await any_guard.record(EVE, Retrieval(collection="kb", documents=(("d", "public"),)))
    assert decision.action == "pass"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/monitor/explain", b"no json"),
        ("/monitor/explain", b"{}"),
        ("/monitor/explain", b'{"user": ""}'),
        ("/monitor/explain", b'{"user": "\\ud800"}'),
        ("/monitor/explain", b'{"user": "eve", "usr": 1}'),
        ("/monitor/clear", b'{"user": "x", "hashed": true}'),
        ("/monitor/allow", b'{"user": "eve", "seconds": -1, "reason": "x"}'),
        ("/monitor/allow", b'{"user": "eve", "seconds": 60, "reason": ""}'),
        ("/monitor/allow", b'{"user": "eve", "seconds": 60}'),
    ],
)
async def test_a_body_that_cannot_be_taken_is_a_400_that_says_why(
    make_guard: MakeGuard, path: str, body: bytes
) -> None:
    async with client_of(make_guard()) as client:
        answer = await client.post(path, content=body)
    assert answer.status_code == 400
    assert len(answer.text) > 10


async def test_a_body_beyond_the_bound_is_refused(make_guard: MakeGuard) -> None:
    async with client_of(make_guard()) as client:
        answer = await client.post("/monitor/explain", content=b"x" * 70_000)
    assert answer.status_code == 413


async def test_a_store_that_is_away_is_a_503(make_guard: MakeGuard) -> None:
    guard = make_guard(store={"url": "redis://127.0.0.1:1", "timeout_seconds": 0.2})
    async with client_of(guard) as client:
        answer = await client.post("/monitor/explain", json={"user": "eve"})
    assert answer.status_code == 503
    assert "eve" not in answer.text


async def test_users_are_named_in_bodies_only_since_paths_are_logged(make_guard: MakeGuard) -> None:
    async with client_of(make_guard()) as client:
        assert (await client.get("/monitor/explain", params={"user": "eve"})).status_code == 405


async def test_metrics_need_no_token(make_guard: MakeGuard) -> None:
    async with client_of(make_guard(), token=None, given=None) as client:
        answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert 'mragaudit_monitor_decisions_total{action="pass"} 0.0' in answer.text
