"""Requests that the tests of endpoints make, and what they make of the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mragaudit.llm.openai_http import OpenAIHttpBackend
from mragaudit.protocols import ChooseRequest, Completion, Failure, GenerateRequest, Message, Prompt

Make = Callable[..., OpenAIHttpBackend]
"""(address, options) to a backend that is closed at the end of the test."""
OPTIONS = ("BLOCK", "ALLOW")


def prompt(turn: str) -> Prompt:
    return Prompt(messages=(Message("system", "Rules."), Message("user", turn)), shared=1)


def ask(turn: str, *, max_tokens: int = 8, stop: tuple[str, ...] = ("\n",)) -> GenerateRequest:
    return GenerateRequest(prompt=prompt(turn), max_tokens=max_tokens, stop=stop)


def asks(count: int) -> list[GenerateRequest]:
    return [ask(f"Question {number}?") for number in range(count)]


def choice(turn: str) -> ChooseRequest:
    return ChooseRequest(prompt=prompt(turn), options=OPTIONS)


def texts(results: Iterable[tuple[int, Completion | Failure]]) -> dict[int, str]:
    """Return position → answer; a failure is an assertion."""
    found = {}
    for position, answer in results:
        assert isinstance(answer, Completion), answer
        assert position not in found
        found[position] = answer.text
    return found
