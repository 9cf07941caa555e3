"""Paired contrasts of languages, against p-values worked out by hand."""

from __future__ import annotations

import pytest

LANGUAGES = ("en", "de", "zh")
Z_SQUARED = 2.705543  # 1.644854 squared: one-sided at 95 %


@pytest.fixture
def built(trial, tables):
    """Five documents that leak in English and Chinese and not in German, in every outcome."""
    trials = []
    for number in range(5):
        trials += [trial(f"d{number}", lang) for lang in ("en", "zh")]
        trials.append(trial(f"d{number}", "de", leak=False, gold_rank=None))
    return tables(trials, languages=LANGUAGES)


def pair(built, row, a, b, *, family="primary", outcome="output_only"):
    return row(built["contrasts"], family=family, outcome=outcome, lang_a=a, lang_b=b)


def test_five_documents_in_one_direction_give_the_least_p_there_is(built, row):
    found = pair(built, row, "en", "de")
    assert (found["n_documents"], found["n_discordant"], found["difference"]) == (5, 5, 1.0)
    assert (found["p_value"], found["least_p"], found["p_method"]) == (0.0625, 0.0625, "mcnemar_exact")
    assert found["ci_low"] == pytest.approx(2 * 5 / (5 + Z_SQUARED) - 1, abs=1e-5)
    assert (found["ci_high"], found["ci_method"]) == (1.0, "wilson_one_sided_lower")


def test_no_discordant_document_gives_p_one(built, row):
    found = pair(built, row, "en", "zh")
    assert (found["n_discordant"], found["difference"], found["p_value"], found["least_p"]) == (0, 0.0, 1.0, 1.0)
    assert found["ci_high"] == pytest.approx(Z_SQUARED / (5 + Z_SQUARED), abs=1e-5)
    assert found["ci_low"] == -found["ci_high"]


def test_holm_adjusts_within_each_family(built, row):
    primary = {lang: pair(built, row, "en", lang)["p_holm"] for lang in ("de", "zh")}
    assert primary == {"de": 0.125, "zh": 1.0}
    pairs = [("en", "de"), ("en", "zh"), ("de", "zh")]
    every = {names: pair(built, row, *names, family="all_pairs")["p_holm"] for names in pairs}
    assert every == {("en", "de"): 0.1875, ("en", "zh"): 1.0, ("de", "zh"): 0.1875}


def test_the_three_outcomes_name_their_judge_and_filter(built):
    table = built["contrasts"].fillna("")
    found = list(dict.fromkeys(zip(table["outcome"], table["judge_variant"], table["filter_variant"], strict=True)))
    assert found == [("output_only", "", "regex_ascii"), ("combined", "english", "regex_ascii"), ("retrieved", "", "")]
    assert set(table["pii_group"]) == {"unstructured"}


def test_five_languages_give_four_primary_tests_and_ten_pairs(trial, tables):
    languages = ("en", "zh", "de", "ar", "sw")
    found = tables([trial("d1", lang) for lang in languages], languages=languages)["contrasts"]
    sizes = found.groupby(["outcome", "family"]).size().to_dict()
    outcomes = ("output_only", "combined", "retrieved")
    assert sizes == {(outcome, family): n for outcome in outcomes for family, n in (("primary", 4), ("all_pairs", 10))}


def test_outcomes_are_told_apart(trial, tables, row):
    trials = [trial("d1"), trial("d1", "de", verdict="BLOCK"), trial("d2"), trial("d2", "de", leak=False)]
    built = tables(trials)
    differences = {
        name: pair(built, row, "en", "de", outcome=name)["difference"] for name in ("output_only", "combined")
    }
    assert differences == {"output_only": 0.5, "combined": 1.0}
    assert pair(built, row, "en", "de", outcome="retrieved")["n_discordant"] == 0


def test_only_documents_known_in_both_languages_are_compared(trial, tables, row):
    trials = [trial("d1"), trial("d1", "de", leak=False)]
    trials += [trial("d2"), trial("d2", "de", leak=None)]
    trials += [trial("d3"), trial("d4", pii_type="email"), trial("d4", "de", pii_type="email", leak=False)]
    found = pair(tables(trials), row, "en", "de")
    assert (found["n_documents"], found["n_discordant"], found["n_not_evaluated"]) == (1, 1, 1)


def test_a_language_without_documents_is_no_test_of_the_family(trial, tables, row):
    trials = [trial(f"d{number}") for number in range(5)]
    trials += [trial(f"d{number}", "de", leak=False) for number in range(5)]
    built = tables(trials, languages=LANGUAGES)
    empty = pair(built, row, "en", "zh")
    assert (empty["n_documents"], empty["p_value"], empty["p_holm"], empty["difference"]) == (0, None, None, None)
    assert pair(built, row, "en", "de")["p_holm"] == 0.0625


def test_documents_of_several_kinds_are_resampled_in_pairs(trial, tables, row):
    trials = [trial(f"d{number}", leak=number < 6) for number in range(8)]
    trials += [trial(f"d{number}", "de", leak=number > 4) for number in range(8)]
    found = pair(tables(trials), row, "en", "de")
    # Leaks in en 0-5, in de 5-7: five only in English, two only in German, p = 2 * (1 + 7 + 21) / 128.
    assert (found["n_discordant"], found["difference"], found["p_value"]) == (7, 0.375, 0.453125)
    assert (found["ci_method"], found["least_p"]) == ("bootstrap_paired", 0.015625)
