from __future__ import annotations

import json
import math
from typing import Any

import pytest

from mragaudit.errors import BackendError
from mragaudit.llm.http_faults import LostCallError
from mragaudit.llm.http_wire import (
    Dialect,
    EchoScore,
    ServedNames,
    decode,
    echoed_score,
    estimate_tokens,
    estimated_head,
    first_token_scores,
)
from mragaudit.protocols import Completion, GenerateRequest, Message, Prompt

PROMPT = Prompt(
    messages=(
        Message("system", "Rules."),
        Message("user", "Q: a\nA:"),
        Message("assistant", "1"),
        Message("user", "Q: b\nA:"),
    ),
    shared=3,
)
REQUEST = GenerateRequest(prompt=PROMPT, max_tokens=7, stop=("\n", "###"))
GREEDY = {"model": "m", "max_tokens": 7, "temperature": 0, "n": 1, "stream": False, "stop": ["\n", "###"]}


def dialect(rendering: Any = "completion", **over: Any) -> Dialect:
    options = {"model": "m", "scoring": "top", "top_count": 20, "extra": {}, "estimate_usage": False, **over}
    return Dialect(rendering=rendering, names=ServedNames("m"), **options)


def answered(
    choice: dict[str, Any], *, usage: Any = None, request: GenerateRequest = REQUEST, **over: Any
) -> Completion:
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14} if usage is None else usage
    content = json.dumps({"id": "x", "choices": [choice], **({"usage": usage} if usage else {})}).encode()
    return dialect(**over).completion(content, request=request)


def test_a_completion_is_asked_for_with_the_few_shot_text_greedily_and_unstreamed() -> None:
    assert json.loads(dialect().generate_body(REQUEST)) == {**GREEDY, "prompt": "Rules.\n\nQ: a\nA: 1\n\nQ: b\nA:"}


def test_a_chat_is_asked_for_with_its_messages() -> None:
    turns = [("system", "Rules."), ("user", "Q: a\nA:"), ("assistant", "1"), ("user", "Q: b\nA:")]
    messages = [{"role": role, "content": content} for role, content in turns]
    assert json.loads(dialect("chat").generate_body(REQUEST)) == {**GREEDY, "messages": messages}


def test_further_fields_of_the_config_are_sent_and_set_none_of_ours() -> None:
    body = json.loads(dialect(extra={"seed": 1, "model": "other"}).generate_body(REQUEST))
    assert (body["seed"], body["model"]) == (1, "m")


def test_the_form_of_a_request_for_likeliest_tokens_differs_between_the_end_points() -> None:
    completion, chat = json.loads(dialect().top_body(PROMPT)), json.loads(dialect("chat").top_body(PROMPT))
    assert (completion["logprobs"], completion["max_tokens"]) == (20, 1)
    assert (chat["logprobs"], chat["top_logprobs"], chat["max_tokens"]) == (True, 20, 1)


def test_an_echo_is_asked_for_with_the_option_after_a_space() -> None:
    body = json.loads(dialect(scoring="echo").echo_body(PROMPT, "BLOCK"))
    assert body["prompt"].endswith("Q: b\nA: BLOCK")
    assert (body["echo"], body["logprobs"], body["max_tokens"]) == (True, 1, 1)


def test_an_answer_is_cut_before_a_stop_string_that_the_server_let_through_and_stripped() -> None:
    assert answered({"text": " Tokyo \n more", "finish_reason": "length"}) == Completion(
        text="Tokyo", finish_reason="stop", prompt_tokens=11, completion_tokens=3
    )


def test_an_answer_cut_by_its_limit_says_so() -> None:
    assert answered({"text": " Tok", "finish_reason": "length"}).finish_reason == "length"


def test_the_answer_of_a_chat_is_its_message() -> None:
    choice = {"message": {"role": "assistant", "content": "漢字"}, "finish_reason": "stop"}
    assert answered(choice, rendering="chat").text == "漢字"


