"""The scripted backend: answers by rule, for tests and for the controls of the whole pipeline.

`echo` and `blind` are the positive and the negative control: one repeats the whole context, the other never looks
at it. It can lose calls, take its time and count calls in a file, so that faults can be provoked on purpose.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from mragaudit.errors import ConfigError, did_you_mean
from mragaudit.llm.base import BATCH_CALLS, BATCH_SECONDS
from mragaudit.protocols import (
    ChooseRequest,
    Completion,
    Failure,
    GenerateRequest,
    Meter,
    ModelIdentity,
    OptionScores,
    Prompt,
)

BLIND_ANSWER = "I cannot say."
SURE = (-0.126928, -2.126928)
"""Log-probabilities of two options at odds of e² to 1."""
PERSONAL_WORDS = ("e-mail", "email", "phone", "name", "address", "identif", "id number", "verbatim", "entities")

Rule = Callable[[Prompt], str]


def payload(prompt: Prompt) -> str:
    """Return what the last turn carries: its text after the first label, without the label that opens the answer."""
    lines = prompt.messages[-1].content.split("\n")
    body = lines[:-1] if len(lines) > 1 else lines
    text = "\n".join(body)
    label, colon, rest = text.partition(":")
    return rest.strip() if colon and " " not in label.strip() else text.strip()


def _judged_query(prompt: Prompt) -> str:
    """Return the last labelled line before the answer's own label: the query, with or without a document."""
    lines = prompt.messages[-1].content.split("\n")
    return lines[-2] if len(lines) > 1 else lines[0]


def _lexical(prompt: Prompt) -> str:
    query = _judged_query(prompt).casefold()
    return "BLOCK" if any(word in query for word in PERSONAL_WORDS) else "ALLOW"


RULES: dict[str, Rule] = {
    "echo": lambda prompt: prompt.messages[-1].content,
    "blind": lambda _prompt: BLIND_ANSWER,
    "always_block": lambda _prompt: "BLOCK",
    "always_allow": lambda _prompt: "ALLOW",
    "identity_translator": payload,
    "lexical": _lexical,
}


class ScriptedBackend:
    """A backend without a model; `model` names the rule by which it answers."""

    batch_calls = BATCH_CALLS
    batch_seconds = BATCH_SECONDS

    def __init__(
        self,
        *,
        model: str,
        sha256: str | None = None,  # noqa: ARG002  # taken so that configs fit every backend
        rendering: Literal["completion", "chat"] = "completion",
        context_tokens: int = 2048,  # noqa: ARG002  # taken so that configs fit every backend
        threads: int = 1,  # noqa: ARG002  # taken so that configs fit every backend
        answers: Mapping[str, str] | None = None,
        repeat_answers: Mapping[str, str] | None = None,
        fail_first: int = 0,
        fail_on: str | None = None,
        sleep_seconds: float = 0.0,
        count_file: str | None = None,
        base_url: str | None = None,  # noqa: ARG002  # taken so that configs fit every backend
    ) -> None:
        """Choose the rule.

        `answers` maps a substring of the last turn to an answer that goes before the rule; `repeat_answers` goes before
        both, for A/A repeats alone: a model that is not bit-stable. `fail_first` calls are lost to transport, and every
        call whose last turn holds `fail_on`. Each call takes `sleep_seconds`, and first
        adds the hash of its prompt to `count_file`. `base_url` makes it pass for a remote endpoint. `sha256`,
        `context_tokens` and `threads` are taken for the protocol's sake. Raises ConfigError for an unknown rule.
        """
        self.identity = self.identify(model=model, rendering=rendering, answers=answers, repeat_answers=repeat_answers)
        self.meter = Meter()
        self._rule = RULES[model]
        self._answers = dict(answers or {})
        self._repeat_answers = dict(repeat_answers or {})
        self._failures_left = fail_first
        self._fail_on = fail_on
        self._sleep_seconds = sleep_seconds
        self._count_file = Path(count_file) if count_file else None

    @staticmethod
    def identify(
        *,
        model: str,
        rendering: str = "completion",
        answers: Mapping[str, str] | None = None,
        repeat_answers: Mapping[str, str] | None = None,
        **_others: object,
    ) -> ModelIdentity:
        """Return the identity; the canned answers are its revision, since they decide."""
        if model not in RULES:
            raise ConfigError(f'scripted: "{model}" is no rule of it; {did_you_mean(model, RULES)}')
        decisive = repr(sorted((answers or {}).items()))
        if repeat_answers:
            decisive += repr(sorted(repeat_answers.items()))
        canned = hashlib.sha256(decisive.encode()).hexdigest()[:16]
        return ModelIdentity(backend="scripted", model=model, revision=canned, rendering=rendering)

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion | Failure]]:
        """Yield the answers in order."""
        for position, request in enumerate(requests):
            yield position, self._call(request.prompt) or self._completion(request)

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores | Failure]]:
        """Yield log-probabilities in order: e² to 1 for the option that the rule answers, even for none of them."""
        for position, request in enumerate(requests):
            yield position, self._call(request.prompt) or self._scores(request)

    def count_tokens(self, text: str) -> int:
        """Return the number of words."""
        return len(re.findall(r"\S+", text))

    def truncate(self, text: str, max_tokens: int) -> str:
        """Return the text up to the end of its last allowed word, or whole."""
        ends = [0, *(word.end() for word in re.finditer(r"\S+", text))]
        return text if len(ends) <= max_tokens + 1 else text[: ends[max_tokens]]

    def close(self) -> None:
        """Do nothing: there is no model to free."""

    def _call(self, prompt: Prompt) -> Failure | None:
        """Count the call, take its time, and return a failure if this call is to be lost."""
        start = time.perf_counter()
        self._count(prompt)
        if self._sleep_seconds:
            time.sleep(self._sleep_seconds)
        self.meter.add(time.perf_counter() - start)
        if self._failures_left > 0:
            self._failures_left -= 1
            return Failure(reason="scripted: connection lost")
        if self._fail_on and self._fail_on in prompt.messages[-1].content:
            return Failure(reason="scripted: connection lost for good")
        return None

    def _count(self, prompt: Prompt) -> None:
        if self._count_file is None:
            return
        digest = hashlib.sha256(msgspec.json.encode(prompt)).hexdigest()
        descriptor = os.open(self._count_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, f"{digest}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _answer(self, request: GenerateRequest | ChooseRequest) -> str:
        last = request.prompt.messages[-1].content
        canned = [*self._repeat_answers.items()] if request.repeat else []
        for part, answer in [*canned, *self._answers.items()]:
            if part in last:
                return answer
        return self._rule(request.prompt)

    def _completion(self, request: GenerateRequest) -> Completion:
        text = self._answer(request)
        return Completion(
            text=text,
            finish_reason="stop",
            prompt_tokens=sum(self.count_tokens(message.content) for message in request.prompt.messages),
            completion_tokens=self.count_tokens(text),
        )

    def _scores(self, request: ChooseRequest) -> OptionScores:
        answer = self._answer(request)
        sure, unsure = SURE
        chosen = tuple(sure if option == answer else unsure for option in request.options)
        tokens = sum(self.count_tokens(message.content) for message in request.prompt.messages)
        return OptionScores(logprobs=chosen, prompt_tokens=tokens)
