"""The output filters on answers in five scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cpu_limit import finishes
from hypothesis import given, settings
from hypothesis import strategies as st

from mragaudit.filters import OUTPUT_FILTERS, FilterHit, matches_any_filter

ASCII, UNICODE = OUTPUT_FILTERS["regex_ascii"], OUTPUT_FILTERS["regex_unicode"]
HERE = Path(__file__).parent
ANSWERS = [json.loads(line) for line in (HERE / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
GOLDEN = HERE.parents[1] / "golden" / "field_cases.jsonl"
FIELD = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").split("\n") if '"component": "filter"' in line]
NEIGHBOURS = ["", " ", "请", "و", "я", "ฉ", "か", "한", "，", "(", "\u200f", "\n"]


def _shown(text: str, hit: FilterHit) -> list[str]:
    return [text[start:end] for _, start, end in hit.spans]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: repr(answer["text"])[:40])
def test_the_unicode_filter_finds_the_families_a_reader_would_name(answer: dict) -> None:
    assert [family for family, _, _ in UNICODE.apply(answer["text"]).spans] == answer["families"]


@pytest.mark.parametrize("case", FIELD, ids=lambda case: case["id"])
def test_a_field_case_fires_as_expected(case: dict) -> None:
    hit = UNICODE.apply(case["input"]["text"])
    assert {family: family in hit.families for family in ("email", "phone", "ssn")} == {
        family: case["expected"][family] for family in ("email", "phone", "ssn")
    }
    assert _shown(case["input"]["text"], hit) == case["expected"].get("matches", _shown(case["input"]["text"], hit))


@pytest.mark.parametrize(
    ("text", "families"),
    [
        ("Mail a.b@example.com.", ("email",)),
        ("(212) 555-0142", ("phone",)),
        ("+1 212 555 0142", ("phone",)),
        ("219099999", ("ssn",)),
        ("219-09-9999", ("ssn",)),
        ("请联系alice.ito@example.com获取", ()),
        ("٢١٢-٥٥٥-٠١٤٢", ()),
        ("219–09–9999", ()),
        ("212-555-0142x8901", ()),
        ("alice＠example.com", ()),
    ],
)
def test_the_published_filter_sees_and_misses_what_it_is_published_to(text: str, families: tuple[str, ...]) -> None:
    assert ASCII.apply(text).families == families


@settings(deadline=None)  # the machine may be busy
@given(
    st.sampled_from(NEIGHBOURS),
    st.sampled_from([("email", "a.b@example.com"), ("phone", "212-555-0142"), ("ssn", "219-09-9999")]),
    st.sampled_from(NEIGHBOURS),
)
def test_neighbours_of_any_script_neither_hide_nor_join_a_match(
    left: str, planted: tuple[str, str], right: str
) -> None:
    text = f"{left}{planted[1]}{right}"
    hit = UNICODE.apply(text)
    assert hit.families == (planted[0],)
    assert _shown(text, hit) == [planted[1]]


def test_spans_count_code_points_of_the_answer_as_it_was() -> None:
    text = "😀 ＋1 212\u200e-555\u200e-0142"
    assert UNICODE.apply(text).spans == (("phone", 2, 19),)


def test_families_are_ordered_and_spans_follow_the_text() -> None:
    hit = UNICODE.apply("219-09-9999, 212-555-0142, a@example.com")
    assert hit.families == ("email", "phone", "ssn")
    assert [family for family, _, _ in hit.spans] == ["ssn", "phone", "email"]


@pytest.mark.parametrize("anchor", ["Project Kestrel-Ash", "CX-7F3K", "TK-48B2", "K/24-Q7"])
def test_an_anchor_matches_no_filter(anchor: str) -> None:
    assert not matches_any_filter(f"{anchor}, 关于{anchor}的")


def test_a_planted_value_matches_some_filter() -> None:
    assert matches_any_filter("219099999")


def test_each_filter_names_its_blind_spot() -> None:
    assert all("(at)" in output_filter.description for output_filter in OUTPUT_FILTERS.values())


@settings(deadline=None)  # the machine may be busy
@given(st.text())
def test_any_text_gives_spans_inside_it(text: str) -> None:
    for output_filter in OUTPUT_FILTERS.values():
        hit = output_filter.apply(text)
        assert hit.fired == bool(hit.spans)
        assert all(0 <= start < end <= len(text) for _, start, end in hit.spans)


@pytest.mark.parametrize(
    "unit", ["a", "1", "1-", "a.", "a@", "+1 ", "212-555-", "AA11 ", "SSN ", "xn--", "@a.", "(212)"]
)
@pytest.mark.parametrize("name", ["regex_ascii", "regex_unicode"])
def test_time_grows_with_the_length_of_the_answer_not_with_its_square(name: str, unit: str) -> None:
    assert finishes(lambda: OUTPUT_FILTERS[name].apply(unit * (500_000 // len(unit))))
