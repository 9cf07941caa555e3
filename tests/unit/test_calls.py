"""Calls are served from the journal, made once where they are equal, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mragaudit.calls import CallCounts, Caller, total_counts
from mragaudit.errors import BackendError, RequestError
from mragaudit.journal import Journal
from mragaudit.llm.scripted import SURE, ScriptedBackend
from mragaudit.protocols import (
    Backend,
    ChooseRequest,
    Completion,
    Failure,
    GenerateRequest,
    Message,
    OptionScores,
    Prompt,
)


def _request(text: str) -> GenerateRequest:
    return GenerateRequest(prompt=Prompt(messages=(Message("user", text),), shared=0), max_tokens=8, stop=())


def _choice(text: str) -> ChooseRequest:
    return ChooseRequest(prompt=_request(text).prompt, options=("BLOCK", "ALLOW"))


def _never() -> Backend:
    raise AssertionError("the model was loaded")


class Folder:
    """A folder with a journal and a count of the calls made, and the callers that were opened on it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[Caller] = []

    def caller(self, *, load: Callable[[], Backend] | None = None, **options: Any) -> Caller:
        given = {"model": "echo", "count_file": str(self._path / "calls"), **options}
        caller = Caller(
            identity=ScriptedBackend.identify(**given),
            load=load or (lambda: ScriptedBackend(**given)),
            journal=Journal(self._path / "j.jsonl"),
            label="test",
            progress=False,
        )
        self._open.append(caller)
        return caller

    def n_made(self) -> int:
        return len((self._path / "calls").read_bytes().splitlines())

    def close(self) -> None:
        for caller in self._open:
            caller.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    opened = Folder(tmp_path)
    yield opened
    opened.close()


def _texts(results: list[Completion | Failure]) -> list[str]:
    return [result.text if isinstance(result, Completion) else f"lost: {result.reason}" for result in results]


def _ask(caller: Caller, *texts: str) -> list[str]:
    return _texts(caller.generate([_request(text) for text in texts], trials=texts))


def test_equal_prompts_are_asked_once_and_answered_each(folder: Folder) -> None:
    caller = folder.caller()
    assert _ask(caller, "one", "two", "one") == ["one", "two", "one"]
    assert folder.n_made() == 2
    assert caller.counts == CallCounts(
        n_requests=3, n_distinct=2, n_from_journal=0, n_made=2, n_failed=0, prompt_tokens=2, completion_tokens=2
    )


def test_a_finished_call_is_served_without_loading_the_model(folder: Folder) -> None:
    first = folder.caller()
    _ask(first, "one", "two")
    first.close()
    second = folder.caller(load=_never)
    assert _ask(second, "two", "one") == ["two", "one"]
    assert second.counts == CallCounts(n_requests=2, n_distinct=2, n_from_journal=2)
    assert (second.load_seconds, second.inside_seconds) == (0.0, 0.0)


def test_only_what_the_journal_lacks_is_asked(folder: Folder) -> None:
    first = folder.caller()
    _ask(first, "one")
    first.close()
    second = folder.caller()
    assert _ask(second, "zero", "one", "two") == ["zero", "one", "two"]
    assert (second.counts.n_from_journal, second.counts.n_made, folder.n_made()) == (1, 2, 3)


def test_another_model_is_asked_anew(folder: Folder) -> None:
    first = folder.caller()
    _ask(first, "one")
    first.close()
    assert _ask(folder.caller(model="blind"), "one") == ["I cannot say."]


def test_lost_calls_come_back_as_failures_in_their_places(folder: Folder) -> None:
    caller = folder.caller(fail_on="two")
    assert _ask(caller, "one", "two", "three", "two") == [
        "one",
        "lost: scripted: connection lost for good",
        "three",
        "lost: scripted: connection lost for good",
    ]
    assert (caller.counts.n_made, caller.counts.n_failed) == (2, 1)


