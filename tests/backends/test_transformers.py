from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mragaudit.calls import Caller
from mragaudit.errors import BackendError, ConfigError, MissingPackageError, RequestError
from mragaudit.journal import Journal
from mragaudit.llm.transformers_lm import TransformersBackend
from mragaudit.protocols import ChooseRequest, GenerateRequest, Message, Prompt

pytestmark = pytest.mark.torch
WORDS = "please tell me the exact phone number recorded under ticket QZ-4107-KB".split()


def load(folder: Path, **options: Any) -> TransformersBackend:
    return TransformersBackend(model=str(folder), **options)


@pytest.fixture(scope="module")
def backend(tiny_qwen2: Path) -> Iterator[TransformersBackend]:
    made = load(tiny_qwen2, context_tokens=512)
    yield made
    made.close()


def prompt(place: int) -> Prompt:
    """Prompts of many lengths, no two alike."""
    text = " ".join(WORDS[(place * 5 + step) % len(WORDS)] for step in range(1 + place * 7 % 23))
    return Prompt(messages=(Message("system", "Answer."), Message("user", f"Q{place}: {text}\nA:")), shared=1)


def ask(place: int, *, max_tokens: int = 24, stop: tuple[str, ...] = ()) -> GenerateRequest:
    return GenerateRequest(prompt=prompt(place), max_tokens=max_tokens, stop=stop)


def choose(place: int, *options: str) -> ChooseRequest:
    return ChooseRequest(prompt=prompt(place), options=options)


def by_hand(backend: TransformersBackend, request: GenerateRequest) -> str:
    """Greedy decoding without batch, padding or cache: the whole text again for every token."""
    import torch  # noqa: PLC0415 - optional package

    loaded = backend._loaded
    start = loaded.tokenizer.encode(f"Answer.\n\n{request.prompt.messages[-1].content}", add_special_tokens=False)
    tokens = list(start)
    while len(tokens) < len(start) + request.max_tokens:
        with torch.inference_mode():
            token = int(loaded.model(input_ids=torch.tensor([tokens])).logits[0, -1].argmax())
        if token in loaded.ends:
            break
        tokens.append(token)
    return str(loaded.tokenizer.decode(tokens[len(start) :])).rstrip("\ufffd").strip()


def test_an_answer_is_the_greedy_one_whatever_the_checkpoint_asks_for(backend: TransformersBackend) -> None:
    """The tiny checkpoint's own settings are sampling and a repetition penalty."""
    requests = [ask(place) for place in range(6)]
    answers = dict(backend.generate(requests))
    assert [answers[place].text for place in range(6)] == [by_hand(backend, request) for request in requests]


def test_batches_of_one_and_of_eight_give_the_same_answers_in_float32(tiny_qwen2: Path) -> None:
    requests = [ask(place) for place in range(24)]
    one, eight = (dict(load(tiny_qwen2, batch_size=size, dtype="float32").generate(requests)) for size in (1, 8))
    assert one == eight
    assert len({answer.text for answer in one.values()}) == 24


def test_batches_of_one_and_of_eight_give_the_same_log_probabilities_to_four_decimals(tiny_qwen2: Path) -> None:
    requests = [choose(place, "BLOCK", "ALLOW") for place in range(24)]
    one, eight = (dict(load(tiny_qwen2, batch_size=size, dtype="float32").choose(requests)) for size in (1, 8))
    for place in range(24):
        assert one[place].logprobs == pytest.approx(eight[place].logprobs, abs=1e-4)


def test_answers_come_out_a_batch_at_a_time_longest_prompts_first(tiny_qwen2: Path) -> None:
    backend = load(tiny_qwen2, batch_size=2)
    results = backend.generate([ask(place) for place in range(6)])
    first = [next(results) for _ in range(2)]
    assert backend.meter.calls == 2
    lengths = [answer.prompt_tokens for _, answer in [*first, *results]]
    assert lengths == sorted(lengths, reverse=True)
    assert backend.meter.calls == 6


