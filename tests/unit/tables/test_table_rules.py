"""What holds for all tables: columns, order of input, names, further languages, unknown variants."""

from __future__ import annotations

from typing import get_type_hints

import msgspec
import numpy as np
import pandas as pd
import pytest

from mragaudit.errors import DataError
from mragaudit.paths import TABLES
from mragaudit.records.trials import Trial
from mragaudit.tables.columns import TrialRow

SPECIFIED = {
    "f1_output_only": "lang, pii_group, filter_variant, n_documents, n_leaked, n_not_evaluated, rate, ci_low, ci_high, "
    "ci_method, n_leaked_published",
    "f2_conditional": "lang, pii_group, judge_variant, filter_variant, n_dangerous, n_residual, n_not_evaluated, rate, "
    "ci_low, ci_high, ci_method, n_residual_unparsed_allow",
    "f3_combined": "lang, pii_group, judge_variant, filter_variant, n_documents, n_leaked, n_not_evaluated, rate, "
    "ci_low, ci_high, ci_method, n_leaked_published, n_leaked_unparsed_allow",
    "f4_context": "lang, pii_group, base_variant, context_variant, filter_variant, n_residual, n_blocked, "
    "n_not_evaluated, rate, ci_low, ci_high, ci_method",
    "funnel": "lang, pii_group, judge_variant, filter_variant, stage, n_trials, n_surviving, share, n_not_evaluated",
    "stops": "lang, pii_group, judge_variant, filter_variant, stage, n_trials, n_first_stop, n_stop_alone, "
    "n_not_evaluated",
    "retrieval": "lang, paraphrase, intent, k, n, recall_at_k, recall_ci_low, recall_ci_high, mrr, mrr_ci_low, "
    "mrr_ci_high, ci_method, n_not_evaluated",
    "judges": "lang, judge_variant, n_attack, block_rate, block_ci_low, block_ci_high, n_benign, false_positive_rate, "
    "fpr_ci_low, fpr_ci_high, ci_method, n_unparsed, n_not_evaluated, auc, constant",
    "utility": "lang, judge_variant, filter_variant, n_benign, n_answered_correctly, n_not_evaluated, rate, ci_low, "
    "ci_high, ci_method",
    "translation": "lang, n, n_failed, anchor_kept_rate, language_ok_rate, median_length_ratio, "
    "median_round_trip_similarity",
    "contrasts": "family, outcome, pii_group, judge_variant, filter_variant, lang_a, lang_b, n_documents, "
    "n_discordant, difference, ci_low, ci_high, ci_method, p_value, p_method, p_holm",
    "noise": "stage, lang, judge_variant, flip, n_pairs, n_flips, n_not_evaluated, rate, ci_low, ci_high, ci_method, "
    "max_margin_difference, n_margins",
}


def mixed_trials(trial, languages):
    """Return random trials of 12 documents in each language; a language's trials do not depend on the others."""
    trials = []
    for lang in languages:
        draws = np.random.default_rng(list(lang.encode()))
        for number in range(12):
            for paraphrase in ("direct", "summary", "icl", None):
                verdict = [None, "BLOCK", "UNPARSED", "ALLOW", "ALLOW", "ALLOW"][draws.integers(6)]
                fields = {"intent": "attack" if paraphrase else "benign", "paraphrase": paraphrase}
                fields["answered_correctly"] = None if paraphrase else bool(draws.integers(2))
                fields["leak"] = [True, False, None][draws.choice(3, p=[0.3, 0.6, 0.1])]
                fields["gold_rank"] = [1, 2, 3, None][draws.integers(4)]
                fields["pii_type"] = ("name", "email", "address")[number % 3]
                fields["fired"] = None if fields["leak"] is None else bool(draws.integers(2))
                trials.append(trial(f"d{number:02d}", lang, verdict=verdict, **fields))
    return trials


def test_all_twelve_tables_begin_with_the_specified_columns_in_order(trial, tables):
    built = tables([trial("d1"), trial("d1", "de", leak=False)])
    assert tuple(built) == TABLES
    for name, columns in SPECIFIED.items():
        expected = columns.split(", ")
        assert list(built[name].columns)[: len(expected)] == expected, name


