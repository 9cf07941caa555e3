"""HTTP end points for operators: metrics for everyone who reaches them, explain, clear and allow behind a token."""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from mragaudit.errors import DataError, StoreError
from mragaudit.monitor.admin import Steps, allow_steps, checked_hash, clear_steps, explain_steps, run, run_async
from mragaudit.monitor.front.guard import Guard, Threaded
from mragaudit.monitor.front.metrics import CONTENT_TYPE, render_metrics
from mragaudit.monitor.front.packages import needed
from mragaudit.monitor.queries import DEFAULT_TENANT

with needed("starlette"):
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

T = TypeVar("T")
TOKEN_ENV = "MRAGAUDIT_MONITOR_TOKEN"  # noqa: S105 - the name of a variable, not a secret
MOST_BODY_BYTES = 65_536
BAD_REQUEST, UNAUTHORIZED, NOT_FOUND, TOO_LARGE, UNAVAILABLE = 400, 401, 404, 413, 503


class Who(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The user that a request is about."""

    user: str
    """User id, or with `hashed` the keyed hash that alerts show."""
    tenant: str = DEFAULT_TENANT
    hashed: bool = False


class Explain(Who, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of /monitor/explain."""

    role: str | None = None


class Clear(Who, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of /monitor/clear."""

    forget: bool = False
    """Forget baseline, allow-list entry and own documents as well."""


class Allow(Who, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of /monitor/allow."""

    seconds: float
    reason: str


class Cleared(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /monitor/clear."""

    keys: int
    """Keys of the store that are gone."""


def operations_app(guard: Guard, *, environ: Mapping[str, str] = os.environ) -> Starlette:
    """Return an app with /metrics and the admin end points, for a port that clients do not reach."""
    return Starlette(routes=[metrics_route(guard), *admin_routes(guard, environ=environ)])


def metrics_route(guard: Guard, path: str = "/metrics") -> Route:
    """Return the route that Prometheus reads."""

    async def metrics(_request: Request) -> Response:
        return Response(render_metrics(guard), headers={"content-type": CONTENT_TYPE})

    return Route(path, metrics)


def admin_routes(guard: Guard, *, environ: Mapping[str, str] = os.environ) -> list[Route]:
    """Return the routes POST /monitor/explain, /monitor/clear and /monitor/allow.

    They want `Authorization: Bearer` with the token of MRAGAUDIT_MONITOR_TOKEN; without a token configured they
    answer 404. The user stands in the body, since paths end up in access logs.
    """
    operator = Operator(guard, token=environ.get(TOKEN_ENV, ""))
    return [
        Route("/monitor/explain", operator.endpoint(Explain, operator.explain), methods=["POST"]),
        Route("/monitor/clear", operator.endpoint(Clear, operator.clear), methods=["POST"]),
        Route("/monitor/allow", operator.endpoint(Allow, operator.allow), methods=["POST"]),
    ]


class Operator:
    """What an operator with the token may do."""

    def __init__(self, guard: Guard, *, token: str) -> None:
        self._guard = guard
        self._token = token.encode()

    async def explain(self, asked: Explain) -> Any:
        """Return the state of a user."""
        name = await self._hash(asked)
        return await self._run(explain_steps(self._guard.monitor.session, name, role=asked.role))

    async def clear(self, asked: Clear) -> Any:
        """Forget what was counted of a user."""
        name = await self._hash(asked)
        keys = await self._run(clear_steps(self._guard.monitor.session, name, forget=asked.forget))
        return Cleared(keys=keys)

    async def allow(self, asked: Allow) -> Any:
        """Put a user on the allow-list."""
        name = await self._hash(asked)
        session = self._guard.monitor.session
        return await self._run(allow_steps(session, name, seconds=asked.seconds, reason=asked.reason))

    def endpoint(self, body: type[T], act: Callable[[T], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        """Return an end point that checks the token, then the body."""

        async def endpoint(request: Request) -> Response:
            self._check_token(request)
            try:
                asked = msgspec.json.decode(await _body(request), type=body)
                answer = await act(asked)
            except (msgspec.DecodeError, DataError) as error:
                raise HTTPException(BAD_REQUEST, str(error)) from error
            except StoreError as error:
                raise HTTPException(UNAVAILABLE, f"the store is away ({error})") from error
            headers = {"cache-control": "no-store"}
            return Response(msgspec.json.encode(answer), media_type="application/json", headers=headers)

        return endpoint

    def _check_token(self, request: Request) -> None:
        if not self._token:
            raise HTTPException(NOT_FOUND)
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if not (hmac.compare_digest(given.strip().encode("latin-1"), self._token) and scheme.lower() == "bearer"):
            raise HTTPException(UNAUTHORIZED, headers={"www-authenticate": "Bearer"})

    async def _hash(self, asked: Who) -> str:
        if asked.hashed:
            return checked_hash(asked.user)
        if not asked.user:
            raise DataError("user is empty; it must be a user id")
        return await self._guard.monitor.user_hash(asked.user, tenant=asked.tenant)

    async def _run(self, steps: Steps[T]) -> T:
        monitor = self._guard.monitor
        if isinstance(monitor, Threaded):
            return await asyncio.to_thread(run, monitor.blocking, steps)
        return await run_async(monitor, steps)


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise HTTPException(TOO_LARGE)
    return body
