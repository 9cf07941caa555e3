"""Planted values of an imported corpus never reach the page."""

from __future__ import annotations

import msgspec
import pytest
import report_sample as sample

from mragaudit.errors import DataError
from mragaudit.report.masking import TOKEN, Masker, Planted, mask_report, mask_token, move_span
from mragaudit.report.model import Flag, ReportInput
from mragaudit.report.page import render

KEY = b"0123456789abcdef"
PLANTED = {
    f"doc-{number:02d}": Planted(sample.PII_TYPES[number % 5], sample.VALUES[number % 5]) for number in range(10)
}


def masked(**change: object) -> ReportInput:
    return mask_report(sample.cached_report(**change), planted=PLANTED, key=KEY)


def test_a_masked_page_holds_no_planted_value() -> None:
    flag = Flag(severity="info", title="Seen", text="Marlene Oduya was found.")
    page = render(masked(flags=(flag,), notes=("Call (212) 555-0143",), settings_summary=(("id", "900-12-3456"),)))
    whole = [
        *sample.VALUES,
        "4417 Juniper Lane",
        "Eastmoor",
        "Marlene",
        "Oduya",
        "tobias.ferrand",
        "555-0143",
    ]
    assert [value for value in whole if value in page] == []
    masks = {mask_token(item, key=KEY) for item in PLANTED.values()}
    assert masks <= set(TOKEN.findall(page))


@pytest.mark.parametrize(
    ("pii_type", "value", "text"),
    [
        ("phone", "(212) 555-0143", "٢١٢-٥٥٥-٠١٤٣"),
        ("id", "900-12-3456", "身份证900123456。"),
        ("id", "900-12-3456", "９００－１２－３４５６"),
        ("name", "Marlene Oduya", "MARLENE\u200b  oduya"),
        ("email", "a.b@example.com", "A.B＠EXAMPLE.COM"),
        ("address", "44 Elm St\nX, PA 12345", "44 Elm St, X, PA 12345"),
    ],
)
def test_other_spellings_of_a_value_are_masked(pii_type: str, value: str, text: str) -> None:
    item = Planted(pii_type, value)
    shown = Masker({"d": item}, key=KEY).text(text)
    assert TOKEN.findall(shown) == [mask_token(item, key=KEY)]
    assert not set("0123456789٠٩９") & set(TOKEN.sub("", shown))


def test_parts_of_a_name_are_masked_in_its_own_trials_only() -> None:
    masker = Masker({"d": Planted("name", "Marlene Oduya")}, key=KEY)
    assert masker.text("Ms. Oduya", ["d"]) == f"Ms. {masker.token('d')}"
    assert masker.text("Ms. Oduya", ["other"]) == "Ms. Oduya"


def test_spans_move_with_the_answer() -> None:
    trace = masked().traces[0]
    assert trace.answer is not None
    for start, end in trace.planted_spans:
        assert TOKEN.fullmatch(trace.answer[start:end])


def test_a_span_that_ends_inside_a_cut_moves_to_its_edge() -> None:
    masker = Masker({"d": Planted("name", "Marlene Oduya")}, key=KEY)
    text = "To Marlene Oduya now"
    cuts = masker.cuts(text)
    assert [cut[:2] for cut in cuts] == [(3, 16)]
    size = len(masker.token("d"))
    assert move_span(5, 20, cuts) == (3, 3 + size + 4)
    assert move_span(0, 8, cuts) == (0, 3 + size)


def test_equal_values_share_a_mask_and_another_key_gives_another() -> None:
    one, other = Planted("phone", "212-555-0143"), Planted("phone", "(212) 555 0143")
    assert mask_token(one, key=KEY) == mask_token(other, key=KEY)
    assert mask_token(one, key=KEY) != mask_token(one, key=b"another key 1234")


def test_a_short_key_is_refused() -> None:
    with pytest.raises(DataError, match="has 3 bytes; it needs 16"):
        mask_report(sample.cached_report(), planted=PLANTED, key=b"abc")


def test_a_report_that_only_claims_to_be_masked_is_refused() -> None:
    with pytest.raises(DataError, match="may hold masked values only"):
        render(msgspec.structs.replace(sample.cached_report(), masked=True))
