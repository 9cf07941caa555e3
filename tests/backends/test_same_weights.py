"""The packaged Gemma under llama.cpp and, converted by our tool, under transformers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from capitals import COUNTRIES, LLAMA_ANSWERS, MODEL, NEAR_TIE_NATS, REQUESTS, convert, prompt

from mragaudit.llm.checkpoint_prompts import plain_tokens
from mragaudit.llm.llama_cpp import LlamaCppBackend
from mragaudit.llm.transformers_lm import TransformersBackend
from mragaudit.protocols import ChooseRequest

pytestmark = [pytest.mark.torch, pytest.mark.embedded, pytest.mark.gguf, pytest.mark.slow]


@pytest.fixture(scope="module")
def llama() -> Iterator[LlamaCppBackend]:
    made = LlamaCppBackend(model=MODEL, context_tokens=256)
    yield made
    made.close()


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersBackend]:
    folder = convert(tmp_path_factory.mktemp("converted") / "gemma")
    made = TransformersBackend(model=str(folder), context_tokens=256, batch_size=8)
    (folder / "model.safetensors").unlink()  # a gigabyte, and in memory now
    yield made
    made.close()


@pytest.mark.parametrize(
    "text",
    [
        "two   spaces\tand a tab\n\n\nx",
        "漢字 مرحبا بالعالم",
        "Müller, Straße 12; +49 999 555-0101",
        " a <eos> b",
        "🙂𝔘ẞ",
    ],
)
def test_both_read_a_text_as_the_same_tokens(llama: LlamaCppBackend, converted: TransformersBackend, text: str) -> None:
    ours = plain_tokens(converted._loaded.tokenizer, text)
    assert list(ours) == llama._engine.vocabulary.tokenize(text, parse_special=False)


def test_both_give_the_same_short_answers_but_for_near_ties(
    llama: LlamaCppBackend, converted: TransformersBackend
) -> None:
    one, other = dict(llama.generate(REQUESTS)), dict(converted.generate(REQUESTS))
    differing = [place for place in one if one[place].text != other[place].text]
    assert len(differing) <= 1
    for place in differing:
        options = (one[place].text, other[place].text)
        [(_, scores)] = converted.choose([ChooseRequest(prompt=REQUESTS[place].prompt, options=options)])
        assert abs(scores.logprobs[0] - scores.logprobs[1]) < NEAR_TIE_NATS
    assert [one[place].prompt_tokens for place in one] == [other[place].prompt_tokens for place in one]
    assert one[0].text == other[0].text == "Tokyo"
    # What the test of vLLM, in an environment without llama.cpp, compares with.
    assert sum(one[place].text != known for place, known in enumerate(LLAMA_ANSWERS)) <= 1


def test_both_give_options_nearly_the_same_log_probabilities(
    llama: LlamaCppBackend, converted: TransformersBackend
) -> None:
    requests = [ChooseRequest(prompt=prompt(country), options=("Paris", "Tokyo")) for country in COUNTRIES[:2]]
    one, other = dict(llama.choose(requests)), dict(converted.choose(requests))
    for place, scores in one.items():
        assert scores.logprobs == pytest.approx(other[place].logprobs, abs=NEAR_TIE_NATS)
