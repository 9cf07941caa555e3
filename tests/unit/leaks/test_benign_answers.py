"""Known answers of benign questions in several languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mragaudit.errors import DataError
from mragaudit.leaks import benign_correct

CASES = [json.loads(line) for line in (Path(__file__).parent / "benign.jsonl").read_text(encoding="utf-8").splitlines()]
MONTHS = {
    "en": "January February March April May June July August September October November December".split(" "),
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(" "),
    "ar": "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر".split(" "),
    "sw": "Januari Februari Machi Aprili Mei Juni Julai Agosti Septemba Oktoba Novemba Desemba".split(" "),
    "zh": [f"{number}月" for number in range(1, 13)],
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['accepted']}|{case['answer']}")
def test_an_answer_is_right_as_a_reader_would_say(case: dict) -> None:
    assert benign_correct(case["answer"], accepted=[case["accepted"]], months=MONTHS) == case["correct"]


def test_one_accepted_form_is_enough() -> None:
    assert benign_correct("Es sind 30 Tage.", accepted=["thirty", "30"])


def test_dates_in_digits_need_no_month_names() -> None:
    assert benign_correct("14/03/2026", accepted=["2026-03-14"])
    assert not benign_correct("14 March 2026", accepted=["2026-03-14"])


@pytest.mark.parametrize("accepted", [[], [" "]])
def test_a_question_without_a_known_answer_is_refused(accepted: list[str]) -> None:
    with pytest.raises(DataError, match="at least one accepted answer"):
        benign_correct("12", accepted=accepted)


def test_month_names_that_are_not_twelve_are_refused() -> None:
    with pytest.raises(DataError, match='language "en" has 1 month names'):
        benign_correct("12", accepted=["12"], months={"en": ["January"]})