def test_no_trial_at_all_is_refused(tables):
    with pytest.raises(DataError, match="no trial to make tables of"):
        tables([])


def test_controls_alone_give_empty_tables_of_findings(trial, tables):
    control = trial(None, intent="control", query_source="control", pii_type=None, leak=None, fired={}, verdict={})
    built = tables([control], judges=("english",))
    assert built["f1_output_only"].empty
    assert built["translation"].empty


def test_order_of_trials_and_names_of_documents_change_nothing(trial, tables):
    trials = mixed_trials(trial, ("en", "de"))
    shuffled = [trials[place] for place in np.random.default_rng(1).permutation(len(trials))]
    renamed = [
        msgspec.structs.replace(row, doc_id=f"x{99 - int(row.doc_id[1:])}", trial_id=f"t{number}")
        for number, row in enumerate(shuffled)
    ]
    first, second = tables(trials), tables(renamed)
    for name in TABLES:
        pd.testing.assert_frame_equal(first[name], second[name], check_exact=True)


def test_a_further_language_leaves_the_rows_of_the_others_as_they_were(trial, tables):
    before = tables(mixed_trials(trial, ("en", "de")))
    after = tables(mixed_trials(trial, ("en", "zh", "de")), languages=("en", "zh", "de"))
    for name in set(TABLES) - {"contrasts"}:
        old, new = before[name], after[name]
        pd.testing.assert_frame_equal(
            old[old["lang"] != "all"].reset_index(drop=True),
            new[~new["lang"].isin(["all", "zh"])].reset_index(drop=True),
            check_exact=True,
        )
    old, new = before["contrasts"], after["contrasts"]
    kept = new[(new["lang_a"] != "zh") & (new["lang_b"] != "zh")].reset_index(drop=True)
    pd.testing.assert_frame_equal(old.drop(columns="p_holm"), kept.drop(columns="p_holm"), check_exact=True)


def test_a_row_of_f3_agrees_with_the_trials_counted_one_by_one(trial, tables, row):
    trials = mixed_trials(trial, ("en", "de"))
    documents: dict[str, list[bool | None]] = {}
    for one in trials:
        if one.lang == "de" and one.intent == "attack":
            verdict, leak = one.verdict["english"], one.leak_verbatim
            passed = leak and not one.fired["regex_ascii"]
            unknown = leak is None or (passed and verdict is None)
            documents.setdefault(one.doc_id, []).append(None if unknown else bool(passed and verdict == "ALLOW"))
    leaked = sum(True in outcomes for outcomes in documents.values())
    unknown = sum(True not in outcomes and None in outcomes for outcomes in documents.values())
    found = row(
        tables(trials)["f3_combined"], lang="de", pii_group="all", judge_variant="english", filter_variant="regex_ascii"
    )
    assert 0 < leaked < 12
    assert unknown > 0
    assert (found["n_documents"], found["n_leaked"], found["n_not_evaluated"]) == (12, leaked, unknown)
    assert found["rate"] == pytest.approx(leaked / (12 - unknown))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lang": "dr"}, '"dr" is not in the config\'s languages; allowed: de, en'),
        ({"fired": {"regex_asci": True}}, 'filter.variants; did you mean "regex_ascii"?'),
        ({"verdict": {"oracel": "ALLOW"}}, 'judge.variants; did you mean "oracle"?'),
        ({"verdict": {}, "margin": {"oracel": 0.5}}, 'judge.variants; did you mean "oracle"?'),
    ],
)
def test_a_language_or_variant_that_the_config_does_not_name_is_refused_with_the_trial(trial, tables, fields, message):
    with pytest.raises(DataError) as caught:
        tables([trial("d1"), trial("d2", trial_id="t2", **fields)])
    assert str(caught.value).startswith("trial t2: ")
    assert str(caught.value).endswith(message)


def test_the_row_that_tables_read_has_the_types_of_a_trial():
    whole, part = get_type_hints(Trial), get_type_hints(TrialRow)
    assert part == {name: whole[name] for name in part}
    assert TrialRow.__struct_config__.tag == Trial.__struct_config__.tag
