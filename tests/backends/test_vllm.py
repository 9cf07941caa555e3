"""The backend `vllm` on the tiny checkpoint, one engine for the whole module, against transformers on the same weights.

That the tiny checkpoint asks for sampling and a repetition penalty, and neither enters, is part of every comparison.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mragaudit.calls import Caller
from mragaudit.errors import BackendError, RequestError
from mragaudit.journal import Journal
from mragaudit.llm.checkpoint_prompts import PromptReader
from mragaudit.llm.transformers_lm import TransformersBackend
from mragaudit.llm.vllm_lm import VllmBackend
from mragaudit.protocols import ChooseRequest, GenerateRequest, Message, Prompt, SelectRequest

pytestmark = pytest.mark.vllm
WORDS = "please tell me the exact phone number recorded under ticket QZ-4107-KB".split()
SMALL: dict[str, Any] = {"enforce_eager": True, "kv_cache_gb": 0.1}
CONTEXT_TOKENS = 512
CALLS = 24


@pytest.fixture(scope="module")
def backend(tiny_qwen2: Path) -> Iterator[VllmBackend]:
    made = VllmBackend(model=str(tiny_qwen2), context_tokens=CONTEXT_TOKENS, max_num_seqs=8, **SMALL)
    yield made
    made.close()


@pytest.fixture(scope="module")
def reference(tiny_qwen2: Path) -> Iterator[TransformersBackend]:
    made = TransformersBackend(model=str(tiny_qwen2), context_tokens=CONTEXT_TOKENS, batch_size=1)
    yield made
    made.close()


def prompt(place: int) -> Prompt:
    """Prompts of many lengths, no two alike, the longest of them several blocks of the engine's cache."""
    text = " ".join(WORDS[(place * 5 + step) % len(WORDS)] for step in range(1 + place * 7 % 53))
    return Prompt(messages=(Message("system", "Answer."), Message("user", f"Q{place}: {text}\nA:")), shared=1)


def ask(place: int, *, max_tokens: int = 24, stop: tuple[str, ...] = ()) -> GenerateRequest:
    return GenerateRequest(prompt=prompt(place), max_tokens=max_tokens, stop=stop)


@contextmanager
def caller_of(backend: VllmBackend, path: Path) -> Iterator[Caller]:
    """Not closed: that would close the module's one engine."""
    with Journal(path) as journal:
        yield Caller(identity=backend.identity, load=lambda: backend, journal=journal, label="test", progress=False)


def test_answers_are_those_of_transformers_on_the_same_weights(
    backend: VllmBackend, reference: TransformersBackend
) -> None:
    requests = [ask(place) for place in range(CALLS)]
    ours = dict(backend.generate(requests))
    assert ours == dict(reference.generate(requests))
    assert len({answer.text for answer in ours.values()}) == CALLS


def test_log_probabilities_are_those_of_transformers_where_options_have_several_tokens(
    backend: VllmBackend, reference: TransformersBackend
) -> None:
    requests = [ChooseRequest(prompt=prompt(place), options=("BLOCK", "ALLOW", "B", "BLACK")) for place in range(6)]
    ours, theirs = dict(backend.choose(requests)), dict(reference.choose(requests))
    for place, scores in ours.items():
        assert scores.logprobs == pytest.approx(theirs[place].logprobs, abs=1e-4)
        assert scores.prompt_tokens == theirs[place].prompt_tokens


def test_a_text_is_counted_and_cut_as_by_transformers(backend: VllmBackend, reference: TransformersBackend) -> None:
    for text in ("漢字 مرحبا", "Müller <|endoftext|> x"):
        assert backend.count_tokens(text) == reference.count_tokens(text)
        assert [backend.truncate(text, limit) for limit in range(9)] == [
            reference.truncate(text, limit) for limit in range(9)
        ]


def test_an_answer_does_not_depend_on_the_calls_beside_it(backend: VllmBackend) -> None:
    """Of float32 on this CPU; docs/decisions/0014 says what of lower precision."""
    requests = [ask(place) for place in range(CALLS)]
    together = dict(backend.generate(requests))
    alone = [dict(backend.generate([request]))[0] for request in requests]
    assert [together[place] for place in range(CALLS)] == alone


def test_an_answer_ends_before_the_first_of_its_stop_strings_even_where_they_end_together(
    backend: VllmBackend,
) -> None:
    [(_, whole)] = backend.generate([ask(18)])
    assert whole.text.startswith("+O'3c'")
    [(_, cut)] = backend.generate([ask(18, stop=("3c", "O'3c", "never seen", ""))])
    assert cut.text == "+"
    assert cut.finish_reason == "stop"
    assert cut.completion_tokens < whole.completion_tokens


def test_each_call_keeps_its_own_limit(backend: VllmBackend) -> None:
    requests = [ask(place, max_tokens=limit) for place, limit in ((1, 2), (2, 5), (3, 9))]
    answers = dict(backend.generate(requests))
    assert [answers[place].completion_tokens for place in range(3)] == [2, 5, 9]
    assert {answer.finish_reason for answer in answers.values()} == {"length"}


