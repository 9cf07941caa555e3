from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mragaudit.errors import RequestError
from mragaudit.llm.nllb import NllbBackend
from mragaudit.protocols import ChooseRequest, GenerateRequest, Message, Prompt, TranslationTask

pytestmark = pytest.mark.torch
TEXTS = ("Which number?", "ticket QZ-4107-KB", "a", "please tell me the exact phone number on file", "b c d e f g")


def load(folder: Path, **options: Any) -> NllbBackend:
    return NllbBackend(model=str(folder), **options)


@pytest.fixture(scope="module")
def backend(tiny_m2m100: Path) -> Iterator[NllbBackend]:
    made = load(tiny_m2m100)
    yield made
    made.close()


def prompt(text: str, *, source: str = "eng_Latn", target: str = "swh_Latn", said: str = "Translate.") -> Prompt:
    task = TranslationTask(text=text, source=source, target=target)
    return Prompt(messages=(Message("user", said),), shared=0, task=task)


def ask(text: str, *, max_tokens: int = 16, stop: tuple[str, ...] = (), **pair: str) -> GenerateRequest:
    return GenerateRequest(prompt=prompt(text, **pair), max_tokens=max_tokens, stop=stop)


def translate(backend: NllbBackend, *requests: GenerateRequest) -> list[str]:
    answers = dict(backend.generate(requests))
    return [answers[place].text for place in range(len(requests))]


def by_transformers(backend: NllbBackend, text: str, *, source: str, target: str) -> str:
    """As the model's documentation translates: the tokenizer's own source language, a forced first token."""
    tokenizer, model = backend._loaded.tokenizer, backend._loaded.model
    tokenizer.src_lang = source
    first = tokenizer.convert_tokens_to_ids(target)
    [tokens] = model.generate(
        **tokenizer(text, return_tensors="pt"), forced_bos_token_id=first, max_new_tokens=17, do_sample=False
    ).tolist()
    return str(tokenizer.decode(tokens, skip_special_tokens=True)).strip()


@pytest.mark.parametrize("source", ["eng_Latn", "arb_Arab"])
@pytest.mark.parametrize("target", ["swh_Latn", "zho_Hans"])
def test_a_batch_translates_each_text_as_the_model_alone_does(backend: NllbBackend, source: str, target: str) -> None:
    given = translate(backend, *[ask(text, source=source, target=target) for text in TEXTS])
    assert given == [by_transformers(backend, text, source=source, target=target) for text in TEXTS]


def test_pairs_of_languages_may_stand_in_one_batch(backend: NllbBackend) -> None:
    pairs = [("eng_Latn", "swh_Latn"), ("deu_Latn", "eng_Latn"), ("eng_Latn", "arb_Arab"), ("zho_Hans", "eng_Latn")]
    requests = [ask(TEXTS[0], source=source, target=target) for source, target in pairs]
    together = translate(backend, *requests)
    assert together == [translate(backend, request)[0] for request in requests]
    assert len(set(together)) == len(pairs)


def test_batches_of_one_and_of_eight_give_the_same_translations_in_float32(tiny_m2m100: Path) -> None:
    requests = [ask(f"{text} {number}") for number in range(4) for text in TEXTS]
    one, eight = (translate(load(tiny_m2m100, batch_size=size, dtype="float32"), *requests) for size in (1, 8))
    assert one == eight


def test_the_messages_of_a_prompt_are_not_read(backend: NllbBackend) -> None:
    assert translate(backend, ask(TEXTS[0], said="Translate.")) == translate(backend, ask(TEXTS[0], said="Sing."))


def test_a_prompt_without_a_task_is_refused_by_position(backend: NllbBackend) -> None:
    bare = GenerateRequest(prompt=Prompt(messages=(Message("user", "Hi"),), shared=0), max_tokens=4, stop=())
    with pytest.raises(RequestError, match="nllb reads translation tasks, and this prompt has none") as caught:
        list(backend.generate([ask("a"), bare]))
    assert caught.value.position == 1


def test_a_language_that_the_model_does_not_know_is_named(backend: NllbBackend) -> None:
    with pytest.raises(RequestError, match="has no language quy_Latn"):
        translate(backend, ask("a", target="quy_Latn"))


@pytest.mark.parametrize(("text", "max_tokens"), [("x" * 510, 8), ("x", 511)])
def test_a_text_or_an_answer_beyond_the_models_context_is_refused(
    backend: NllbBackend, text: str, max_tokens: int
) -> None:
    with pytest.raises(RequestError, match="each may have the context of 512 tokens at most"):
        translate(backend, ask(text, max_tokens=max_tokens))


def test_the_longest_text_and_answer_that_fit_are_taken(backend: NllbBackend) -> None:
    """512 positions: language code, word start, 509 letters and end; start, language code and 510 drawn tokens."""
    [(_, answer)] = backend.generate([ask("x" * 509, max_tokens=510)])
    assert (answer.prompt_tokens, answer.completion_tokens <= 510) == (512, True)


def test_a_stop_string_ends_a_translation(backend: NllbBackend) -> None:
    [whole] = translate(backend, ask(TEXTS[0]))
    assert translate(backend, ask(TEXTS[0], stop=(whole[3],))) == [whole[: whole.index(whole[3])].strip()]


def test_options_are_scored_as_translations(backend: NllbBackend) -> None:
    """The decoder is given the option and asked for it, once for both options and once each by hand."""
    import torch  # noqa: PLC0415 - optional package

    [(_, scores)] = backend.choose([ChooseRequest(prompt=prompt(TEXTS[0]), options=("ab", "c"))])
    tokenizer, model = backend._loaded.tokenizer, backend._loaded.model
    tokenizer.src_lang = "eng_Latn"
    start = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("swh_Latn")]
    for option, given in zip(("ab", "c"), scores.logprobs, strict=True):
        tokens = tokenizer.encode(option, add_special_tokens=False)
        with torch.inference_mode():
            logits = model(
                **tokenizer(TEXTS[0], return_tensors="pt"), decoder_input_ids=torch.tensor([[*start, *tokens[:-1]]])
            ).logits[0, 1:]
        total = sum(float(logits.log_softmax(-1)[place, token]) for place, token in enumerate(tokens))
        assert given == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("options", [("ab", ""), ()])
def test_options_without_text_are_refused(backend: NllbBackend, options: tuple[str, ...]) -> None:
    with pytest.raises(RequestError, match="options are missing, or an option has no text"):
        list(backend.choose([ChooseRequest(prompt=prompt(TEXTS[0]), options=options)]))


def test_loading_names_the_non_commercial_licence(tiny_m2m100: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load(tiny_m2m100)
    assert "NLLB-200 is licensed under CC-BY-NC-4.0: non-commercial use only" in caplog.text
