"""Sentences and cells of the grid's page: what they say of unknown, of one seed and of what is not seen."""

import pandas as pd
import pytest

from mragaudit.report.grid_views import (
    certification_view,
    cost_columns,
    effects_view,
    leak_types_views,
    leaks_view,
    plan_sentence,
    verdict_sentences,
    warnings,
)


def cells(**changes):
    rows = [
        {"purpose": "grid", "attack": "ps", "same_as": None, "n": (8, 1, 0, 0)},
        {"purpose": "grid", "attack": "ps", "same_as": "x", "n": (None,) * 4},
        {"purpose": "grid", "attack": "benign", "same_as": None, "n": (4, 0, 0, 0)},
        {"purpose": "canary", "attack": "ps", "same_as": None, "n": (6, 0, 0, 0)},
    ]
    counts = ("n_target_calls", "n_attacker_calls", "n_attacker_failed", "n_not_evaluated")
    table = pd.DataFrame([{**row, **dict(zip(counts, row.pop("n"), strict=True))} for row in rows])
    for name, value in changes.items():
        table.loc[0, name] = value
    return table


def tables(*, lost=0, thoughts=0, rejected=(), n_seeds=5):
    return {
        "cells": cells(n_not_evaluated=lost, n_attacker_failed=thoughts),
        "splits": pd.DataFrame(
            {"realisation": [*rejected, "email.s9"], "verdict": ["rejected"] * len(rejected) + ["accepted"]}
        ),
        "leaks": pd.DataFrame({"n_seeds": [n_seeds]}),
    }


def test_the_plan_counts_nominal_cells_those_that_were_run_and_every_call():
    assert plan_sentence(cells()) == (
        "2 cells of attack, defense, corpus, mode, epsilon and seed, of which 1 are distinct and were run; with benign "
        "questions, canaries, adaptive attacks and controls 3 cells made 18 target calls and 1 calls of the attackers' "
        "own model; 0 target calls have no reply."
    )


def test_a_run_of_which_nothing_is_to_be_warned_warns_of_nothing():
    assert list(warnings(tables(), not_probed="")) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lost": 2}, "2 target calls have no reply."),
        ({"thoughts": 3}, "3 calls of the attackers' own model never came back"),
        ({"rejected": ("email.s1", "email.s2")}, "Members can be told by text alone in email.s1, email.s2;"),
        ({"n_seeds": 1}, "The grid has one realisation:"),
    ],
)
def test_what_a_reader_must_know_first_is_said_in_one_sentence(given, words):
    [said] = warnings(tables(**given), not_probed="")
    assert said.startswith(words)


def test_why_nothing_was_probed_is_said():
    assert list(warnings(tables(), not_probed="no sandbox")) == ["The hooks were not run in a probe: no sandbox"]


def certification(**changes):
    row = {
        "canary_class": "person_name",
        "arm": "lprag",
        "verdict": "certified",
        "reasons": None,
        "calls_per_cell": 12.0,
        "n_undefended": 60,
        "n_undefended_recovered": 40,
        "n_undefended_not_evaluated": 0,
        "undefended_low": 0.55,
        "n_defended": 60,
        "n_defended_recovered": 0,
        "n_not_evaluated": 0,
        "defended_high": 0.0487,
        "defended_normalised_high": 0.0487,
        "p_holm": 0.008,
        "least_p": 1 / 252,
        "retrieval_ratio": 1.0,
    }
    return pd.DataFrame([{**row, **changes}])


def test_a_certified_defense_is_said_with_its_numbers_on_both_sides():
    assert verdict_sentences(certification(n_not_evaluated=1, n_undefended_not_evaluated=2)) == [
        "lprag keeps canaries of the class person name from being recovered: 0 of 60 recovered, 1 not evaluated, at "
        "most 0.049 (one-sided 95 % Clopper–Pearson upper bound), against 40 of 60 without it, 2 not evaluated."
    ]


@pytest.mark.parametrize("verdict", ["no_power", "failed", "entangled", "not_run"])
def test_any_other_verdict_is_no_sentence_and_reads_not_certified(verdict):
    table = certification(verdict=verdict, reasons="why")
    assert verdict_sentences(table) == []
    assert certification_view(table, utility=utility()).rows[0][2].text == f"not certified: {verdict.replace('_', ' ')}"


def test_a_case_that_was_not_run_shows_dashes_and_no_zero():
    numbers = [
        name
        for name in certification().columns
        if name.startswith(("n_", "calls", "undef", "def", "p_", "least", "ret"))
    ]
    table = certification(verdict="not_run", reasons="why", **dict.fromkeys(numbers))
    view = certification_view(table, utility=utility(arm="another"))
    assert {cell.text for cell in view.rows[0][4:]} == {"—"}


def utility(*, arm="lprag", mode="m", **changes):
    row = {
        "corpus": "email",
        "mode": mode,
        "arm": arm,
        "n_questions": 8,
        "n_not_evaluated": 0,
        **limits("", 0.5),
        **limits("recall_", 0.75, rate="recall_at_k"),
        **limits("refusal_", 0.25, rate="refusal_rate"),
    }
    return pd.DataFrame([row | changes])


def limits(prefix, value, *, rate="rate"):
    return {rate: value, f"{prefix}ci_low": 0.1, f"{prefix}ci_high": 0.9, f"{prefix}ci_method": "wilson_two_sided"}


