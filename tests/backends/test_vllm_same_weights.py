"""The packaged Gemma, converted by our tool, under vLLM and transformers, and what llama.cpp answers from its file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from capitals import LLAMA_ANSWERS, NEAR_TIE_NATS, REQUESTS, convert

from mragaudit.llm.transformers_lm import TransformersBackend
from mragaudit.llm.vllm_lm import VllmBackend
from mragaudit.protocols import ChooseRequest

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[VllmBackend, TransformersBackend]]:
    folder = convert(tmp_path_factory.mktemp("converted") / "gemma")
    vllm = VllmBackend(model=str(folder), context_tokens=256, enforce_eager=True, kv_cache_gb=0.1)
    transformers = TransformersBackend(model=str(folder), context_tokens=256, batch_size=8)
    (folder / "model.safetensors").unlink()  # a gigabyte, and in memory now
    yield vllm, transformers
    vllm.close()
    transformers.close()


def test_vllm_and_transformers_give_the_same_short_answers(pair: tuple[VllmBackend, TransformersBackend]) -> None:
    vllm, transformers = pair
    assert dict(vllm.generate(REQUESTS)) == dict(transformers.generate(REQUESTS))


def test_vllm_answers_as_llama_cpp_does_but_for_near_ties(pair: tuple[VllmBackend, TransformersBackend]) -> None:
    vllm, _ = pair
    answers = dict(vllm.generate(REQUESTS))
    differing = [place for place, known in enumerate(LLAMA_ANSWERS) if answers[place].text != known]
    assert len(differing) <= 1
    for place in differing:
        options = (answers[place].text, LLAMA_ANSWERS[place])
        [(_, scores)] = vllm.choose([ChooseRequest(prompt=REQUESTS[place].prompt, options=options)])
        assert abs(scores.logprobs[0] - scores.logprobs[1]) < NEAR_TIE_NATS


def test_both_give_options_the_same_log_probabilities(pair: tuple[VllmBackend, TransformersBackend]) -> None:
    vllm, transformers = pair
    requests = [ChooseRequest(prompt=request.prompt, options=("Paris", "Tokyo")) for request in REQUESTS]
    ours, theirs = dict(vllm.choose(requests)), dict(transformers.choose(requests))
    for place, scores in ours.items():
        assert scores.logprobs == pytest.approx(theirs[place].logprobs, abs=1e-3)
