"""The embedded backend: a GGUF model in this process under llama.cpp, greedy, one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mragaudit.errors import BackendError, RequestError
from mragaudit.llm.base import (
    BATCH_CALLS,
    BATCH_SECONDS,
    AnswerText,
    check_prompt,
    grouped,
    log_softmax,
    longest_head,
    rounded_logprob,
)
from mragaudit.llm.llama_engine import CHUNK_TOKENS, Engine, load_library
from mragaudit.llm.rendering import (
    ChatTemplate,
    Rendered,
    Turn,
    render_chat,
    render_completion,
    takes_parts,
    turns_of,
)
from mragaudit.llm.weights import default_cache_folder, find_weights, weights_name
from mragaudit.protocols import (
    ChooseRequest,
    Completion,
    GenerateRequest,
    Message,
    Meter,
    ModelIdentity,
    OptionScores,
    Prompt,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """A request as tokens; each part is evaluated apart from the next, whether or not it is cached."""

    parts: tuple[tuple[int, ...], ...]
    """What a template shares, what the documents share, and the rest; none is empty, the rest always there."""
    position: int

    @property
    def reusable(self) -> tuple[tuple[int, ...], ...]:
        return self.parts[:-1]

    @property
    def prompt_tokens(self) -> int:
        return sum(map(len, self.parts))


class LlamaCppBackend:
    """A GGUF model under llama.cpp.

    The tokens of the shared part of a prompt are always evaluated apart from the rest and in chunks counted from its
    start, so an answer has the same bits whether the part was in the cache or not, and in any order of requests.
    """

    batch_calls = BATCH_CALLS
    batch_seconds = BATCH_SECONDS

    def __init__(
        self,
        *,
        model: str,
        sha256: str | None = None,
        rendering: Literal["completion", "chat"] = "completion",
        context_tokens: int = 2048,
        threads: int = 1,
        cache_folder: Path | None = None,
    ) -> None:
        """Load the model.

        `model` is `package:NAME` or the path of a .gguf file, `sha256` what its file must have. Raises ConfigError
        for a file that is not there, MissingPackageError, BackendError where the hash differs, the model does
        not load or has no chat template for the rendering `chat`.
        """
        weights = find_weights(model, sha256=sha256, cache_folder=cache_folder or default_cache_folder())
        self.identity = ModelIdentity(
            backend="llama_cpp", model=weights.name, revision=weights.sha256, rendering=rendering
        )
        self.meter = Meter()
        started = time.perf_counter()
        self._engine = Engine(weights.path, context_tokens=context_tokens, threads=threads, meter=self.meter)
        self.load_seconds = time.perf_counter() - started
        """Seconds that loading the model took."""
        self._chat = rendering == "chat"
        self._render = self._chat_renderer() if self._chat else render_completion
        self._tokens: dict[str, tuple[int, ...]] = {}
        self._cached: list[tuple[int, ...]] = []
        """Parts now in the engine's cache, in order."""

    @staticmethod
    def identify(
        *, model: str, sha256: str | None = None, rendering: str = "completion", **_others: object
    ) -> ModelIdentity:
        """Return the identity without loading: the pinned hash, else the hash of the file."""
        if sha256 is None:
            weights = find_weights(model, sha256=None, cache_folder=default_cache_folder())
            sha256 = weights.sha256
        name = weights_name(model)
        return ModelIdentity(backend="llama_cpp", model=name, revision=sha256.lower(), rendering=rendering)

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion]]:
        """Yield (position, greedy answer), requests with the same shared part one after another.

        The likeliest token is taken, of equals the one with the lowest id; the answer ends before a stop string, at
        a token that ends the turn, or after max_tokens. Raises BackendError, before any model call, for a prompt that
        with max_tokens exceeds the context.
        """
        plans = [self._plan(request.prompt, position) for position, request in enumerate(requests)]
        for plan, request in zip(plans, requests, strict=True):
            self._check_fits(plan, room=request.max_tokens)
        for position in grouped([plan.reusable for plan in plans]):
            yield position, self._complete(plans[position], requests[position])

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores]]:
        """Yield (position, log-probabilities of the options), the prompt evaluated once for all options.

        In the completion rendering an option is preceded by a space. Raises BackendError, before any model call, for
        a prompt that with its longest option exceeds the context, and for an option without text.
        """
        plans = [self._plan(request.prompt, position) for position, request in enumerate(requests)]
        options = [self._option_tokens(request, position) for position, request in enumerate(requests)]
        for plan, tokens in zip(plans, options, strict=True):
            self._check_fits(plan, room=max(map(len, tokens), default=0))
        for position in grouped([plan.reusable for plan in plans]):
            yield position, self._score(plans[position], options[position])

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(self._engine.vocabulary.tokenize(text, parse_special=False))

    def truncate(self, text: str, max_tokens: int) -> str:
        """Return the longest head of the text that has at most `max_tokens` tokens; never half a character."""
        vocabulary = self._engine.vocabulary
        tokens = vocabulary.tokenize(text, parse_special=False)
        sizes = np.cumsum([len(vocabulary.piece(token)) for token in tokens[: max_tokens + 1]])
        content = text.encode("utf-8")
        ends = [len(content[:size].decode("utf-8", errors="ignore")) for size in sizes]
        return longest_head(text, max_tokens=max_tokens, ends=ends, count=self.count_tokens)

    def close(self) -> None:
        """Free the model; may be called twice."""
        self._engine.close()

    def _chat_renderer(self) -> Callable[[Prompt], Rendered]:
        try:
            template = _jinja_template(self._engine)
        except ValueError as error:
            raise BackendError(f"model {self.identity.model}: its chat template cannot be used: {error}") from error
        return lambda prompt: render_chat(prompt, template=template)

    def _plan(self, prompt: Prompt, position: int) -> _Plan:
        check_prompt(prompt, position=position)
        try:
            rendered = self._render(prompt)
        except ValueError as error:
            raise RequestError(f"the model's chat template refuses it: {error}", position=position) from error
        texts = [text for text in (rendered.shared, rendered.head, rendered.rest) if text]
        parts = [*(self._known_tokens(text) for text in texts[:-1]), self._tokens_of(texts[-1])]
        # The model continues what was evaluated last, so the last part is never one to be reused.
        start = self._engine.vocabulary.start
        # Templates of guard models write the begin token out, whatever they are told that it is.
        parts[0] = parts[0] if parts[0][: len(start)] == start else (*start, *parts[0])
        return _Plan(parts=tuple(parts), position=position)

    def _known_tokens(self, text: str) -> tuple[int, ...]:
        if text not in self._tokens:
            self._tokens[text] = self._tokens_of(text)
        return self._tokens[text]

    def _tokens_of(self, text: str) -> tuple[int, ...]:
        return tuple(self._engine.vocabulary.tokenize(text, parse_special=self._chat))

    def _option_tokens(self, request: ChooseRequest, position: int) -> list[list[int]]:
        lead = "" if self._chat else " "
        if not all(request.options):
            raise RequestError("an option has no text", position=position)
        return [self._engine.vocabulary.tokenize(lead + text, parse_special=False) for text in request.options]

    def _check_fits(self, plan: _Plan, *, room: int) -> None:
        limit = self._engine.context_tokens
        if plan.prompt_tokens + room > limit:
            raise RequestError(
                f"{plan.prompt_tokens} tokens of prompt and {room} of answer exceed the "
                f"context of {limit} tokens; raise context_tokens or shorten the prompt",
                position=plan.position,
            )

    def _evaluate(self, plan: _Plan) -> None:
        kept = 0
        while kept < len(plan.reusable) and self._cached[kept : kept + 1] == [plan.reusable[kept]]:
            kept += 1
        self._cached = self._cached[:kept]
        self._engine.roll_back(sum(map(len, self._cached)))
        for part in plan.reusable[kept:]:
            self._engine.append(part, logits=False)
            self._cached.append(part)
        self._engine.append(plan.parts[-1], logits=True)

    def _complete(self, plan: _Plan, request: GenerateRequest) -> Completion:
        vocabulary = self._engine.vocabulary
        answer = AnswerText(request.stop)
        reason: Literal["stop", "length"] = "length"
        drawn = 0
        self._evaluate(plan)
        while drawn < request.max_tokens:
            token = int(self._engine.logits().argmax())
            drawn += 1
            if vocabulary.ends(token) or answer.add(vocabulary.piece(token)):
                reason = "stop"
                break
            if drawn < request.max_tokens:
                self._engine.append((token,), logits=True)
        return Completion(
            text=answer.text(),
            finish_reason=reason,
            prompt_tokens=plan.prompt_tokens,
            completion_tokens=drawn,
        )

    def _score(self, plan: _Plan, options: list[list[int]]) -> OptionScores:
        self._evaluate(plan)
        first = log_softmax(self._engine.logits())
        scores = tuple(rounded_logprob(first[tokens[0]] + self._tail_score(plan, tokens)) for tokens in options)
        return OptionScores(logprobs=scores, prompt_tokens=plan.prompt_tokens)

    def _tail_score(self, plan: _Plan, tokens: list[int]) -> float:
        """Log-probability of an option's tokens after its first, which is evaluated and rolled back."""
        total = 0.0
        for start in range(0, len(tokens) - 1, CHUNK_TOKENS):
            given = tokens[start : start + CHUNK_TOKENS][: len(tokens) - 1 - start]
            self._engine.append_all(given)
            for place, token in enumerate(tokens[start + 1 : start + 1 + len(given)]):
                total += float(log_softmax(self._engine.logits(place))[token])
        self._engine.roll_back(plan.prompt_tokens)
        return total


def _jinja_template(engine: Engine) -> ChatTemplate:
    load_library()
    # Imported here: the package is optional, and its chat formats are needed by this rendering alone.
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter  # noqa: PLC0415

    source = engine.chat_template()

    def formatter(opened: bool) -> Any:
        # The begin token is put in front as a token by the backend, so the template's own is left empty.
        end = engine.vocabulary.end_text
        return Jinja2ChatFormatter(template=source, eos_token=end, bos_token="", add_generation_prompt=opened)

    formatters = {opened: formatter(opened) for opened in (True, False)}
    parts = takes_parts(lambda turns: str(_template_text(formatters[True], turns)))

    def apply(messages: Sequence[Message], opened: bool) -> str:
        return str(_template_text(formatters[opened], turns_of(messages, parts=parts)))

    return apply


def _template_text(formatter: Any, turns: Sequence[Turn]) -> Any:
    from jinja2 import TemplateError  # noqa: PLC0415 - only the chat rendering needs it

    try:
        return formatter(messages=turns).prompt
    except (TemplateError, ValueError, TypeError, KeyError) as error:
        raise ValueError(str(error)) from error