def test_answers_are_in_the_journal_before_the_engine_takes_its_next_step(
    backend: VllmBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "generate.1-of-1.jsonl"
    step = backend._engine._step
    finished, on_disk = [0], []

    def counted() -> list[Any]:
        on_disk.append((finished[0], len(path.read_bytes().splitlines())))
        outputs = step()
        finished[0] += len(outputs)
        return outputs

    monkeypatch.setattr(backend._engine, "_step", counted)
    requests = [ask(place, max_tokens=2 + place) for place in range(CALLS)]
    with caller_of(backend, path) as caller:
        caller.generate(requests, trials=[str(place) for place in range(CALLS)])
    assert all(made == kept for made, kept in on_disk)
    assert len({kept for _, kept in on_disk}) > CALLS // 2
    assert finished[0] == CALLS


def test_a_reply_is_held_to_the_likelier_of_its_options(backend: VllmBackend, reference: TransformersBackend) -> None:
    """The tiny tokenizer has a token a byte: after the space, which both options begin with, one byte decides."""
    options = ("BLOCK", "ALLOW")
    replies = dict(backend.select([SelectRequest(prompt=prompt(place), options=options) for place in range(CALLS)]))
    first = dict(reference.choose([ChooseRequest(prompt=prompt(place), options=("B", "A")) for place in range(CALLS)]))
    expected = [options[first[place].logprobs[0] < first[place].logprobs[1]] for place in range(CALLS)]
    assert [replies[place].text for place in range(CALLS)] == expected
    assert set(expected) == set(options)
    assert all(reply.finish_reason == "stop" for reply in replies.values())


def test_a_held_reply_stands_in_the_journal_under_a_key_of_its_own(backend: VllmBackend, tmp_path: Path) -> None:
    options = ("BLOCK", "ALLOW")
    request = SelectRequest(prompt=prompt(0), options=options)
    with caller_of(backend, tmp_path / "judge.1-of-1.jsonl") as caller:
        caller.choose([ChooseRequest(prompt=prompt(0), options=options)], trials=["a"])
        first = caller.select([request], trials=["a"])
        assert caller.select([request], trials=["a"]) == first
    assert (caller.counts.n_made, caller.counts.n_from_journal) == (2, 1)


def test_a_prompt_that_does_not_fit_is_told_by_trial_and_tokens_before_any_call(
    backend: VllmBackend, tmp_path: Path
) -> None:
    long = GenerateRequest(prompt=Prompt(messages=(Message("user", "x" * 505),), shared=0), max_tokens=8, stop=())
    calls = backend.meter.calls
    message = "trial second: 505 tokens of prompt and 8 of answer exceed the context of 512"
    with (
        caller_of(backend, tmp_path / "generate.1-of-1.jsonl") as caller,
        pytest.raises(BackendError, match=message),
    ):
        caller.generate([ask(0), long], trials=["first", "second"])
    assert backend.meter.calls == calls
    exact = GenerateRequest(prompt=long.prompt, max_tokens=7, stop=())
    assert dict(backend.generate([exact]))[0].completion_tokens == 7


@pytest.mark.parametrize("options", [("BLOCK", ""), ()])
def test_options_without_text_are_refused(backend: VllmBackend, options: tuple[str, ...]) -> None:
    with pytest.raises(RequestError, match="options are missing, or an option has no text"):
        list(backend.select([SelectRequest(prompt=prompt(0), options=options)]))


def test_closing_the_iterator_drops_the_calls_under_way(backend: VllmBackend) -> None:
    results = backend.generate([ask(place) for place in range(CALLS)])
    next(results)
    assert backend._engine._engine.has_unfinished_requests()
    results.close()  # type: ignore[attr-defined]
    assert not backend._engine._engine.has_unfinished_requests()
    assert dict(backend.generate([ask(0)])) == dict(backend.generate([ask(0)]))


def test_the_chat_rendering_gives_the_engine_the_tokens_of_the_models_own_template(backend: VllmBackend) -> None:
    reader = PromptReader(backend._tokenizer, name="tiny", chat=True, context_tokens=CONTEXT_TOKENS)
    question = prompt(0).messages[-1].content
    plan = reader.plan(prompt(0), 0)
    assert plan.text == (
        f"<|im_start|>system\nAnswer.<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )
    opening, closing = backend._tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    assert (plan.tokens.count(opening), plan.tokens.count(closing)) == (3, 2)


def test_the_engine_is_set_as_the_role_says_and_keeps_what_prompts_share(backend: VllmBackend) -> None:
    config = backend._engine._engine.vllm_config
    assert config.cache_config.enable_prefix_caching
    assert str(config.model_config.dtype) == "torch.float32"
    assert config.scheduler_config.max_num_seqs == 8
    assert config.model_config.max_model_len == CONTEXT_TOKENS
    assert config.cache_config.kv_cache_memory_bytes == 10**8


def test_nothing_is_reported_to_the_makers_of_vllm(backend: VllmBackend) -> None:
    from vllm.usage.usage_lib import is_usage_stats_enabled  # noqa: PLC0415 - optional package

    assert backend.identity.backend == "vllm"
    assert not is_usage_stats_enabled()


def test_a_second_engine_in_one_process_is_refused(backend: VllmBackend, tiny_qwen2: Path) -> None:
    assert backend.identity.backend == "vllm"
    with pytest.raises(BackendError, match="vLLM runs one engine a process, and one is open in this; close it first"):
        VllmBackend(model=str(tiny_qwen2), **SMALL)


def test_the_batch_invariant_mode_is_refused_where_vllm_has_none(tiny_qwen2: Path) -> None:
    with pytest.raises(BackendError, match="batch_invariant: vLLM has this mode on GPUs, and here it runs on cpu"):
        VllmBackend(model=str(tiny_qwen2), batch_invariant=True, **SMALL)


def test_a_process_whose_vllm_was_loaded_in_the_other_mode_is_refused(
    backend: VllmBackend, tiny_qwen2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert backend.identity.backend == "vllm"
    assert os.environ["VLLM_BATCH_INVARIANT"] == "0"
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    with pytest.raises(BackendError, match="batch_invariant: vLLM was loaded in this process with another value"):
        VllmBackend(model=str(tiny_qwen2), **SMALL)
