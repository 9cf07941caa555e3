"""Calls to an endpoint: paced, tried again, timed; errors come out as ours. Imports aiohttp, so it is imported late."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, TypeVar

import aiohttp
import msgspec
from aiolimiter import AsyncLimiter
from yarl import URL

from mragaudit.errors import BackendError
from mragaudit.llm.http_endpoint import Endpoint, Limits
from mragaudit.llm.http_faults import (
    LONGEST_PAUSE_SECONDS,
    LostCallError,
    Reply,
    UnreachableError,
    is_passing,
    is_withheld,
    pause_seconds,
    refusal,
    server_words,
    too_long_a_pause,
)
from mragaudit.llm.retry import back_off_seconds
from mragaudit.protocols import Failure, Meter

logger = logging.getLogger(__name__)

T = TypeVar("T")

LARGEST_REPLY_BYTES = 64 << 20
"""Unpacked. The likeliest tokens at every place of a long prompt make some ten million; what is larger is no answer."""

BURST_SECONDS = 1.0
"""A limit a minute is spread evenly: at most what falls due in this time may come at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(Generic[T]):
    """One request, and how its answer is read."""

    url: str
    body: bytes
    read: Callable[[bytes], T]
    """Raises LostCallError for an answer that is none."""
    tokens: int
    """Tokens of prompt and answer together, at most, as counted against the limit."""
    position: int | None
    """Place of the trial among those asked; None for a request that belongs to none."""


class Bucket:
    """A limit a minute; without one, nothing waits."""

    def __init__(self, per_minute: float | None) -> None:
        self._limiter: AsyncLimiter | None = None
        if per_minute is not None:
            capacity = max(1.0, per_minute * BURST_SECONDS / 60)
            self._limiter = AsyncLimiter(capacity, 60 * capacity / per_minute)

    async def take(self, amount: float) -> None:
        """Wait until this much is due."""
        if self._limiter is None:
            return
        while amount > 0:
            part = min(amount, self._limiter.max_rate)
            await self._limiter.acquire(part)
            amount -= part


