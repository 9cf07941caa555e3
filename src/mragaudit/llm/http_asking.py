"""One model behind one endpoint: its answers, its scores of options and its counts, a call at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mragaudit.errors import BackendError, RequestError
from mragaudit.llm.base import check_prompt
from mragaudit.llm.http_client import Call, Client
from mragaudit.llm.http_endpoint import Endpoint, Limits
from mragaudit.llm.http_wire import (
    Dialect,
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
        body = _encoded(lambda: self._dialect.generate_body(request), position=position)

        def read(content: bytes) -> Completion:
            return self._dialect.completion(content, request=request, body=body)

        return await self._ask(body, read, room=request.max_tokens, position=position)

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
        body = _encoded(lambda: tokenize_body(text, model=self._dialect.model), position=0)
        call = Call(url=self._tokenize_url, body=body, read=token_count, tokens=0, position=None)
        count = await self._client.ask(call)
        if isinstance(count, Failure):
            raise BackendError(
                f"{self._tokenize_url}: {count.reason}; where there is no such end point, "
                "set openai_http.tokenizer: estimate"
            )
        return count

    async def _echoed(self, request: ChooseRequest, position: int) -> OptionScores | Failure:
        """One request an option, after the prompt."""
        scores: list[float] = []
        prompt_tokens = 0
        for option in request.options:
            body = _encoded(lambda: self._dialect.echo_body(request.prompt, option), position=position)  # noqa: B023 - called at once
            found = await self._ask(body, self._dialect.reader_of_echo(option), room=1, position=position)
            if isinstance(found, Failure):
                return found
            if found is None:
                raise RequestError(
                    f'{self._url} gives no log-probabilities of its own for the option "{option}"', position=position
                )
            scores.append(found.logprob)
            prompt_tokens = found.prompt_tokens
        return OptionScores(logprobs=tuple(scores), prompt_tokens=prompt_tokens)

    async def _topped(self, request: ChooseRequest, position: int) -> OptionScores | Failure:
        """One request for all options."""
        body = _encoded(lambda: self._dialect.top_body(request.prompt), position=position)
        found = await self._ask(body, lambda content: self._dialect.top(content, body=body), room=1, position=position)
        if isinstance(found, Failure):
            return found
        try:
            scores = first_token_scores(found.logprobs, options=request.options, lead=self._dialect.lead)
        except ValueError as error:
            raise RequestError(f"{self._url}: {error}", position=position) from error
        return OptionScores(logprobs=scores, prompt_tokens=found.prompt_tokens)

    async def _ask(self, body: bytes, read: Callable[[bytes], T], *, room: int, position: int) -> T | Failure:
        tokens = estimate_tokens(body) + room
        return await self._client.ask(Call(url=self._url, body=body, read=read, tokens=tokens, position=position))


def _encoded(encode: Callable[[], bytes], *, position: int) -> bytes:
    try:
        return encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            "its text holds half a surrogate pair, which has no UTF-8 form", position=position
        ) from error
