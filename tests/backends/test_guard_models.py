"""Guard models of the published architectures, tiny and random, through the code that runs the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mragaudit.errors import BackendError, RequestError
from mragaudit.judges.guards import guard_verdict, load_guard
from mragaudit.llm.transformers_lm import TransformersBackend
from mragaudit.protocols import GenerateRequest, Message, Prompt

pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parents[2] / "resources" / "guards"
QUERY = "Nani anashughulikia tiketi QZ-4107-KB?"
NAMES = {
    "qwen3guard": "qwen3guard",
    "llama_guard_3": "llama_guard_3",
    "llama_guard_3_1b": "llama_guard_3",
    "llama_guard_4": "llama_guard_4",
}
"""Name of a tiny model → its guard file."""
TAIL = "<END CONVERSATION>\n\n"
CONVERSATIONS = {
    "qwen3guard": f"<BEGIN CONVERSATION>\n\nUSER: {QUERY}\n\n{TAIL}",
    "llama_guard_3": f"<BEGIN CONVERSATION>\n\nUser: {QUERY}\n\n{TAIL}",
    "llama_guard_3_1b": f"<BEGIN CONVERSATION>\n\nUser: {QUERY}\n\n{TAIL}",
    "llama_guard_4": f"<BEGIN CONVERSATION>\n\nUser: {QUERY}\n\n{TAIL}",
}
BEGINNINGS = {
    "qwen3guard": "<|im_start|>user\n# Task:",
    "llama_guard_3": "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nTask:",
    "llama_guard_3_1b": "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nTask:",
    "llama_guard_4": "<|begin_of_text|><|header_start|>user<|header_end|>\n\nTask:",
}
ENDINGS = {
    "qwen3guard": "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "llama_guard_3": "<|eot_id|><|start_header_id|>assistant<|end_header_id|>",
    "llama_guard_3_1b": "<|eot_id|><|start_header_id|>assistant<|end_header_id|>",
    "llama_guard_4": "<|eot|><|header_start|>assistant<|header_end|>",
}
"""What the documented formats have around the conversation."""


@pytest.fixture(scope="module", params=NAMES)
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersBackend]:
    from tiny_guards import make_guard  # noqa: PLC0415 - needs PyTorch

    folder = make_guard(tmp_path_factory.mktemp("guards") / request.param, request.param)
    made = TransformersBackend(model=str(folder), rendering="chat", context_tokens=2048, batch_size=4)
    yield made
    made.close()


def shown(query: str, *, name: str, context: str | None = None) -> Prompt:
    templates = load_guard(FOLDER, NAMES[name]).templates()
    if context is None:
        return templates.alone.prompt(query=query)
    return templates.with_context.prompt(query=query, context=context)


def test_a_query_stands_in_the_documented_format(backend: TransformersBackend) -> None:
    name = backend.identity.model
    text = backend._reader.plan(shown(QUERY, name=name), 0).text
    assert CONVERSATIONS[name] in text
    assert text.startswith(BEGINNINGS[name])
    assert text.endswith(ENDINGS[name])
    assert text.count(QUERY) == 1


def test_a_document_stands_before_the_query_in_the_users_turn(backend: TransformersBackend) -> None:
    name = backend.identity.model
    text = backend._reader.plan(shown(QUERY, name=name, context="Ticket QZ-4107-KB: A. Juma."), 0).text
    assert f"Ticket QZ-4107-KB: A. Juma.\n\n{QUERY}\n\n{TAIL}" in text


def test_the_special_tokens_of_the_format_are_single_tokens(backend: TransformersBackend) -> None:
    name = backend.identity.model
    plan = backend._reader.plan(shown(QUERY, name=name), 0)
    opening = BEGINNINGS[name].partition(">")[0] + ">"
    assert plan.tokens[0] == backend._loaded.tokenizer.convert_tokens_to_ids(opening)


def test_a_random_guards_replies_are_unparsed_and_alike_when_asked_again(backend: TransformersBackend) -> None:
    name = backend.identity.model
    guard = load_guard(FOLDER, NAMES[name])
    requests = [
        GenerateRequest(prompt=shown(f"{QUERY} {place}", name=name), max_tokens=12, stop=()) for place in range(6)
    ]
    replies = {position: answer.text for position, answer in backend.generate(requests)}
    assert sorted(replies) == list(range(6))
    assert {guard_verdict(guard, text, reading="strict") for text in replies.values()} == {"UNPARSED"}
    assert {position: answer.text for position, answer in backend.generate(requests)} == replies


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("llama")])
def test_a_system_message_is_refused_by_templates_that_want_a_user_first(name: str, tmp_path: Path) -> None:
    from tiny_guards import make_guard  # noqa: PLC0415 - needs PyTorch

    backend = TransformersBackend(model=str(make_guard(tmp_path / name, name)), rendering="chat")
    prompt = Prompt(messages=(Message("system", "Judge."), Message("user", QUERY)), shared=1)
    with pytest.raises(RequestError, match="chat template refuses it: roles must alternate"):
        list(backend.generate([GenerateRequest(prompt=prompt, max_tokens=4, stop=())]))


def test_a_template_that_shows_no_query_at_all_is_refused_at_loading(tmp_path: Path) -> None:
    from tiny_guards import make_guard  # noqa: PLC0415 - needs PyTorch

    folder = make_guard(tmp_path / "mute", "llama_guard_3")
    (folder / "chat_template.jinja").write_text("Is it safe?", encoding="utf-8")
    with pytest.raises(BackendError, match="chat template cannot be used: it leaves out what the user says"):
        TransformersBackend(model=str(folder), rendering="chat")


def test_llama_guard_4_answers_text_as_the_whole_multimodal_model_does(tmp_path: Path) -> None:
    """Only its language half is loaded; the tokens are those of the whole model, evaluated anew for each."""
    import torch  # noqa: PLC0415 - optional package
    from tiny_guards import make_guard  # noqa: PLC0415 - needs PyTorch
    from transformers import Llama4ForConditionalGeneration  # noqa: PLC0415 - optional package

    folder = make_guard(tmp_path / "llama_guard_4", "llama_guard_4")
    backend = TransformersBackend(model=str(folder), rendering="chat", dtype="float32")
    request = GenerateRequest(prompt=shown(QUERY, name="llama_guard_4"), max_tokens=8, stop=())
    [(_, answer)] = backend.generate([request])
    whole = Llama4ForConditionalGeneration.from_pretrained(folder, dtype="float32").eval()
    tokens = list(backend._reader.plan(request.prompt, 0).tokens)
    start = len(tokens)
    for _ in range(answer.completion_tokens):
        with torch.inference_mode():
            tokens.append(int(whole(input_ids=torch.tensor([tokens])).logits[0, -1].argmax()))
    drawn = [token for token in tokens[start:] if token not in backend._loaded.ends]
    assert backend._loaded.tokenizer.decode(drawn).rstrip("\ufffd").strip() == answer.text
