"""FastAPI dependency: the endpoint hands over what it retrieved and gets back what it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from mragaudit.monitor.front.guard import (
    ClientLeftError,
    Describe,
    Guard,
    Refusal,
    Retrieval,
    T,
    as_is,
    resolved,
)
from mragaudit.monitor.front.identity import Identified, identity_of
from mragaudit.monitor.front.packages import needed

with needed("fastapi", "starlette", install="fastapi"):
    from fastapi import HTTPException, Request, params
    from starlette.requests import ClientDisconnect

CLIENT_CLOSED_REQUEST = 499
IdentifyRequest = Callable[[Request], Identified | Awaitable[Identified]]


def retrieval_guard(guard: Guard, *, identify: IdentifyRequest | params.Depends) -> Callable[..., Any]:
    """Return a dependency that gives an endpoint its `RequestGuard`.

    `identify` is a function of the request, or `Depends(...)` on a dependency that returns the user.
    """
    if isinstance(identify, params.Depends):

        async def of_dependency(request: Request, found: Any = identify) -> RequestGuard:
            return RequestGuard(guard, request, identified=found)

        return of_dependency

    async def of_request(request: Request) -> RequestGuard:
        return RequestGuard(guard, request, identified=await resolved(identify(request)))

    return of_request


class RequestGuard:
    """The monitor, for one request."""

    def __init__(self, guard: Guard, request: Request, *, identified: Identified) -> None:
        self._guard = guard
        self._request = request
        self._identified = identified

    async def record(
        self,
        collection: str,
        documents: Iterable[T],
        *,
        describe: Describe[T] = as_is,
        query_id: str | None = None,
    ) -> list[T]:
        """Record what was retrieved and return the documents that may be used, at the latest after the delay.

        `describe` turns a document into (id, level); `query_id` must be the host's own, never the client's. Raises
        HTTPException: 429 with Retry-After, or 401 where nobody is known.
        """
        given = list(documents)
        identity = identity_of(self._identified)
        if identity is None:
            raise _http_error(self._guard.unidentified())
        pairs = tuple(describe(one) for one in given)
        ids = {} if query_id is None else {"query_id": query_id}
        decision = await self._guard.record(identity, Retrieval(collection=collection, documents=pairs, **ids))
        seconds = self._guard.seconds_of(decision, documents=len(given), can_cut=True)
        try:
            refusal = await self._guard.hold_back(decision, identity=identity, seconds=seconds, gone=self._gone)
        except ClientLeftError as error:
            raise HTTPException(CLIENT_CLOSED_REQUEST) from error
        if refusal is not None:
            raise _http_error(refusal)
        return self._guard.cut(decision, given)

    async def _gone(self) -> None:
        """Return once the client has left; the body is read first, so that the endpoint still finds it."""
        try:
            await self._request.body()
        except ClientDisconnect:
            return
        except RuntimeError:  # the endpoint has read it as a stream
            pass
        while (await self._request.receive())["type"] != "http.disconnect":
            pass


def _http_error(refusal: Refusal) -> HTTPException:
    return HTTPException(refusal.status, detail=refusal.message, headers=refusal.headers)
