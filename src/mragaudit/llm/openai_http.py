"""Any OpenAI-compatible endpoint as a backend: many calls under way, each answer out as it finishes."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from mragaudit.errors import ConfigError
from mragaudit.llm.http_endpoint import (
    LIMITS,
    Limits,
    checked_url,
    checked_variable,
    lacking_here,
    open_endpoint,
    require_positive,
)
from mragaudit.llm.http_loop import LoopThread, Stream
from mragaudit.llm.http_wire import (
    OWN_FIELDS,
    Dialect,
    Rendering,
    Scoring,
    ServedNames,
    estimate_tokens,
    estimated_head,
)
from mragaudit.protocols import (
    ChooseRequest,
    Completion,
    Failure,
    GenerateRequest,
    Meter,
    ModelIdentity,
    OptionScores,
)

if TYPE_CHECKING:
    from mragaudit.llm.http_asking import Asker

Request = TypeVar("Request", GenerateRequest, ChooseRequest)
A = TypeVar("A")

BATCH_CALLS = 64
"""Calls after which the journal must be on disk, for a server that batches by itself (pipeline.md, Journal)."""
BATCH_SECONDS = 5.0
"""Seconds of model time after which it must be, for the same."""


class OpenAIHttpBackend:
    """A model behind an OpenAI-compatible endpoint: vLLM, llama.cpp's server, Ollama, a gateway.

    Calls are tried again here, each for itself, so nothing needs to be wrapped around it.
    """

    retries_itself = True
    asks_elsewhere = True
    """Its identity needs no file, so that all of its options can be checked before the first job."""
    batch_calls = BATCH_CALLS
    batch_seconds = BATCH_SECONDS

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        sha256: str | None = None,
        rendering: Rendering = "completion",
        context_tokens: int = 2048,  # noqa: ARG002  # the server knows its own
        threads: int = 1,  # noqa: ARG002  # taken so that configs fit every backend
        api_key_env: str | None = None,
        ca_file: str | None = None,
        revision: str | None = None,
        concurrency: int = 16,
        attempts: int = 4,
        timeout_seconds: float = 120.0,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        logprobs: Scoring | None = None,
        top_logprobs: int = 20,
        tokenizer: Literal["estimate", "server"] = "estimate",
        usage: Literal["reported", "estimated"] = "reported",
        extra_body: dict[str, Any] | None = None,
    ) -> None:
        """Prepare; nothing is sent before the first call. docs/endpoints.md says what each option does.

        Raises ConfigError for options that contradict each other or cannot be right, an address that may not be
        called, and a key that is not in the environment.
        """
        self.identity = self.identify(
            model=model,
            base_url=base_url,
            sha256=sha256,
            rendering=rendering,
            api_key_env=api_key_env,
            revision=revision,
            logprobs=logprobs,
            extra_body=extra_body,
        )
        self.meter = Meter()
        self._endpoint = open_endpoint(base_url, api_key_env=api_key_env, ca_file=ca_file)
        self._dialect = Dialect(
            model=model,
            rendering=rendering,
            scoring=logprobs or default_scoring(rendering),
            top_count=top_logprobs,
            extra=extra_body or {},
            estimate_usage=usage == "estimated",
            names=ServedNames(model),
        )
        self._limits = Limits(
            concurrency=concurrency,
            attempts=attempts,
            timeout_seconds=timeout_seconds,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
        )
        self._counts_by_server = tokenizer == "server"
        self._counts = {"": 0}
        self._thread = LoopThread()
        self._asker: Asker | None = None

    @staticmethod
    def identify(
        *,
        model: str,
        base_url: str = "",
        sha256: str | None = None,
        rendering: str = "completion",
        api_key_env: str | None = None,
        revision: str | None = None,
        logprobs: str | None = None,
        extra_body: dict[str, Any] | None = None,
        **others: Any,
    ) -> ModelIdentity:
        """Return the identity without a call: the endpoint stands for the weights, unless `revision` names them.

        How options are scored stands beside the rendering, and fields added to requests behind the revision, since
        both decide about answers. Raises ConfigError for what can be seen to be wrong without a call.
        """
        address = checked_url(base_url)
        if api_key_env is not None:
            checked_variable(api_key_env)
        if sha256 is not None:
            raise ConfigError(
                "openai_http: weights behind an endpoint cannot be held against a hash; set the role's sha256: null "
                "(and options.revision to name what is served)"
            )
        for name in (*LIMITS, "top_logprobs"):
            require_positive(name, others.get(name))
        scored = logprobs or default_scoring(rendering)
        if scored == "echo" and rendering == "chat":
            raise ConfigError(
                "openai_http.logprobs: the chat end point echoes nothing; use top, or rendering: completion"
            )
        added = _digest_of(extra_body or {})
        return ModelIdentity(
            backend="openai_http",
            model=model,
            revision=(revision or address) + added,
            rendering=f"{rendering}+{scored}",
        )

    @staticmethod
    def lacking(*, api_key_env: str | None = None, ca_file: str | None = None, **_others: Any) -> Iterator[str]:
        """Yield what these options name and this machine lacks; where the jobs run, it may be there."""
        return lacking_here(api_key_env=api_key_env, ca_file=ca_file)

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion | Failure]]:
        """Yield (position, greedy answer) as they finish.

        Raises RequestError for a prompt that the server does not take, BackendError where none would fare better.
        """
        return self._stream(requests, lambda request, position: self._open().complete(request, position))

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores | Failure]]:
        """Yield (position, log-probabilities of the options) as they finish.

        With `echo` they are sums over an option's tokens, in the completion rendering after a space; with `top` the
        log-probability of its first token. Raises what `generate` raises, and RequestError for a prompt whose
        options the endpoint gives no log-probabilities for.
        """
        return self._stream(requests, lambda request, position: self._open().choose(request, position))

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text: the server's count, or by `estimate` a third of its UTF-8 bytes.

        Raises BackendError when the server does not count.
        """
        if not self._counts_by_server:
            return estimate_tokens(text)
        if text not in self._counts:
            self._counts[text] = self._thread.run(self._count(text))
        return self._counts[text]

    def truncate(self, text: str, max_tokens: int) -> str:
        """Return the longest head of the text that has at most `max_tokens` tokens, by the same count.

        With the server's count it is found by halving: where a longer head has fewer tokens, it may be missed.
        """
        if not self._counts_by_server:
            return estimated_head(text, max_tokens)
        if self.count_tokens(text) <= max_tokens:
            return text
        fits, too_long = 0, len(text)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if self.count_tokens(text[:middle]) <= max_tokens:
                fits = middle
            else:
                too_long = middle
        return text[:fits]

    def close(self) -> None:
        """End all calls and close all connections; may be called twice."""
        self._thread.cancel_all()
        if self._asker is not None:
            self._thread.run(self._asker.close())
            self._asker = None
        self._thread.close()

    def _stream(
        self, requests: Sequence[Request], ask: Callable[[Request, int], Awaitable[A]]
    ) -> Iterator[tuple[int, A]]:
        stream = Stream(
            lambda position: ask(requests[position], position),
            length=len(requests),
            concurrency=self._limits.concurrency,
            backlog=self.batch_calls,
            thread=self._thread,
        )
        return stream.results()

    async def _count(self, text: str) -> int:
        return await self._open().count(text)

    def _open(self) -> Asker:
        """Return what asks, made on the loop that it will run on."""
        if self._asker is None:
            from mragaudit.llm.http_asking import Asker  # noqa: PLC0415 - aiohttp is an optional package

            self._asker = Asker(self._endpoint, dialect=self._dialect, limits=self._limits, meter=self.meter)
        return self._asker


def default_scoring(rendering: str) -> Scoring:
    """Return how options are scored where the config does not say: by the rendering alone, never by what answers."""
    return "top" if rendering == "chat" else "echo"


def _digest_of(extra_body: dict[str, Any]) -> str:
    """Return what an identity says of fields added to requests; raises ConfigError for fields that are ours."""
    for name in sorted(OWN_FIELDS & extra_body.keys()):
        raise ConfigError(f'openai_http.extra_body: "{name}" is set by us; it may hold other fields of a request only')
    if not extra_body:
        return ""
    content = msgspec.json.encode(extra_body, order="deterministic")
    return f" body:{hashlib.sha256(content).hexdigest()[:16]}"
