from __future__ import annotations

from collections.abc import Sequence

import pytest

from mragaudit.llm.rendering import Turn, render_chat, render_completion, takes_parts, turns_of
from mragaudit.protocols import Message, Prompt

TURNS = (
    Message("system", "Rules."),
    Message("user", "Q: a\nA:"),
    Message("assistant", "1"),
    Message("user", "Q: b\nA:"),
)


def simple_template(messages: Sequence[Message], opened: bool) -> str:
    return "".join(f"<{turn.speaker}>{turn.content}" for turn in messages) + ("<assistant>" if opened else "")


def refusing_template(messages: Sequence[Message], opened: bool) -> str:
    if not opened:
        raise ValueError("the last turn must be the user's")
    return simple_template(messages, opened)


def test_completion_rendering_is_one_document_cut_after_the_shared_messages() -> None:
    rendered = render_completion(Prompt(messages=TURNS, shared=3))
    assert rendered.shared == "Rules.\n\nQ: a\nA: 1\n\n"
    assert rendered.rest == "Q: b\nA:"


def test_the_whole_document_does_not_depend_on_where_it_is_cut() -> None:
    wholes = set()
    for shared in range(4):
        rendered = render_completion(Prompt(messages=TURNS, shared=shared))
        wholes.add(rendered.shared + rendered.rest)
    assert wholes == {"Rules.\n\nQ: a\nA: 1\n\nQ: b\nA:"}


def test_an_unanswered_user_turn_in_the_middle_ends_with_an_empty_line() -> None:
    prompt = Prompt(messages=(Message("user", "one"), Message("user", "two")), shared=0)
    assert render_completion(prompt).rest == "one\n\ntwo"


def test_chat_rendering_shares_the_head_that_the_template_renders_alike() -> None:
    rendered = render_chat(Prompt(messages=TURNS, shared=3), template=simple_template)
    assert rendered.shared == "<system>Rules.<user>Q: a\nA:<assistant>1"
    assert rendered.rest == "<user>Q: b\nA:<assistant>"


def test_chat_rendering_shares_nothing_when_the_template_refuses_the_head() -> None:
    rendered = render_chat(Prompt(messages=TURNS, shared=3), template=refusing_template)
    assert rendered.shared == ""
    assert rendered.rest == simple_template(TURNS, True)


def test_chat_rendering_shares_nothing_when_the_head_is_rendered_otherwise_within_the_whole() -> None:
    def numbered(messages: Sequence[Message], opened: bool) -> str:
        return f"{len(messages)}:" + simple_template(messages, opened)

    assert render_chat(Prompt(messages=TURNS, shared=1), template=numbered).shared == ""


def test_a_template_that_refuses_the_whole_prompt_is_an_error() -> None:
    def never(_messages: Sequence[Message], _opened: bool) -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        render_chat(Prompt(messages=TURNS, shared=0), template=never)


def test_the_head_of_the_last_turn_is_cut_from_the_rest() -> None:
    messages = (Message("system", "Rules."), Message("user", "Doc: x\nQ: a\nA:"))
    rendered = render_completion(Prompt(messages=messages, shared=1, head=len("Doc: x")))
    assert (rendered.shared, rendered.head, rendered.rest) == ("Rules.\n\n", "Doc: x", "\nQ: a\nA:")


def parts_template(turns: Sequence[Turn]) -> str:
    """As templates of models that also take images: a plain text has no parts and is left out."""
    parts = [part for turn in turns for part in turn["content"] if isinstance(part, dict)]  # type: ignore[attr-defined]
    return "".join(f"User: {part['text']}\n" for part in parts)


def test_a_template_that_leaves_a_plain_text_out_is_given_parts() -> None:
    assert takes_parts(parts_template)
    assert parts_template(turns_of(TURNS[1:2], parts=True)) == "User: Q: a\nA:\n"
    assert parts_template(turns_of(TURNS[1:2], parts=False)) == ""


def test_a_template_that_shows_a_plain_text_is_given_texts() -> None:
    assert not takes_parts(lambda turns: "".join(str(turn["content"]) for turn in turns))
    assert turns_of(TURNS[:1], parts=False) == [{"role": "system", "content": "Rules."}]


def test_a_template_that_shows_no_text_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="it leaves out what the user says"):
        takes_parts(lambda _turns: "Is it safe?")
