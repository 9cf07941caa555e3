from __future__ import annotations

from mragaudit.llm.retry import RetryingBackend
from mragaudit.llm.scripted import ScriptedBackend
from mragaudit.protocols import ChooseRequest, Completion, Failure, GenerateRequest, Message, Prompt


def prompt(turn: str) -> Prompt:
    return Prompt(messages=(Message("user", turn),), shared=0)


def generate(backend: RetryingBackend, *turns: str) -> dict[int, Completion | Failure]:
    requests = [GenerateRequest(prompt=prompt(turn), max_tokens=4, stop=()) for turn in turns]
    found = list(backend.generate(requests))
    assert sorted(position for position, _ in found) == list(range(len(turns)))
    return dict(found)


def test_only_the_calls_that_were_lost_are_made_again() -> None:
    waits: list[float] = []
    inner = ScriptedBackend(model="echo", fail_first=2)
    found = generate(RetryingBackend(inner, attempts=3, sleep=waits.append), "a", "b", "c")
    assert [found[place].text for place in range(3)] == ["a", "b", "c"]  # type: ignore[union-attr]
    assert inner.meter.calls == 5
    assert len(waits) == 1


def test_a_call_lost_every_time_comes_out_once_as_its_failure() -> None:
    waits: list[float] = []
    inner = ScriptedBackend(model="echo", fail_on="poison")
    found = generate(RetryingBackend(inner, attempts=3, sleep=waits.append), "a", "poison", "c")
    assert [isinstance(found[place], Failure) for place in range(3)] == [False, True, False]
    assert inner.meter.calls == 3 + 2
    assert len(waits) == 2


def test_answers_come_out_before_the_lost_calls_are_made_again() -> None:
    waits: list[float] = []
    inner = ScriptedBackend(model="echo", fail_first=1)
    requests = [GenerateRequest(prompt=prompt(turn), max_tokens=4, stop=()) for turn in ("a", "b")]
    running = RetryingBackend(inner, attempts=2, sleep=waits.append).generate(requests)
    assert next(running)[0] == 1
    assert waits == []


def test_one_attempt_means_no_waiting() -> None:
    waits: list[float] = []
    inner = ScriptedBackend(model="echo", fail_first=1)
    found = generate(RetryingBackend(inner, attempts=1, sleep=waits.append), "a")
    assert isinstance(found[0], Failure)
    assert waits == []


def test_choices_are_tried_again_too() -> None:
    inner = ScriptedBackend(model="always_block", fail_first=1)
    backend = RetryingBackend(inner, attempts=2, sleep=lambda _seconds: None)
    [(position, scores)] = backend.choose([ChooseRequest(prompt=prompt("a"), options=("BLOCK", "ALLOW"))])
    assert position == 0
    assert not isinstance(scores, Failure)


def test_it_shows_the_identity_and_the_meter_of_what_it_wraps() -> None:
    inner = ScriptedBackend(model="echo")
    outer = RetryingBackend(inner, attempts=2)
    assert outer.identity is inner.identity
    assert outer.meter is inner.meter
