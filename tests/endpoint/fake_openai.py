"""A small OpenAI-compatible server in a thread, for tests: answers by rule, and can fail in every way that servers do.

Its tokens are words with the white space before them. Nothing in it is random but what a seed decides.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import ssl
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

MODEL = "fake-model"
WORDS = "amber birch cedar delta ember fjord grove haven".split()


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What happens to one request instead of an answer."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    """In place of the answer."""
    packed: bool = False
    """Send the body as gzip."""
    cut_bytes: int = 0
    """Bytes missing at the end of a body, of which Content-Length knows nothing."""
    break_off: bool = False
    """Close the connection in the middle of the body."""
    drop: bool = False
    """Close the connection without an answer."""
    sleep_seconds: float = 0.0
    """Wait between the first half of the body and the second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """The prompt, or the last message."""
        return str(self.body["prompt"]) if "prompt" in self.body else str(self.body["messages"][-1]["content"])


Rule = Callable[[str], str]
FaultRule = Callable[[int, Seen], Fault | None]


def tokens_of(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def logprob_of(token: str, *, before: str) -> float:
    """Return a log-probability between -5 and 0 that depends on the token and all text before it."""
    return -(zlib.crc32(f"{before}|{token}".encode("utf-8", errors="replace")) % 5000) / 1000


def digest_words(text: str) -> str:
    """Return five words that depend on the whole text."""
    digest = zlib.crc32(text.encode("utf-8", errors="replace"))
    return " ".join(WORDS[digest >> 3 * place & 7] for place in range(5))


def random_faults(share: float, *, seed: int, faults: list[Fault]) -> FaultRule:
    """Return a rule by which about this share of all requests fails, each in a way drawn from `faults`."""
    rng = random.Random(seed)  # noqa: S311 - places of faults, no secret
    return lambda _number, _seen: rng.choice(faults) if rng.random() < share else None


class FakeServer:
    """`with FakeServer() as server:` serves at `server.base_url` until the end of the block."""

    def __init__(
        self,
        *,
        rule: Rule = digest_words,
        fault: FaultRule = lambda _number, _seen: None,
        latency_seconds: float = 0.0,
        key: str | None = None,
        echo: bool = True,
        logprobs: bool = True,
        usage: bool = True,
        context_tokens: int | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.rule = rule
        self.fault = fault
        self.latency_seconds = latency_seconds
        self.key = key
        self.echo = echo
        self.logprobs = logprobs
        self.usage = usage
        self.context_tokens = context_tokens
        self.seen: list[Seen] = []
        self.finished = 0
        self.under_way = 0
        self.most_under_way = 0
        self._ssl_context = ssl_context
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        scheme = "https" if self._ssl_context else "http"
        return f"{scheme}://127.0.0.1:{self.port}/v1"

    def asked(self, path: str = "completions") -> list[Seen]:
        """Return the requests to an end point."""
        return [one for one in self.seen if one.path.endswith(path)]

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        app = web.Application(client_max_size=1 << 24)
        for path in ("/v1/completions", "/v1/chat/completions", "/tokenize"):
            app.router.add_post(path, self._serve)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._ssl_context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        if self._ssl_context:
            # aiohttp's server does not wait for the farewell of its TLS connections.
            await asyncio.sleep(0.2)

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            seen = Seen(path=request.path, headers=dict(request.headers), body=await request.json())
            self.seen.append(seen)
            fault = self.fault(len(self.seen), seen)
            if self.latency_seconds:
                await asyncio.sleep(self.latency_seconds)
            return await self._respond(request, seen, fault or Fault())
        finally:
            self.under_way -= 1

    async def _respond(self, request: web.Request, seen: Seen, fault: Fault) -> web.StreamResponse:
        if fault.drop:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        status, answer = (fault.status, {"error": {"message": "out of order"}})
        if fault.status == 200:
            status, answer = self._answer(request, seen)
        content = (json.dumps(answer) if fault.body is None else fault.body).encode()
        content = gzip.compress(content) if fault.packed else content
        content = content[: len(content) - fault.cut_bytes]
        headers = {**fault.headers, "Content-Type": "application/json", "Content-Length": str(len(content))}
        if fault.packed:
            headers["Content-Encoding"] = "gzip"
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        if fault.break_off:
            assert request.transport is not None
            request.transport.close()
            return response
        if fault.sleep_seconds:
            await asyncio.sleep(fault.sleep_seconds)
        await response.write(content[len(content) // 2 :])
        await response.write_eof()
        self.finished += 1
        return response

    def _answer(self, request: web.Request, seen: Seen) -> tuple[int, dict[str, Any]]:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            return 401, {"error": {"message": f"Incorrect API key provided: {given}"}}
        if seen.path == "/tokenize":
            return 200, {"tokens": list(range(len(tokens_of(seen.body["prompt"]))))}
        if seen.body["model"] != MODEL:
            return 404, {"error": {"message": f"The model `{seen.body['model']}` does not exist."}}
        if seen.body.get("echo") and not self.echo:
            return 400, {"error": {"message": "Only no echo is supported"}}
        return self._choice(seen)

    def _choice(self, seen: Seen) -> tuple[int, dict[str, Any]]:
        chat = seen.path.endswith("chat/completions")
        before = json.dumps(seen.body["messages"], ensure_ascii=False) if chat else seen.body["prompt"]
        prompt = tokens_of(before)
        limit = seen.body["max_tokens"]
        if self.context_tokens is not None and len(prompt) + limit > self.context_tokens:
            words = f"This model's maximum context length is {self.context_tokens} tokens. You asked for "
            return 400, {"error": {"message": f"{words}{len(prompt) + limit}.", "code": "context_length_exceeded"}}
        whole = tokens_of(("" if chat else " ") + self.rule(seen.text))
        drawn, reason = (whole[:limit], "length") if len(whole) > limit else (whole, "stop")
        text = "".join(drawn)
        for stop in seen.body.get("stop", []):
            if stop in text:
                text, reason = text[: text.index(stop)], "stop"
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        if chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = (before if seen.body.get("echo") else "") + text
        if self.logprobs and seen.body.get("logprobs"):
            choice["logprobs"] = self._logprobs(seen, before=before, prompt=prompt, drawn=drawn, chat=chat)
        answer: dict[str, Any] = {"object": "completion", "model": MODEL, "choices": [choice]}
        if self.usage:
            answer["usage"] = {"prompt_tokens": len(prompt), "completion_tokens": len(drawn)}
        return 200, answer

    def _logprobs(self, seen: Seen, *, before: str, prompt: list[str], drawn: list[str], chat: bool) -> dict[str, Any]:
        candidates = [" BLOCK", " ALLOW", "BLOCK", "ALLOW", *(f" {word}" for word in WORDS)]
        top = {token: logprob_of(token, before=before) for token in candidates}
        kept = dict(
            sorted(top.items(), key=lambda pair: -pair[1])[: seen.body.get("top_logprobs", seen.body["logprobs"])]
        )
        if chat:
            return {"content": [{"top_logprobs": [{"token": t, "logprob": p} for t, p in kept.items()]}]}
        tokens = [*prompt, *drawn] if seen.body.get("echo") else drawn
        texts = ["".join(tokens[:place]) for place in range(len(tokens))]
        values: list[float | None] = [logprob_of(t, before=b) for t, b in zip(tokens, texts, strict=True)]
        if seen.body.get("echo"):
            values[0] = None
        return {"tokens": tokens, "token_logprobs": values, "top_logprobs": [kept] * len(tokens)}
