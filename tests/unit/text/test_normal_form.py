"""The normal form and its map back to the original."""

from __future__ import annotations

from itertools import pairwise

import pytest
from cpu_limit import finishes
from hypothesis import given, settings
from hypothesis import strategies as st

from mragaudit.text import fold_verbatim, normalise, tokens

SCRIPTS = st.text(
    alphabet=st.sampled_from("aZß9 \n\t\u00a0é\u0301\u0308İＡ１٣४中王가각アﾞ\u200d\u200f\u00ad–−²½ﬁ´’ﷺوَـ"), max_size=40
)
ANY = st.text(max_size=40) | SCRIPTS


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ＡＢ＠ｃ．ｏｒｇ", "AB@c.org"),
        ("٢١٢–۵۵۵−०१४२", "212-555-0142"),
        ("a\u200bb\u00adc\ufeffd\u202ee\u200df", "abcdef"),
        ("a \u00a0\u2009\u3000\tb", "a b"),
        ("Zoe\u0308 Mu\u0308ller", "Zoë Müller"),
        ("0142² ①½", "0142² ①½"),
        ("O’Brien O´Brien", "O'Brien O'Brien"),
        ("ﬁ ﷺ", "fi صلى الله عليه وسلم"),
        ("", ""),
    ],
)
def test_the_form_is_the_one_worked_by_hand(text: str, folded: str) -> None:
    assert normalise(text).text == folded


def test_case_folding_is_full() -> None:
    assert normalise("GROẞ Groß İ", casefold=True).text == "gross gross i\u0307"


def test_line_breaks_are_kept_on_demand() -> None:
    assert normalise("a \r\n b\u2028c  d", keep_lines=True).text == "a\nb\nc d"


def test_vowel_points_and_tatweel_are_dropped_on_demand() -> None:
    assert normalise("فَاطِمَة حـسن", drop_vowel_points=True).text == "فاطمة حسن"


def test_a_span_of_the_form_gives_the_span_of_the_original() -> None:
    text = "x  Zoe\u0308\u200b!"
    mapped = normalise(text)
    begin = mapped.text.index("Zoë")
    assert mapped.original_span(begin, begin + 3) == (3, 7)


def test_a_span_that_cuts_an_expansion_gives_the_whole_character() -> None:
    assert normalise("aßb", casefold=True).original_span(1, 2) == (1, 2)


def test_a_span_outside_the_form_is_refused() -> None:
    with pytest.raises(IndexError, match="outside a text of 2"):
        normalise("ab").original_span(1, 3)


@settings(deadline=None)  # the machine may be busy
@given(ANY, st.booleans(), st.booleans(), st.booleans())
def test_normalising_twice_changes_nothing(text: str, casefold: bool, keep: bool, drop: bool) -> None:
    once = normalise(text, casefold=casefold, keep_lines=keep, drop_vowel_points=drop).text
    assert normalise(once, casefold=casefold, keep_lines=keep, drop_vowel_points=drop).text == once


@settings(deadline=None)  # the machine may be busy
@given(ANY)
def test_the_map_is_monotone_and_stays_inside(text: str) -> None:
    mapped = normalise(text, casefold=True)
    spans = [mapped.original_span(at, at + 1) for at in range(len(mapped.text))]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(left[0] <= right[0] and left[1] <= right[1] for left, right in pairwise(spans))


@settings(deadline=None)  # the machine may be busy
@given(st.text(alphabet="abc中ЖÄ١", min_size=1), ANY)
def test_the_original_of_a_span_normalises_to_the_span(word: str, noise: str) -> None:
    text = f"{noise} |{word}| {noise}"
    mapped = normalise(text)
    at = mapped.text.index("|" + normalise(word).text + "|") + 1
    start, end = mapped.original_span(at, at + len(normalise(word).text))
    assert text[start:end] == word


@settings(deadline=None)  # the machine may be busy
@given(ANY)
def test_the_verbatim_form_folds_case_and_white_space_alone(text: str) -> None:
    folded = fold_verbatim(text).text
    assert folded.split() == text.casefold().split()
    assert "  " not in folded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zoë Müller, 18a", ["Zoë", "Müller", "18a"]),
        ("王小明 A1", ["王", "小", "明", "A1"]),
        ("فاطمة حسن", ["فاطمة", "حسن"]),
        ("a_b-c", ["a", "b", "c"]),
        ("…", []),
    ],
)
def test_tokens_are_words_numbers_and_single_signs(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "unit", ["a", "中", "e\u0301", " ", "\u0301", "\u200b", "ａ", "ａ\u0301", "\u0315\u0300", "a  "]
)
def test_time_grows_with_the_length_of_the_text_not_with_its_square(unit: str) -> None:
    assert finishes(lambda: normalise(unit * (500_000 // len(unit)), casefold=True))
