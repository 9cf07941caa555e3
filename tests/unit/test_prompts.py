"""Templates are checked when read, and what is put into them stays text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mragaudit.errors import ConfigError, DataError
from mragaudit.prompts import load_generator, load_judge, load_template
from mragaudit.protocols import Message

TRANSLATOR = {
    "system": "Translate into German.\n",
    "turn": "English: {source}\nGerman:",
    "shots": [{"source": "Good day", "answer": "Guten Tag"}],
    "stop": ["\n"],
}
GENERATOR = {
    "system": "Answer.",
    "turn": "{context}\nQuestion: {question}\nAnswer:",
    "document": "Document: {text}",
    "shots": [{"documents": ["The  sky\nis blue."], "question": "Which colour?", "answer": "blue"}],
}
JUDGE = {
    "system": "Judge.",
    "turn": "Query: {query}\nVerdict:",
    "shots": [{"query": "Who?", "answer": "BLOCK"}],
    "context_turn": "Document: {context}\nQuery: {query}\nVerdict:",
    "context_shots": [{"context": "Text.", "query": "Who?", "answer": "BLOCK"}],
}


def _write(folder: Path, role: str, content: Any) -> Path:
    path = folder / role / "de.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def test_a_template_becomes_messages_with_its_examples_shared(tmp_path: Path) -> None:
    _write(tmp_path, "translator", TRANSLATOR)
    prompt = load_template(tmp_path, "translator", "de").prompt(source="Hello")
    assert prompt.messages == (
        Message("system", "Translate into German."),
        Message("user", "English: Good day\nGerman:"),
        Message("assistant", "Guten Tag"),
        Message("user", "English: Hello\nGerman:"),
    )
    assert (prompt.shared, prompt.head) == (3, 0)


@pytest.mark.parametrize("text", ["{{7*7}}", "{source}", "{", "}", "{0}", "%s {context!r}", "{source.__class__}"])
def test_braces_in_a_value_stay_text(text: str, tmp_path: Path) -> None:
    _write(tmp_path, "translator", TRANSLATOR)
    prompt = load_template(tmp_path, "translator", "de").prompt(source=text)
    assert prompt.messages[-1].content == f"English: {text}\nGerman:"


def test_braces_in_a_document_stay_text(tmp_path: Path) -> None:
    _write(tmp_path, "generator", GENERATOR)
    loaded = load_generator(tmp_path, "de")
    context = loaded.context(["a {question} {{7*7}}"])
    prompt = loaded.template.prompt(context=context, question="{context}")
    assert prompt.messages[-1].content == "Document: a {question} {{7*7}}\nQuestion: {context}\nAnswer:"


def test_the_documents_of_a_prompt_are_its_reusable_head(tmp_path: Path) -> None:
    _write(tmp_path, "generator", GENERATOR)
    loaded = load_generator(tmp_path, "de")
    prompt = loaded.template.prompt(context=loaded.context(["One\n two.", "Three."]), question="Q")
    assert prompt.messages[-1].content[: prompt.head] == "Document: One two.\nDocument: Three."


def test_documents_of_an_example_look_like_those_of_a_call(tmp_path: Path) -> None:
    _write(tmp_path, "generator", GENERATOR)
    loaded = load_generator(tmp_path, "de").template
    assert loaded.prompt(context="C", question="Q").messages[1].content == (
        "Document: The sky is blue.\nQuestion: Which colour?\nAnswer:"
    )
    assert set(loaded.few_shot_text().split("\n")) == {"Which colour?", "blue", "Document: The sky is blue."}


def test_a_query_before_the_documents_leaves_no_reusable_head(tmp_path: Path) -> None:
    _write(tmp_path, "generator", {**GENERATOR, "turn": "Question: {question}\n{context}\nAnswer:"})
    assert load_generator(tmp_path, "de").template.prompt(context="C", question="Q").head == 0


def test_the_judge_has_a_template_with_and_one_without_documents(tmp_path: Path) -> None:
    _write(tmp_path, "judge", JUDGE)
    loaded = load_judge(tmp_path, "de")
    assert loaded.alone.prompt(query="Q").messages[-1].content == "Query: Q\nVerdict:"
    shown = loaded.with_context.prompt(query="Q", context="C")
    assert shown.messages[-1].content == "Document: C\nQuery: Q\nVerdict:"
    assert shown.messages[0].content == "Judge."


def test_a_missing_file_says_what_to_add_or_to_take_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_template(tmp_path, "translator", "fr")
    assert str(caught.value) == (
        f"{tmp_path / 'translator' / 'fr.yaml'}: this prompt file is missing; add it, "
        "or take the language out of `languages`"
    )


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ("English: {sauce}\nGerman:", "a turn has the placeholders ['sauce']; it needs exactly ['source']"),
        ("English: {source} {query}", "a turn has the placeholders ['query', 'source']; it needs exactly ['source']"),
        ("English:", "a turn has the placeholders []; it needs exactly ['source']"),
        ("English: {source", "write braces that are text as {{ and }}"),
    ],
)
def test_wrong_placeholders_are_named_with_the_right_ones(turn: str, message: str, tmp_path: Path) -> None:
    path = _write(tmp_path, "translator", {**TRANSLATOR, "turn": turn})
    with pytest.raises(DataError) as caught:
        load_template(tmp_path, "translator", "de")
    assert str(caught.value).startswith(f"{path}: a turn")
    assert message in str(caught.value)


def test_an_example_that_does_not_fit_is_named_by_number(tmp_path: Path) -> None:
    shots = [TRANSLATOR["shots"][0], {"source": "x"}]  # type: ignore[index]
    path = _write(tmp_path, "translator", {**TRANSLATOR, "shots": shots})
    with pytest.raises(DataError) as caught:
        load_template(tmp_path, "translator", "de")
    assert str(caught.value) == f"{path}: example 2 has ['source']; it needs ['answer', 'source']"


@pytest.mark.parametrize(
    "content",
    [
        {**TRANSLATOR, "shoots": []},
        {**TRANSLATOR, "turn": 7},
        {"system": "x"},
        "just text",
        "a: [unclosed",
    ],
)
def test_a_file_of_another_shape_is_named(content: Any, tmp_path: Path) -> None:
    path = _write(tmp_path, "translator", content)
    with pytest.raises(DataError, match=f"^{path}: "):
        load_template(tmp_path, "translator", "de")


def test_a_judge_without_a_turn_for_documents_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, "judge", {name: JUDGE[name] for name in ("system", "turn", "shots")})
    with pytest.raises(DataError, match='"context_turn" is missing'):
        load_judge(tmp_path, "de")


def test_a_generator_without_the_shape_of_a_document_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, "generator", {name: GENERATOR[name] for name in ("system", "turn", "shots")})
    with pytest.raises(DataError, match='"document" is missing'):
        load_generator(tmp_path, "de")