def test_each_batch_is_in_the_journal_before_the_next_is_computed(tiny_qwen2: Path, tmp_path: Path) -> None:
    backend = load(tiny_qwen2, batch_size=2)
    known: list[int] = []
    original = backend._complete
    path = tmp_path / "generate.1-of-1.jsonl"

    def counted(*given: Any) -> Any:
        known.append(len(path.read_bytes().splitlines()))
        return original(*given)

    backend._complete = counted  # type: ignore[method-assign]
    caller = Caller(
        identity=backend.identity, load=lambda: backend, journal=Journal(path), label="test", progress=False
    )
    caller.generate([ask(place) for place in range(6)], trials=[str(place) for place in range(6)])
    caller.close()
    assert known == [0, 2, 4]


def test_an_answer_ends_before_a_stop_string_that_spans_tokens(backend: TransformersBackend) -> None:
    [(_, whole)] = backend.generate([ask(2)])
    stop = whole.text[3:6]
    [(_, cut)] = backend.generate([ask(2, stop=(stop, "never seen"))])
    assert cut.text == whole.text[: whole.text.index(stop)].strip()
    assert cut.finish_reason == "stop"
    assert cut.completion_tokens < whole.completion_tokens


def test_each_row_of_a_batch_keeps_its_own_limit(backend: TransformersBackend) -> None:
    requests = [ask(place, max_tokens=limit) for place, limit in ((1, 2), (2, 5), (3, 9))]
    answers = dict(backend.generate(requests))
    alone = [dict(backend.generate([request]))[0] for request in requests]
    assert [answers[place] for place in range(3)] == alone
    assert [answers[place].completion_tokens for place in range(3)] == [2, 5, 9]


def test_log_probabilities_are_sums_over_the_tokens_of_an_option(backend: TransformersBackend) -> None:
    """Each token of the option scored by hand, its prompt and the tokens before it evaluated anew."""
    import torch  # noqa: PLC0415 - optional package

    [(_, scores)] = backend.choose([choose(3, "BLOCK", "NO")])
    tokenizer, model = backend._loaded.tokenizer, backend._loaded.model
    start = tokenizer.encode(f"Answer.\n\n{prompt(3).messages[-1].content}", add_special_tokens=False)
    for option, given in zip(("BLOCK", "NO"), scores.logprobs, strict=True):
        tokens, total = list(start), 0.0
        for token in tokenizer.encode(f" {option}", add_special_tokens=False):
            with torch.inference_mode():
                logits = model(input_ids=torch.tensor([tokens])).logits[0, -1].double()
            total += float(logits.log_softmax(-1)[token])
            tokens.append(token)
        assert given == pytest.approx(total, abs=1e-4)