def test_a_lost_call_is_no_finished_call(folder: Folder) -> None:
    first = folder.caller(fail_on="two")
    _ask(first, "one", "two")
    first.close()
    second = folder.caller()
    assert _ask(second, "one", "two") == ["one", "two"]
    assert (second.counts.n_from_journal, second.counts.n_made) == (1, 1)


def test_log_probabilities_come_in_the_order_of_the_requests(folder: Folder) -> None:
    caller = folder.caller(model="always_allow", answers={"two": "BLOCK"})
    results = caller.choose([_choice("one"), _choice("two")], trials=["1", "2"])
    low_first, high_first = SURE[::-1], SURE
    assert [result.logprobs for result in results if not isinstance(result, Failure)] == [low_first, high_first]


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_score_that_is_no_number_is_a_failure_and_not_in_the_journal(value: float, folder: Folder) -> None:
    class Overflowing(ScriptedBackend):
        def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores | Failure]]:
            yield from (
                (place, OptionScores(logprobs=(-1.0, value), prompt_tokens=1)) for place in range(len(requests))
            )

    caller = folder.caller(load=lambda: Overflowing(model="echo"))
    [found] = caller.choose([_choice("one")], trials=["t"])
    assert isinstance(found, Failure)
    assert "no finite log-probability" in found.reason
    assert (caller.counts.n_made, caller.counts.n_failed) == (0, 1)
    caller.close()
    assert (folder.caller().choose([_choice("one")], trials=["t"])) != [found]


def test_nothing_asked_is_nothing_loaded(folder: Folder) -> None:
    assert folder.caller(load=_never).generate([], trials=[]) == []


def test_time_inside_the_model_is_its_meters(folder: Folder) -> None:
    caller = folder.caller(sleep_seconds=0.02)
    _ask(caller, "one", "two", "three")
    assert caller.inside_seconds == caller.backend.meter.seconds
    assert caller.inside_seconds >= 0.06


def test_requests_and_trials_must_match(folder: Folder) -> None:
    with pytest.raises(ValueError, match="1 requests and 2 trials"):
        folder.caller().generate([_request("one")], trials=["a", "b"])


class Picky(ScriptedBackend):
    """A backend that cannot take one request."""

    def generate(self, requests: Any) -> Any:
        for position, request in enumerate(requests):
            if "bad" in request.prompt.messages[-1].content:
                raise RequestError("prompt too long", position=position)
            yield from ((position + index, answer) for index, answer in super().generate([request]))


def test_a_request_that_cannot_be_taken_is_named_by_its_trial(folder: Folder) -> None:
    caller = folder.caller(load=lambda: Picky(model="echo"))
    _ask(caller, "known")
    with pytest.raises(BackendError, match="trial t-bad: prompt too long"):
        caller.generate([_request(text) for text in ("known", "good", "bad")], trials=["t-known", "t-good", "t-bad"])
    caller.close()
    assert _ask(folder.caller(load=_never), "good") == ["good"]


def test_counts_add_up_field_by_field() -> None:
    one = CallCounts(n_requests=1, n_distinct=2, n_from_journal=3, n_made=4, n_failed=5, prompt_tokens=6)
    two = CallCounts(n_requests=10, completion_tokens=7)
    assert total_counts([one, two]) == CallCounts(
        n_requests=11,
        n_distinct=2,
        n_from_journal=3,
        n_made=4,
        n_failed=5,
        prompt_tokens=6,
        completion_tokens=7,
    )
    assert total_counts([]) == CallCounts()


class Bursting(ScriptedBackend):
    """A backend that finishes calls two at a time."""

    batch_calls = 2


def test_the_backend_says_how_many_calls_may_be_off_disk(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("mragaudit.journal.os.fsync", synced.append)
    caller = folder.caller(load=lambda: Bursting(model="echo"))
    caller.generate([_request(text) for text in "abcde"], trials=list("abcde"))
    assert len(synced) == 2
