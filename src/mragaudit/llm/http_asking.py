"""One model behind one endpoint: its answers, its scores of options and its counts, a call at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mragaudit.errors import BackendError, RequestError
from mragaudit.llm.base import check_prompt
from mragaudit.llm.http_client import Call, Client
from mragaudit.llm.http_endpoint import Endpoint, Limits
from mragaudit.llm.http_wire import (
    Dialect,
    EchoScore,
    TopTokens,
    estimate_prompt,
    estimate_tokens,
    first_token_scores,
    token_count,
    tokenize_body,
)
from mragaudit.protocols import (
    ChooseRequest,
    Completion,
    Failure,
    GenerateRequest,
    Meter,
    OptionScores,
    Prompt,
)

T = TypeVar("T")

INSTEAD = {
    "echo": "if it echoes no log-probabilities, set openai_http.logprobs: top, or judge.mode: parse",
    "top": "if it gives too few log-probabilities, set openai_http.top_logprobs (most servers allow 20, some 5), "
    "openai_http.logprobs: echo, or judge.mode: parse",
}


class Asker:
    """Asks in the words of a dialect; made and used inside a running event loop."""

    def __init__(self, endpoint: Endpoint, *, dialect: Dialect, limits: Limits, meter: Meter) -> None:
        self._dialect = dialect
        self._url = endpoint.base_url + dialect.path
        self._tokenize_url = endpoint.root_url + "/tokenize"
        self._client = Client(endpoint, model=dialect.model, limits=limits, meter=meter)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def complete(self, request: GenerateRequest, position: int) -> Completion | Failure:
        """Return the answer; raises RequestError with the position for a prompt that cannot be asked."""
        check_prompt(request.prompt, position=position)
        with _encoding(position):
            body = self._dialect.generate_body(request)

        def read(content: bytes) -> Completion:
            return self._dialect.completion(content, request=request)

        tokens = estimate_prompt(request.prompt) + request.max_tokens
        return await self._ask(body, read, tokens=tokens, position=position)

    async def choose(self, request: ChooseRequest, position: int) -> OptionScores | Failure:
        """Return the options' log-probabilities; raises RequestError where the endpoint gives none for one."""
        check_prompt(request.prompt, position=position)
        if not all(request.options):
            raise RequestError("an option has no text", position=position)
        try:
            if self._dialect.scoring == "echo":
                return await self._echoed(request, position)
            return await self._topped(request, position)
        except RequestError as error:
            raise RequestError(f"{error}; {INSTEAD[self._dialect.scoring]}", position=position) from error

    async def count(self, text: str) -> int:
        """Return the server's number of tokens of a text, without special tokens; raises BackendError for none."""
        with _encoding(0):
            body = tokenize_body(text, model=self._dialect.model)
        call = Call(url=self._tokenize_url, body=body, read=token_count, tokens=0, position=None)
        count = await self._client.ask(call)
        if isinstance(count, Failure):
            raise BackendError(
                f"{self._tokenize_url}: {count.reason}; where there is no such end point, "
                "set openai_http.tokenizer: estimate"
            )
        return count

    async def _echoed(self, request: ChooseRequest, position: int) -> OptionScores | Failure:
        """One request an option, one after another, so that no more are under way than allowed."""
        scores: list[EchoScore] = []
        for option in request.options:
            found = await self._echo(request.prompt, option, position=position)
            if isinstance(found, Failure):
                return found
            scores.append(found)
        return OptionScores(
            logprobs=tuple(score.logprob for score in scores),
            prompt_tokens=max((score.prompt_tokens for score in scores), default=0),
        )

    async def _echo(self, prompt: Prompt, option: str, *, position: int) -> EchoScore | Failure:
        with _encoding(position):
            body = self._dialect.echo_body(prompt, option)
        tokens = estimate_prompt(prompt) + estimate_tokens(option) + 1
        found = await self._ask(body, self._dialect.reader_of_echo(option), tokens=tokens, position=position)
        if isinstance(found, Failure) and "echo" in found.reason:
            # llama.cpp's server refuses it with a status that stands for faults that pass.
            raise RequestError(f"{self._url}: {found.reason}", position=position)
        if found is None:
            raise RequestError(
                f'{self._url} gives no log-probabilities of its own for the option "{option}"', position=position
            )
        return found

    async def _topped(self, request: ChooseRequest, position: int) -> OptionScores | Failure:
        """One request for all options."""
        with _encoding(position):
            body = self._dialect.top_body(request.prompt)

        def read(content: bytes) -> TopTokens:
            return self._dialect.top(content, prompt=request.prompt)

        tokens = estimate_prompt(request.prompt) + 1
        found = await self._ask(body, read, tokens=tokens, position=position)
        if isinstance(found, Failure):
            return found
        try:
            scores = first_token_scores(found.logprobs, options=request.options, lead=self._dialect.lead)
        except ValueError as error:
            raise RequestError(f"{self._url}: {error}", position=position) from error
        return OptionScores(logprobs=scores, prompt_tokens=found.prompt_tokens)

    async def _ask(self, body: bytes, read: Callable[[bytes], T], *, tokens: int, position: int) -> T | Failure:
        return await self._client.ask(Call(url=self._url, body=body, read=read, tokens=tokens, position=position))


@contextmanager
def _encoding(position: int) -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError as error:
        raise RequestError("its text has half a surrogate pair, which has no UTF-8 form", position=position) from error
