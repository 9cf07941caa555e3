from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from mragaudit.llm.scripted import ScriptedBackend
from mragaudit.protocols import ChooseRequest, Completion, Failure, GenerateRequest, Message, OptionScores, Prompt

TRANSLATION = "English: What is the phone number: of\nCLAIM-2019?\nGerman:"


def prompt(turn: str) -> Prompt:
    return Prompt(messages=(Message("system", "Rules."), Message("user", turn)), shared=1)


def answers(backend: ScriptedBackend, *turns: str) -> list[Completion | Failure]:
    requests = [GenerateRequest(prompt=prompt(turn), max_tokens=4, stop=("\n",)) for turn in turns]
    return [answer for _, answer in backend.generate(requests)]


def texts(backend: ScriptedBackend, *turns: str) -> list[str]:
    found = answers(backend, *turns)
    return [answer.text for answer in found if isinstance(answer, Completion)]


def margin(backend: ScriptedBackend, turn: str) -> float:
    request = ChooseRequest(prompt=prompt(turn), options=("BLOCK", "ALLOW"))
    [(_, scores)] = backend.choose([request])
    assert isinstance(scores, OptionScores)
    return scores.logprobs[0] - scores.logprobs[1]


def test_echo_repeats_the_whole_last_turn_whatever_the_limits() -> None:
    turn = "Record: one two three\nfour five six\nQuestion: x\nAnswer:"
    assert texts(ScriptedBackend(model="echo"), turn) == [turn]


def test_blind_answers_alike_whatever_it_is_shown() -> None:
    assert len(set(texts(ScriptedBackend(model="blind"), "a", "b", "Record: 555-0100"))) == 1


def test_the_identity_translator_returns_the_text_to_translate_with_its_colons_and_lines() -> None:
    backend = ScriptedBackend(model="identity_translator")
    assert texts(backend, TRANSLATION) == ["What is the phone number: of\nCLAIM-2019?"]


@pytest.mark.parametrize(("model", "sign"), [("always_block", 1), ("always_allow", -1)])
def test_constant_judges_are_sure_by_two_nats(model: str, sign: int) -> None:
    assert margin(ScriptedBackend(model=model), "Query: anything\nVerdict:") == pytest.approx(2 * sign)


def test_the_lexical_judge_reads_the_query_and_not_the_document_before_it() -> None:
    backend = ScriptedBackend(model="lexical")
    assert margin(backend, "Record: her phone is 555-0100\nQuery: opening hours?\nVerdict:") == pytest.approx(-2)
    assert margin(backend, "Record: opening hours\nQuery: the phone number?\nVerdict:") == pytest.approx(2)


def test_canned_answers_go_before_the_rule() -> None:
    backend = ScriptedBackend(model="blind", answers={"CLAIM-1": "Berlin"})
    assert texts(backend, "Where is CLAIM-1?") == ["Berlin"]


def test_canned_answers_are_part_of_the_identity() -> None:
    plain, canned = ScriptedBackend(model="blind"), ScriptedBackend(model="blind", answers={"a": "b"})
    assert plain.identity != canned.identity


def test_the_first_calls_and_those_with_a_given_text_are_lost() -> None:
    backend = ScriptedBackend(model="blind", fail_first=1, fail_on="poison")
    lost = [isinstance(answer, Failure) for answer in answers(backend, "a", "b", "poison", "c")]
    assert lost == [True, False, True, False]


def test_each_call_is_written_to_the_count_file_before_it_is_answered(tmp_path: Path) -> None:
    counts = tmp_path / "calls"
    backend = ScriptedBackend(model="blind", count_file=str(counts))
    running = backend.generate([GenerateRequest(prompt=prompt(turn), max_tokens=1, stop=()) for turn in ("a", "b")])
    next(running)
    expected = [hashlib.sha256(msgspec.json.encode(prompt(turn))).hexdigest() for turn in ("a", "b")]
    assert counts.read_text().splitlines() == expected[:1]
    next(running)
    assert counts.read_text().splitlines() == expected


def test_the_time_it_sleeps_is_inside_the_meter() -> None:
    backend = ScriptedBackend(model="blind", sleep_seconds=0.05)
    answers(backend, "a", "b", "c")
    assert backend.meter.calls == 3
    assert backend.meter.seconds >= 0.15
