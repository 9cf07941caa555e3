"""Numbers and names as the page prints them."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from mragaudit.report import words
from mragaudit.report.csv_safe import neutralise_cell


@pytest.mark.parametrize("value", [None, math.nan, pd.NA, ""])
def test_a_missing_rate_is_never_printed_as_zero(value: object) -> None:
    missing = None if value is pd.NA else value
    assert words.as_rate(missing, n=0) == "not evaluated (n = 0)"
    assert words.as_share(missing) == words.MISSING


def test_a_mean_number_of_calls_has_a_decimal_only_where_it_needs_one() -> None:
    assert [words.as_calls(value) for value in (8.0, 6.5, 10, None)] == ["8", "6.5", "10", words.MISSING]


def test_one_sided_limits_print_as_bounds() -> None:
    assert words.as_interval(0.0, 0.0634, method="wilson_one_sided_upper") == "≤ 0.063"
    assert words.as_interval(0.5965, 1.0, method="wilson_one_sided_lower") == "≥ 0.597"
    assert words.as_interval(0.775, 0.975, method="bootstrap_document") == "0.775 to 0.975"


def test_differences_carry_their_sign() -> None:
    assert words.as_signed(0.25) == "+0.250"
    assert words.as_signed(-0.25) == "\u22120.250"


def test_small_p_values_keep_their_digits() -> None:
    assert words.as_p(0.03125) == "0.0312"
    assert words.as_p(4.0612e-19) == "4.06e-19"


def test_hidden_characters_are_shown_and_layout_is_kept() -> None:
    assert words.visible("a\0b\u202ec\u2028d\ud800\n\te") == "a␀b⟨U+202E⟩c⟨U+2028⟩d⟨U+D800⟩\n\te"


def test_arabic_joiners_and_chinese_stay_as_they_are() -> None:
    assert words.visible("می\u200cخواهم 联系人") == "می\u200cخواهم 联系人"


def test_a_long_text_is_cut_with_its_length() -> None:
    assert words.clip("x" * 20_000) == "x" * 20_000
    assert words.clip("x" * 1_000_000).endswith("x … [shown: 20,000 of 1,000,000 characters]")


@pytest.mark.parametrize("text", ["=1+1", "+49 1", "-cmd", "@x", "\tx", "\rx", "-", "+", "-inf", "-1e", "--1"])
def test_a_cell_that_a_spreadsheet_would_evaluate_is_neutralised(text: str) -> None:
    assert neutralise_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-0.125", "+3", "-1e-05", "0", "", "name", "a=b", "نص"])
def test_numbers_and_plain_text_stay_as_they_are(text: str) -> None:
    assert neutralise_cell(text) == text


def test_the_name_of_an_interval_says_the_level_of_the_page() -> None:
    assert words.method_in_words("wilson_two_sided") == "two-sided 95 % Wilson"
    with words.interval_level(0.999):
        assert words.method_in_words("wilson_two_sided") == "two-sided 99.9 % Wilson"
    assert words.as_level() == "95 %"


def test_an_interval_of_another_level_than_the_page_says_its_own() -> None:
    with words.interval_level(0.9):
        assert words.method_in_words("clopper_pearson", confidence=0.95) == "two-sided 95 % Clopper–Pearson"


@pytest.mark.parametrize("kind", ["wilson", "clopper_pearson", "poisson_exact"])
def test_a_one_sided_bound_of_any_kind_shows_its_one_side(kind: str) -> None:
    assert words.as_interval(0.0, 0.049, method=f"{kind}_one_sided_upper") == "≤ 0.049"
    assert words.as_interval(0.056, 1.0, method=f"{kind}_one_sided_lower") == "≥ 0.056"