class Client:
    """The calls of one backend to one endpoint; made and used inside a running event loop."""

    def __init__(self, endpoint: Endpoint, *, model: str, limits: Limits, meter: Meter) -> None:
        self._endpoint = endpoint
        self._model = model
        self._limits = limits
        self._meter = meter
        self._requests = Bucket(limits.requests_per_minute)
        self._tokens = Bucket(limits.tokens_per_minute)
        self._resume_at = 0.0
        self._under_way = 0
        self._measured_to = 0.0
        self._answered = False
        self._session = aiohttp.ClientSession(
            headers=endpoint.headers,
            timeout=aiohttp.ClientTimeout(total=limits.timeout_seconds),
            # How many calls are under way is bounded by who asks; the pool need not do it again.
            connector=aiohttp.TCPConnector(limit=0, ssl=endpoint.ssl_context or True),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def ask(self, call: Call[T]) -> T | Failure:
        """Return the answer, or a Failure once all attempts are used up.

        Raises RequestError for a request that the server does not take, by its position, and BackendError where no
        request would fare better.
        """
        lost = LostCallError("never asked")
        for attempt in range(1, self._limits.attempts + 1):
            try:
                return await self._attempt(call)
            except LostCallError as error:
                lost = error
            if not lost.again:
                break
            if attempt < self._limits.attempts:
                logger.debug("attempt %d: %s", attempt, lost.reason)
                await asyncio.sleep(back_off_seconds(attempt))
        if isinstance(lost, UnreachableError) and not self._answered:
            raise BackendError(
                f"{self._endpoint.base_url}: {lost.reason}; start the server, or mend openai_http.base_url"
            )
        return Failure(reason=f"{lost.reason} ({attempt} of {self._limits.attempts} attempts)")

    async def _attempt(self, call: Call[T]) -> T:
        await self._turn(call)
        with self._timed():
            reply = await self._post(call)
        self._answered = True
        if reply.status == HTTPStatus.OK:
            return call.read(self._endpoint.redact_answer(reply.content))
        if not is_passing(reply.status):
            if is_withheld(reply):
                raise LostCallError("the endpoint's content filter refused the prompt", again=False)
            raise await self._refusal(reply, call)
        pause = pause_seconds(reply)
        if pause is not None:
            self._pause(reply, seconds=pause)
        raise LostCallError(f"HTTP {reply.status}: {self._words(reply, call)}")

    async def _turn(self, call: Call[T]) -> None:
        """Wait for the limits, and for the end of a pause that the server asked for."""
        await self._requests.take(1)
        await self._tokens.take(call.tokens)
        loop = asyncio.get_running_loop()
        while (left := self._resume_at - loop.time()) > 0:
            await asyncio.sleep(left)

    def _pause(self, reply: Reply, *, seconds: float) -> None:
        """Let all calls wait, not only the one that was told to."""
        if seconds > LONGEST_PAUSE_SECONDS:
            raise too_long_a_pause(reply, seconds=seconds)
        self._resume_at = max(self._resume_at, asyncio.get_running_loop().time() + seconds)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Add to the meter the time during which at least one request is under way, and count each."""
        if not self._under_way:
            self._measured_to = time.perf_counter()
        self._under_way += 1
        try:
            yield
        finally:
            now = time.perf_counter()
            self._under_way -= 1
            self._meter.add(now - self._measured_to)
            self._measured_to = now

    async def _post(self, call: Call[T]) -> Reply:
        try:
            async with self._session.post(URL(call.url), data=call.body, allow_redirects=False) as response:
                content = await _read_whole(response)
        except TimeoutError as error:
            raise LostCallError(f"no answer within {self._limits.timeout_seconds:g} s") from error
        except aiohttp.ClientSSLError as error:
            raise BackendError(
                f"{call.url}: no trusted connection ({error.__cause__ or type(error).__name__}); "
                "openai_http.ca_file names the certificates of an authority of your own"
            ) from error
        except aiohttp.ClientConnectorError as error:
            raise UnreachableError(f"no connection ({error.os_error.strerror or type(error).__name__})") from error
        except aiohttp.ClientError as error:
            raise LostCallError(f"the connection was lost ({type(error).__name__})") from error
        return Reply(url=call.url, status=response.status, headers=response.headers, content=content)

    def _words(self, reply: Reply, call: Call[T]) -> str:
        # The model's name is part of a request, too, and no secret.
        asked = call.body.replace(msgspec.json.encode(self._model), b"")
        return server_words(reply.content, asked=asked, redact=self._endpoint.redact)

    async def _refusal(self, reply: Reply, call: Call[T]) -> BackendError:
        return refusal(
            reply,
            words=self._words(reply, call),
            model=self._model,
            served=await self._served_models(),
            position=call.position,
        )

    async def _served_models(self) -> tuple[str, ...]:
        """Return the names of the models that the server has, for an error's text; empty when it does not tell."""
        try:
            async with self._session.get(URL(self._endpoint.base_url + "/models"), allow_redirects=False) as response:
                found = msgspec.json.decode(await _read_whole(response), type=_Models)
        except (aiohttp.ClientError, TimeoutError, LostCallError, msgspec.DecodeError, UnicodeDecodeError):
            return ()
        return tuple(self._endpoint.redact(model.id) for model in found.data)


async def _read_whole(response: aiohttp.ClientResponse) -> bytes:
    """Return the body; raises LostCallError for one that is too large, of which no more than the limit is unpacked."""
    content = bytearray()
    async for part in response.content.iter_any():
        content += part
        if len(content) > LARGEST_REPLY_BYTES:
            response.close()
            raise LostCallError(f"the reply has more than {LARGEST_REPLY_BYTES >> 20} MiB", again=False)
    return bytes(content)


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]