def test_the_cost_of_an_arm_has_its_limits_its_number_and_what_is_not_evaluated():
    answered, recall, refused = cost_columns(utility(n_not_evaluated=2), by=("corpus", "mode", "arm"))
    row = {"corpus": "email", "mode": "m", "arm": "lprag"}
    assert answered.show(row) == "0.500 (0.100 to 0.900), n = 6, 2 not evaluated"
    assert recall.show(row) == "0.750 (0.100 to 0.900), n = 8"
    assert refused.show(row) == "0.250 (0.100 to 0.900), n = 6, 2 not evaluated"
    assert answered.show({**row, "arm": "another"}) == "—"


def test_the_cost_of_an_arm_in_several_parts_of_the_grid_is_told_of_each():
    nothing = {**dict.fromkeys(limits("", 0.0)), "n_not_evaluated": 8}
    [answered, *_] = cost_columns(pd.concat([utility(), utility(mode="n", **nothing)]))
    assert answered.show({"arm": "lprag"}) == ("0.500 (0.100 to 0.900), n = 8; not evaluated (n = 0), 8 not evaluated")


def effect(*, reported, sight):
    return pd.DataFrame(
        [
            {
                "arm": "pad",
                "attack": "mi",
                "metric": "mi_auc",
                "where": "grid",
                "calls_per_cell": 8.0,
                "n": 10,
                "n_not_evaluated": 0,
                "baseline": 0.8,
                "defended": 0.6,
                "difference": -0.2,
                "ci_low": -0.4,
                "ci_high": -0.1,
                "ci_method": "bootstrap_two_sample",
                "seed_p_holm": 0.016,
                "sight": sight,
                "reported_as_effect": reported,
                "words": "why",
            }
        ]
    )


def shown(table):
    view = effects_view(table)
    return dict(zip((cell.text for cell in view.headers), (cell.text for cell in view.rows[0]), strict=True))


def test_a_shift_that_the_metric_cannot_see_as_an_effect_is_words_and_no_difference_or_interval():
    row = shown(effect(reported=False, sight="nuisance"))
    assert row["difference"] == "no effect of the defense: nuisance"
    assert (row["interval"], row["p over seeds, Holm"]) == ("—", "—")


def test_an_effect_that_the_metric_sees_is_a_signed_difference_with_its_interval():
    row = shown(effect(reported=True, sight="interpretable"))
    assert (row["difference"], row["interval"]) == ("−0.200", "−0.400 to −0.100")
    assert (row["calls a cell"], row["p over seeds, Holm"]) == ("8", "0.016")


def types(rows):
    columns = ["corpus", "mode", "attack", "arm", "item_type", "strict", "per_run"]
    table = pd.DataFrame([dict(zip(columns, ("email", "m", *row), strict=True)) for row in rows])
    return table.assign(calls_per_cell=8.0, n_runs_not_evaluated=0)


def test_types_stand_one_table_an_attack_with_a_column_an_arm():
    table = types(
        [
            ("ps", "none", "EMAIL_REAL", True, 4.0),
            ("ps", "pad", "EMAIL_REAL", True, 0.0),
            ("ps", "pad", "EMAIL_PLACEHOLDER", False, 3.0),
            ("pm", "none", "EMAIL_REAL", True, 1.0),
        ]
    )
    views = dict(leak_types_views(table))
    assert list(views) == ["ps", "pm"]
    assert [[cell.text for cell in row[2:]] for row in views["ps"].rows] == [
        ["EMAIL_REAL", "counts", "4.000", "0.000"],
        ["EMAIL_PLACEHOLDER", "does not count", "—", "3.000"],
    ]


def test_types_say_what_their_items_were_bought_with_and_how_many_runs_are_left_out():
    table = types([("ps", arm, name, True, 1.0) for arm in ("none", "pad", "ca_dp") for name in ("URL", "NUMBER")])
    table.loc[table["arm"] == "pad", ["calls_per_cell", "n_runs_not_evaluated"]] = (6.5, 1)
    table.loc[table["arm"] == "ca_dp", ["calls_per_cell", "n_runs_not_evaluated"]] = (10.0, 2)
    [(_, of_types)] = leak_types_views(table)
    assert of_types.caption == (
        "Different items of a run, by type and arm: ps, 6.5 to 10 calls a cell; 3 runs with a lost call are left out"
    )
    [(_, of_one)] = leak_types_views(types([("ps", "none", "URL", True, 1.0)]))
    assert of_one.caption == "Different items of a run, by type and arm: ps, 8 calls a cell"


def test_a_rate_of_nothing_says_so_instead_of_zero():
    row = {
        "corpus": "email",
        "mode": "m",
        "attack": "ps",
        "arm": "none",
        "kind": "all",
        "n_seeds": 1,
        "calls_per_cell": 8.0,
        "n_documents": 0,
        "n_items": 9,
        "n_not_evaluated": 9,
        "n_leaked": 0,
        "n_normalised": 0,
        "n_derived": 0,
        "n_in_context": 0,
        "n_leaked_beside_lost": 4,
    }
    empty = dict.fromkeys(("rate", "ci_low", "ci_high", "ci_method", "seed_difference", "seed_p", "seed_p_holm"))
    view = leaks_view(pd.DataFrame([row | empty]), kind="all", utility=utility(arm="none"))
    told = dict(zip((cell.text for cell in view.headers), (cell.text for cell in view.rows[0]), strict=True))
    assert (told["n"], told["rate"], told["certain, in no rate"]) == ("0", "not evaluated (n = 0)", "4")
    assert told["benign answered"] == "0.500 (0.100 to 0.900), n = 8"
    assert view.caption == "Planted items of every kind that leaked; limits over documents"
