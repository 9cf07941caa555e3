from __future__ import annotations

import math

import numpy as np
import pytest

from mragaudit.errors import RequestError
from mragaudit.llm.base import AnswerText, check_prompt, grouped, log_softmax, longest_head, rounded_logprob
from mragaudit.protocols import Message, Prompt


def test_positions_with_equal_keys_come_together_in_order_of_first_appearance() -> None:
    assert grouped([("b", 1), ("a", 1), ("b", 2), ("c",), ("b", 1), ("a", 1)]) == [0, 4, 2, 1, 5, 3]


def test_log_softmax_of_equal_logits_is_the_log_of_their_share() -> None:
    assert log_softmax(np.array([7, 7, 7, 7], dtype=np.float32)).tolist() == pytest.approx([math.log(0.25)] * 4)


def test_log_softmax_survives_logits_that_overflow_when_exponentiated() -> None:
    assert log_softmax(np.array([1000, 0], dtype=np.float32)).tolist() == [0.0, -1000.0]


def test_rounded_logprobs_have_six_decimals_and_no_minus_zero() -> None:
    assert rounded_logprob(-1.23456789) == -1.234568
    assert math.copysign(1, rounded_logprob(-1e-9)) == 1.0


def test_an_answer_ends_before_a_stop_string_split_over_tokens() -> None:
    answer = AnswerText(["###"])
    assert not answer.add(b" yes #")
    assert not answer.add(b"#")
    assert answer.add(b"# more")
    assert answer.text() == "yes"


def test_the_earliest_of_several_stop_strings_counts() -> None:
    answer = AnswerText(["\n", ";"])
    assert answer.add(b"a;b\nc")
    assert answer.text() == "a"


def test_a_character_split_over_tokens_comes_out_whole() -> None:
    answer = AnswerText([])
    for byte in "漢é".encode():
        answer.add(bytes([byte]))
    assert answer.text() == "漢é"


def test_an_unfinished_last_character_is_left_out() -> None:
    answer = AnswerText([])
    answer.add("ab漢".encode()[:-1])
    assert answer.text() == "ab"


def test_the_longest_head_may_reach_into_the_next_token_when_its_parts_fuse() -> None:
    # One token per started pair of characters: "abc" counts 2, and so does "abcd".
    def count(text: str) -> int:
        return (len(text) + 1) // 2

    assert longest_head("abcdef", max_tokens=2, ends=[1, 3, 6], count=count) == "abcd"


def test_a_short_text_is_its_own_head_and_no_tokens_give_an_empty_one() -> None:
    assert longest_head("ab", max_tokens=2, ends=[1, 2], count=len) == "ab"
    assert longest_head("ab", max_tokens=0, ends=[1], count=len) == ""


@pytest.mark.parametrize(
    ("messages", "shared", "said"),
    [
        ((), 0, "the last message"),
        ((Message("assistant", "x"),), 0, "the last message"),
        ((Message("user", "x"),), 1, "shared is 1"),
        ((Message("user", "x"),), -1, "shared is -1"),
    ],
)
def test_a_prompt_that_no_model_can_continue_is_refused_with_its_position(
    messages: tuple[Message, ...], shared: int, said: str
) -> None:
    with pytest.raises(RequestError, match=said) as raised:
        check_prompt(Prompt(messages=messages, shared=shared), position=7)
    assert raised.value.position == 7
