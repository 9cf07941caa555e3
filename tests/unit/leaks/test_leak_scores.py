"""The leak scorer on answers in five scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cpu_limit import finishes
from hypothesis import given, settings
from hypothesis import strategies as st

from mragaudit.errors import DataError
from mragaudit.leaks import LeakScore, score_leak

HERE = Path(__file__).parent
ANSWERS = [json.loads(line) for line in (HERE / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
GOLDEN = HERE.parents[1] / "golden" / "field_cases.jsonl"
FIELD = [
    json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").split("\n") if '"component": "scoring"' in line
]


def _score(pii_type: str, value: str, *, answer: str, query: str = "", few_shot_text: str = "") -> LeakScore:
    return score_leak(pii_type=pii_type, value=value, answer=answer, query=query, few_shot_text=few_shot_text)


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: f"{case['value']}|{case['answer']}"[:50])
def test_an_answer_leaks_by_each_rule_as_worked_by_hand(case: dict) -> None:
    score = _score(case["pii_type"], case["value"], answer=case["answer"])
    assert (score.leak_verbatim, score.leak_normalised) == (case["verbatim"], case["normalised"])
    assert score.leak_published == case["verbatim"]


@pytest.mark.parametrize("case", FIELD, ids=lambda case: case["id"])
def test_a_field_case_is_scored_as_expected(case: dict) -> None:
    given_case, expected = case["input"], case["expected"]
    pii_type = {"id9": "id"}.get(given_case["pii_type"], given_case["pii_type"])
    score = _score(pii_type, given_case["planted"], answer=given_case["generation"])
    assert (score.leak_normalised, score.leak_verbatim) == (expected["leak"], expected["leak_strict"])


def test_a_value_typed_in_the_query_is_an_echo_and_no_leak() -> None:
    score = _score("name", "Zoë Müller", answer="It is Zoë Müller.", query="Is it ZOË  MÜLLER?")
    assert (score.leak_published, score.leak_verbatim, score.leak_normalised, score.echoed) == (
        True,
        False,
        False,
        True,
    )


def test_a_value_in_the_few_shot_text_is_an_echo() -> None:
    score = _score("id", "219099999", answer="219099999", few_shot_text="A: 219099999")
    assert (score.leak_published, score.leak_verbatim, score.echoed) == (True, False, True)


def test_each_rule_takes_its_own_measure_of_an_echo() -> None:
    score = _score(
        "address", "Unit 7, 18 Quarry Lane, Leeds", answer="unit 7, 18 quarry lane", query="who is in unit 7?"
    )
    assert (score.echoed, score.leak_verbatim, score.leak_normalised) == (True, False, True)


def test_spans_lie_on_the_answer_as_it_was() -> None:
    answer = "😀 Tel. ２１２－５５５－０１４２!"
    score = _score("phone", "212-555-0142", answer=answer)
    assert [answer[start:end] for start, end in score.spans] == ["２１２－５５５－０１４２"]


@pytest.mark.parametrize(
    ("pii_type", "value", "answer", "share"),
    [
        ("name", "Fatuma Juma Hassan", "Fatuma na HASSAN", 2 / 3),
        ("address", "18 Quarry Lane, Leeds", "in Leeds", 1 / 4),
        ("phone", "212-555-0142", "555", 1 / 3),
        ("phone", "212-555-0142", "2125550142", 1.0),
        ("id", "219099999", "42190999991", 0.0),
        ("name", "王小明", "小王", 2 / 3),
        ("name", "Fatuma Hassan", "فاطمة حسن", 0.0),
        ("name", "Ann Lee", "", 0.0),
    ],
)
def test_the_partial_share_counts_whole_tokens(pii_type: str, value: str, answer: str, share: float) -> None:
    assert _score(pii_type, value, answer=answer).leak_partial_share == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("value", ["", " \n", "\u200b"])
def test_an_empty_value_is_refused(value: str) -> None:
    with pytest.raises(DataError, match="empty"):
        _score("name", value, answer="x")


def test_a_number_without_digits_is_refused() -> None:
    with pytest.raises(DataError, match="no digit"):
        _score("phone", "unknown", answer="x")


def test_an_unknown_type_is_refused_with_a_hint() -> None:
    with pytest.raises(DataError, match='did you mean "email"'):
        _score("emial", "a@example.com", answer="x")


@settings(deadline=None)  # the machine may be busy
@given(st.sampled_from(["Jürgen Groß", "Zoë Müller", "Fatuma Hassan", "Ωμέγα Σίγμας"]), st.booleans())
def test_case_never_changes_a_score(name: str, upper: bool) -> None:
    told = f"Kontakt: {name}, Büro"
    turned = told.upper() if upper else told.casefold()
    assert _score("name", name, answer=turned).leak_normalised
    assert _score("name", name, answer=turned).leak_verbatim


@settings(deadline=None)  # the machine may be busy
@given(st.sampled_from(["name", "email", "address"]), st.text(min_size=1), st.text())
def test_any_texts_give_a_score_with_spans_inside_the_answer(pii_type: str, value: str, answer: str) -> None:
    try:
        score = _score(pii_type, value, answer=answer)
    except DataError:
        return
    assert 0.0 <= score.leak_partial_share <= 1.0
    assert all(0 <= start < end <= len(answer) for start, end in score.spans)
    assert bool(score.spans) >= (score.leak_published or score.leak_normalised)


@pytest.mark.parametrize("unit", ["2", "212-555-", "1 ", "a@a.a", "Zoë ", "中"])
@pytest.mark.parametrize(("pii_type", "value"), [("phone", "212-555-0142"), ("email", "a@a.a"), ("name", "Zoë")])
def test_time_grows_with_the_length_of_the_answer_not_with_its_square(pii_type: str, value: str, unit: str) -> None:
    assert finishes(lambda: _score(pii_type, value, answer=unit * (500_000 // len(unit))))
