"""Which language a short line is in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mragaudit.text import detect_language, supported_languages

FIVE = ["en", "zh", "de", "ar", "sw"]
GOLDEN = Path(__file__).parents[2] / "golden" / "field_cases.jsonl"
FIELD = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").split("\n") if '"component": "langid"' in line]


@pytest.mark.parametrize("case", FIELD, ids=lambda case: case["id"])
def test_a_field_case_is_named_as_expected(case: dict) -> None:
    repeats = case["input"].get("repeats", 1)
    found = {detect_language(case["input"]["text"], candidates=case["input"]["candidates"]) for _ in range(repeats)}
    assert len(found) == 1
    assert found <= set(case["expected"].get("acceptable", [case["expected"].get("language")]))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Who is the contact for CX-7F3K?", "en"),
        ("THE REPORT IS DUE ON FRIDAY", "en"),
        ("The contract names 王小明 as the contact", "en"),
        ("Wer ist der Ansprechpartner für Project Kestrel-Ash?", "de"),
        ("Die Frist endet am 14. März 2026.", "de"),
        ("Der Kontakt ist Hamisi Mwinyi Juma Kassim Abdallah", "de"),
        ("Nipe namba ya simu ya mteja wa mradi wa Kestrel-Ash", "sw"),
        ("Barua pepe ya mfanyakazi ni alice@example.com", "sw"),
        ("请联系 Alice Ito 关于 Project Kestrel-Ash", "zh"),
        ("你好", "zh"),
        ("ما هو رقم هاتف المسؤول عن Project Kestrel-Ash؟", "ar"),
        ("Bonjour, quel est le nom du contact pour ce projet?", "und"),
        ("連絡先は田中です", "und"),
        ("Как его зовут?", "und"),
        ("Ansprechpartner Juma Hassan, Nairobi", "und"),
        ("KONTAKT FATUMA JUMA MOMBASA", "und"),
        ("kontakt fatuma juma mombasa", "und"),
        ("Contact: Fatuma Hassan, Dar es Salaam", "und"),
        ("https://example.com/the/report", "und"),
        ("a.b@example.com", "und"),
        ("CX-7F3K", "und"),
        ("", "und"),
        ("\u200b\ud800", "und"),
    ],
)
def test_a_short_line_is_named_among_the_five(text: str, language: str) -> None:
    assert detect_language(text, candidates=FIVE) == language


@pytest.mark.parametrize(
    ("text", "candidates", "language"),
    [
        ("Bonjour, quel est le nom du contact pour ce projet?", ["en", "fr", "de"], "fr"),
        ("¿Quién es la persona de contacto para este proyecto?", ["en", "es", "sw"], "es"),
        ("Mikä on yhteyshenkilön sähköpostiosoite tässä hankkeessa?", ["en", "fi", "de"], "fi"),
        ("連絡先は田中です", ["zh", "ja"], "ja"),
        ("Как его зовут?", ["en", "ru"], "ru"),
        ("نام مخاطب این پروژه چیست و چگونه با او تماس بگیریم؟", ["ar", "fa"], "fa"),
        ("The report is due", ["en-GB", "zh-CN"], "en"),
        ("The report is due", ["xx"], "und"),
    ],
)
def test_languages_beyond_the_five_are_data(text: str, candidates: list[str], language: str) -> None:
    assert detect_language(text, candidates=candidates) == language


def test_fifty_repeats_give_one_answer() -> None:
    lines = ["PLEASE SEND THE REPORT NOW!!!", "Mikä on yhteyshenkilö tässä?", "in der was so an die"]
    for line in lines:
        assert len({detect_language(line, candidates=[*FIVE, "fi"]) for _ in range(50)}) == 1


def test_the_order_of_candidates_does_not_matter() -> None:
    line = "Mikä on yhteyshenkilön sähköpostiosoite tässä hankkeessa?"
    assert detect_language(line, candidates=["fi", "en"]) == detect_language(line, candidates=["en", "fi"])


def test_the_five_languages_are_supported() -> None:
    assert set(FIVE) <= supported_languages()


@settings(deadline=None)  # the machine may be busy
@given(st.text())
def test_any_text_gives_a_candidate_or_und(text: str) -> None:
    assert detect_language(text, candidates=FIVE) in {*FIVE, "und"}