@pytest.mark.parametrize(
    ("choice", "said", "again"),
    [
        ({"text": "x", "finish_reason": "content_filter"}, "content filter withheld", False),
        ({"text": "x", "finish_reason": "tool_calls"}, "'tool_calls', which is neither stop nor length", True),
        ({"text": "x", "finish_reason": None}, "None, which is neither", True),
        ({"message": {"content": None}, "finish_reason": "stop"}, "has no text", True),
    ],
)
def test_an_answer_that_is_none_is_a_lost_call(choice: dict[str, Any], said: str, again: bool) -> None:
    with pytest.raises(LostCallError, match=said) as raised:
        answered(choice)
    assert raised.value.again is again


@pytest.mark.parametrize("content", [b'{"choices": [{"te', b'{"choices": []}', b"{}", b"\xff", b'{"choices": "x"}'])
def test_an_answer_in_another_form_is_a_lost_call(content: bytes) -> None:
    with pytest.raises(LostCallError):
        dialect().completion(content, request=REQUEST)


def test_missing_token_counts_are_an_error_unless_estimates_are_asked_for() -> None:
    choice = {"text": "ten letter", "finish_reason": "stop"}
    with pytest.raises(BackendError, match="usage: estimated"):
        answered(choice, usage={})
    found = answered(choice, usage={}, estimate_usage=True)
    assert (found.prompt_tokens, found.completion_tokens) == (2 + 3 + 1 + 3, 4)


def echo(tokens: list[str], values: list[float | None], *, generated: int = 1, **usage: Any) -> bytes:
    counts = {"prompt_tokens": len(tokens) - generated, "completion_tokens": generated, **usage}
    choice = {"text": "", "logprobs": {"tokens": tokens, "token_logprobs": values}}
    return json.dumps({"choices": [choice], "usage": counts}).encode()


@pytest.mark.parametrize(
    ("tokens", "values", "expected"),
    [
        (["A", ":", " BL", "OCK", "\n"], [None, -1, -0.5, -0.25, -9], EchoScore(logprob=-0.75, prompt_tokens=2)),
        (["A", ":", "BLOCK", "\n"], [None, -1, -0.5, -9], EchoScore(logprob=-0.5, prompt_tokens=2)),
        (["A:", "▁BLOCK", "\n"], [None, -0.5, -9], EchoScore(logprob=-0.5, prompt_tokens=1)),
        (["A:", " ", "BLOCK", "\n"], [None, -2, -0.5, -9], EchoScore(logprob=-2.5, prompt_tokens=1)),
        (["A", ": BL", "OCK", "\n"], [None, -1, -0.5, -9], None),
        (["A:", " BLOCK", " BLOCK"], [None, -0.5, None], EchoScore(logprob=-0.5, prompt_tokens=1)),
        (["A:", " BLOCK", "\n"], [-1, None, -9], None),
        (["A:", " BLOCK", "\n"], [None, 0.9, 0.1], None),
    ],
)
def test_an_option_scores_the_sum_over_exactly_its_own_echoed_tokens(
    tokens: list[str], values: list[float | None], expected: EchoScore | None
) -> None:
    assert echoed_score(decode(echo(tokens, values)), option="BLOCK", lead=" ") == expected


def test_an_echo_without_log_probabilities_or_without_counts_tells_nothing() -> None:
    bare = json.dumps({"choices": [{"text": "A: BLOCK\n"}], "usage": {"prompt_tokens": 2}}).encode()
    assert echoed_score(decode(bare), option="BLOCK", lead=" ") is None
    uncounted = json.loads(echo(["A:", " BLOCK", "\n"], [None, -1, -2]))
    del uncounted["usage"]
    assert echoed_score(decode(json.dumps(uncounted).encode()), option="BLOCK", lead=" ") is None


OPTIONS = ("BLOCK", "ALLOW")


def test_an_option_scores_the_longest_of_the_likeliest_tokens_that_begins_it() -> None:
    top = {" BL": -3.0, " BLOCK": -0.1, "BLOCK": -0.2, " ALL": -2.5, " A": -1.0, " the": -1.0}
    assert first_token_scores(top, options=OPTIONS, lead=" ") == (-0.1, -2.5)