def test_the_chat_rendering_is_the_tokenizers_own_template(tiny_qwen2: Path) -> None:
    backend = load(tiny_qwen2, rendering="chat")
    plan = backend._reader.plan(prompt(0), 0)
    question = prompt(0).messages[-1].content
    assert plan.text == (
        f"<|im_start|>system\nAnswer.<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )
    opening, closing = backend._loaded.tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    assert (plan.tokens.count(opening), plan.tokens.count(closing)) == (3, 2)
    assert dict(backend.generate([ask(0)]))[0].prompt_tokens == len(plan.tokens)


def test_a_special_token_in_a_document_is_text_in_the_completion_rendering(backend: TransformersBackend) -> None:
    end = backend._loaded.tokenizer.eos_token
    messages = (Message("user", f"one {end} two"),)
    assert backend._reader.plan(Prompt(messages=messages, shared=0), 0).tokens == tuple(
        backend._loaded.tokenizer.convert_tokens_to_ids(list(f"one {end} two".replace(" ", "Ġ")))
    )
    assert backend.count_tokens(end) == len(end)


def test_a_model_without_a_chat_template_is_refused_for_the_chat_rendering(tmp_path: Path) -> None:
    from tiny_models import make_qwen2  # noqa: PLC0415 - needs PyTorch

    with pytest.raises(BackendError, match="has no chat template; set rendering: completion"):
        load(make_qwen2(tmp_path / "base", chat=False), rendering="chat")


def test_a_prompt_that_the_chat_template_refuses_is_told_by_position(tmp_path: Path) -> None:
    from tiny_models import make_qwen2  # noqa: PLC0415 - needs PyTorch

    folder = make_qwen2(tmp_path / "strict")
    (folder / "chat_template.jinja").write_text(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "{{ messages[0].content }}",
        encoding="utf-8",
    )
    with pytest.raises(RequestError, match="chat template refuses it: no system role") as caught:
        list(load(folder, rendering="chat").generate([ask(0)]))
    assert caught.value.position == 0


def test_a_prompt_that_does_not_fit_tells_position_and_tokens_before_any_call(tiny_qwen2: Path) -> None:
    backend = load(tiny_qwen2, context_tokens=64)
    short = GenerateRequest(prompt=Prompt(messages=(Message("user", "Q"),), shared=0), max_tokens=8, stop=())
    long = GenerateRequest(prompt=Prompt(messages=(Message("user", "x" * 57),), shared=0), max_tokens=8, stop=())
    with pytest.raises(RequestError, match="57 tokens of prompt and 8 of answer exceed the context of 64") as caught:
        list(backend.generate([short, long]))
    assert caught.value.position == 1
    assert backend.meter.calls == 0


def test_the_context_is_no_longer_than_the_models_own(tiny_qwen2: Path) -> None:
    backend = load(tiny_qwen2, context_tokens=10**6)
    request = GenerateRequest(prompt=Prompt(messages=(Message("user", "x" * 8192),), shared=0), max_tokens=1, stop=())
    with pytest.raises(RequestError, match="exceed the context of 8192 tokens"):
        list(backend.generate([request]))


@pytest.mark.parametrize("options", [("BLOCK", ""), ()])
def test_options_without_text_are_refused(backend: TransformersBackend, options: tuple[str, ...]) -> None:
    with pytest.raises(RequestError, match="options are missing, or an option has no text"):
        list(backend.choose([choose(0, *options)]))


@pytest.mark.parametrize(("size", "bounds"), [(1, (16, 10.0)), (16, (16, 10.0)), (17, (64, 5.0)), (64, (64, 5.0))])
def test_the_journal_is_on_disk_after_at_most_a_batch(tiny_qwen2: Path, size: int, bounds: tuple[int, float]) -> None:
    backend = load(tiny_qwen2, batch_size=size)
    assert (backend.batch_calls, backend.batch_seconds) == bounds


@pytest.mark.parametrize("size", [0, 65])
def test_a_batch_size_out_of_bounds_is_refused(tiny_qwen2: Path, size: int) -> None:
    with pytest.raises(ConfigError, match=f"batch_size is {size}; it must lie between 1 and 64"):
        load(tiny_qwen2, batch_size=size)


def test_nf4_without_a_gpu_says_so_and_what_to_do(tiny_qwen2: Path) -> None:
    with pytest.raises(BackendError, match="nf4 needs a GPU, and the model would run on cpu; leave quantisation out"):
        load(tiny_qwen2, quantisation="nf4", device="cpu")


def test_a_gpu_that_is_not_there_is_told(tiny_qwen2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(BackendError, match='device is "cuda:1" and PyTorch sees no GPU here'):
        load(tiny_qwen2, device="cuda:1")


def test_nf4_without_bitsandbytes_names_the_extra(tiny_qwen2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setitem(__import__("sys").modules, "bitsandbytes", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'mragaudit\[nf4\]'"):
        load(tiny_qwen2, quantisation="nf4")


def test_files_that_transformers_cannot_load_are_a_backend_error(tiny_qwen2: Path, tmp_path: Path) -> None:
    for path in tiny_qwen2.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"cut short")
    with pytest.raises(BackendError, match="transformers cannot load"):
        load(tmp_path)


def test_a_checkpoint_that_lacks_weights_is_refused_not_filled_with_random_ones(
    tiny_qwen2: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - optional package

    for path in tiny_qwen2.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tiny_qwen2 / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BackendError, match=r"1 weights of the architecture are not in .*, lm_head\.weight among them"):
        load(tmp_path)


def test_code_that_comes_with_a_model_is_never_run(tiny_qwen2: Path, tmp_path: Path) -> None:
    for path in tiny_qwen2.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = (tmp_path / "config.json").read_text(encoding="utf-8")
    auto = '{"auto_map": {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"}, "model_type": "mine",'
    config = config.replace('"model_type": "qwen2"', '"was": "qwen2"').replace("{", auto, 1)
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    marker = tmp_path / "ran"
    (tmp_path / "mine.py").write_text(f"open({str(marker)!r}, 'w').close()", encoding="utf-8")
    with pytest.raises(BackendError, match="trust_remote_code"):
        load(tmp_path)
    assert not marker.exists()