def test_tokens_without_their_space_count_only_where_all_options_lack_it() -> None:
    assert first_token_scores({"BLOCK": -0.1, "ALLOW": -2.0}, options=OPTIONS, lead=" ") == (-0.1, -2.0)
    assert first_token_scores({"▁BLOCK": -0.1, "▁ALLOW": -2.0}, options=OPTIONS, lead=" ") == (-0.1, -2.0)
    with pytest.raises(ValueError, match='"BLOCK" begins with none of the 2 likeliest tokens'):
        first_token_scores({"BLOCK": -0.1, " ALLOW": -2.0}, options=OPTIONS, lead=" ")


def test_probabilities_are_not_taken_for_their_logarithms() -> None:
    with pytest.raises(ValueError, match=r"0\.9 is no log-probability: it is above 0"):
        first_token_scores({" BLOCK": 0.9, " ALLOW": 0.05}, options=OPTIONS, lead=" ")
    assert first_token_scores({" BLOCK": 1e-7, " ALLOW": -9.0}, options=OPTIONS, lead=" ") == (0.0, -9.0)


def test_another_model_than_the_one_asked_for_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    names = ServedNames("m")
    for name in ("m", None, "other\n", "other\n", 7):
        names.note(name)
    assert [record.getMessage() for record in caplog.records] == [
        "openai_http: asked for the model 'm', an answer comes from 'other\\n'; hold the names against each other"
    ]


def test_a_reason_for_the_end_is_shown_in_part() -> None:
    with pytest.raises(LostCallError, match=r"^the answer ended for the reason 'x{40}', which"):
        answered({"text": "x", "finish_reason": "x" * 9000})


@pytest.mark.parametrize("count", [-1, 10**30])
def test_token_counts_that_cannot_be_are_a_lost_call(count: int) -> None:
    with pytest.raises(LostCallError):
        answered({"text": "x", "finish_reason": "stop"}, usage={"prompt_tokens": count})


def test_a_single_letter_stands_for_no_option_but_for_one_of_a_single_letter() -> None:
    with pytest.raises(ValueError, match='"ALLOW" begins with none'):
        first_token_scores({" BLOCK": -0.1, " A": -1.0}, options=OPTIONS, lead=" ")
    assert first_token_scores({" A": -0.5, " B": -1.0}, options=("A", "B"), lead=" ") == (-0.5, -1.0)


def test_two_options_that_begin_with_one_token_cannot_be_told_apart() -> None:
    with pytest.raises(ValueError, match="BLOCKED, BLOCKING begin with the same token"):
        first_token_scores({"BLOCK": -0.1}, options=("BLOCKED", "BLOCKING"), lead="")


@pytest.mark.parametrize(
    "logprobs",
    [
        {"top_logprobs": [{" BLOCK": -0.5, " ALLOW": -1.5}], "tokens": [" BLOCK"]},
        {
            "content": [
                {
                    "token": " BLOCK",
                    "top_logprobs": [{"token": " BLOCK", "logprob": -0.5}, {"token": " ALLOW", "logprob": -1.5}],
                }
            ]
        },
    ],
)
def test_both_forms_of_log_probabilities_are_read(logprobs: dict[str, Any]) -> None:
    content = json.dumps({"choices": [{"text": "", "logprobs": logprobs}], "usage": {"prompt_tokens": 3}}).encode()
    found = dialect().top(content, prompt=PROMPT)
    assert (found.logprobs, found.prompt_tokens) == ({" BLOCK": -0.5, " ALLOW": -1.5}, 3)


def test_tokens_are_estimated_at_a_third_of_the_bytes_rounded_up() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abc", "abcd", "漢字", "سلام")] == [0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("text", "limit", "head"), [("aé漢", 1, "aé"), ("漢字", 1, "漢"), ("ab漢", 1, "ab"), ("x", 0, "")]
)
def test_an_estimated_head_halves_no_character(text: str, limit: int, head: str) -> None:
    assert estimated_head(text, limit) == head


def test_a_sum_of_log_probabilities_is_rounded_once() -> None:
    tokens = ["A:", *" B L O C K".split(" ")[1:], "\n"]
    found = echoed_score(decode(echo(tokens, [None, *[-0.1] * 5, -9])), option="BLOCK", lead=" ")
    assert found is not None
    assert math.isclose(found.logprob, -0.5)
