"""Tables of effects, predictions, cells, utility and findings: denominators, and unknown left empty."""

import pandas as pd
import pytest
from grid_rows import cell_of, grid_rows, use

from mragaudit.grid.effect_tables import effects_of, effects_table, predictions_table
from mragaudit.grid.finding_tables import adaptive_table, canaries_table, certification_table, membership_table
from mragaudit.grid.plan_tables import cells_table
from mragaudit.grid.recovery import count_share
from mragaudit.grid.resampling import Resampling
from mragaudit.grid.utility import utility_table
from mragaudit.hookaudit.attacks import shipped_attacks
from mragaudit.hookaudit.matrix import ActiveHooks, build_matrix
from mragaudit.hookaudit.metrics import shipped_metrics
from mragaudit.hookaudit.predictions import Effect, ScoringRule, predict, score_predictions
from mragaudit.records.grid import BenignOutcome
from mragaudit.records.grid_findings import AdaptiveRow, CertificationRow, MembershipRow, RecoveryRow
from mragaudit.stages.aggregate import read_table, to_csv

RESAMPLING = Resampling(seed=1, resamples=200, confidence=0.95)
PAD = ActiveHooks(defense="pad", active=("response",))
CALLS = {("pad", "ps", "grid email targeted_queries"): 8.0}
CALLS_OF_ARMS = {("email", "pad"): 12.0}


def one_row(table):
    [row] = table.to_dict("records")
    return row


def effect(metric="verbatim_leak", **changes):
    given = {
        "defense": "pad",
        "attack": "ps",
        "metric": metric,
        "cell": "grid email targeted_queries",
        "baseline": 0.5,
        "defended": 0.25,
        "difference": -0.25,
        "ci_low": -0.5,
        "ci_high": -0.125,
        "ci_method": "bootstrap_paired",
        "n": 8,
        "n_not_evaluated": 2,
    }
    return Effect(**{**given, **changes})


def unknown(metric="verbatim_leak"):
    nothing = dict.fromkeys(("baseline", "defended", "difference", "ci_low", "ci_high"))
    return effect(metric, attack="pm", **nothing, ci_method="", n=0, n_not_evaluated=10)


def same():
    return effect(attack="ikea", baseline=0.5, defended=0.5, difference=0.0, ci_low=-0.3, ci_high=0.3, identical=True)


def sights():
    return {(cell.defense, cell.metric): cell for cell in build_matrix([PAD], shipped_metrics())}


def test_a_metric_that_cannot_see_an_arm_is_not_reported_as_its_effect():
    table = effects_table(
        [effect("verbatim_leak"), effect("recall_at_k"), effect("mi_auc")], sights(), calls=CALLS, seeds={}
    )
    told = {row["metric"]: (row["sight"], row["reported_as_effect"]) for row in table.to_dict("records")}
    assert told == {
        "verbatim_leak": ("interpretable", True),
        "recall_at_k": ("not_observable", False),
        "mi_auc": ("nuisance", False),
    }
    assert set(table["calls_per_cell"]) == {8.0}


def test_effects_read_from_their_file_are_those_that_were_written(tmp_path):
    given = [effect(), unknown(), same()]
    path = tmp_path / "effects.csv"
    path.write_text(to_csv(effects_table(given, sights(), calls=CALLS, seeds={})), encoding="utf-8")
    assert list(effects_of(read_table(path))) == given


def test_effects_of_which_none_could_be_evaluated_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "effects.csv"
    path.write_text(to_csv(effects_table([unknown()], sights(), calls=CALLS, seeds={})), encoding="utf-8")
    assert list(effects_of(read_table(path))) == [unknown()]


def test_a_table_without_effects_has_none(tmp_path):
    path = tmp_path / "effects.csv"
    path.write_text(to_csv(effects_table([], sights(), calls=CALLS, seeds={})), encoding="utf-8")
    assert list(effects_of(read_table(path))) == []


def test_every_prediction_has_its_outcome_and_its_tolerance():
    predictions = predict([PAD], shipped_metrics(), attacks=shipped_attacks())
    scored = score_predictions(predictions, [effect(), unknown()], rule=ScoringRule(tolerance=0.1))
    rows = predictions_table(scored, calls=CALLS).to_dict("records")
    told = {(row["attack"], row["metric"]): row for row in rows if row["metric"] == "verbatim_leak"}
    assert (told["ps", "verbatim_leak"]["movement"], told["ps", "verbatim_leak"]["outcome"]) == ("moved_down", "right")
    assert (told["ps", "verbatim_leak"]["n"], told["ps", "verbatim_leak"]["n_not_evaluated"]) == (8, 2)
    assert told["pm", "verbatim_leak"]["outcome"] == "not_evaluated"
    assert told["deal", "verbatim_leak"]["outcome"] == "not_run"
    assert pd.isna(told["deal", "verbatim_leak"]["n"])
    assert {row["tolerance"] for row in rows} == {0.1}
    assert told["ps", "verbatim_leak"]["calls_per_cell"] == 8.0
    assert pd.isna(told["deal", "verbatim_leak"]["calls_per_cell"])


def test_a_cell_that_another_stands_for_has_no_calls_of_its_own():
    run = cell_of("pad")
    again = cell_of("pad", cell_id="grid.email.s1.targeted_queries.pad@5.ps", same_as=run.cell_id)
    spent = use(run.cell_id, n_not_evaluated=1, lost_calls=(2,), attack_counts={"chunks": 4, "refusals": 1})
    table = cells_table([run, again], {run.cell_id: spent})
    first, second = table.to_dict("records")
    assert first["attack_counts"] == "chunks=4 refusals=1"
    assert (first["n_target_calls"], first["n_not_evaluated"]) == (3, 1)
    assert second["same_as"] == run.cell_id
    assert all(pd.isna(second[name]) for name in table.columns if name.startswith("n_"))


def benign(arm, question, **changes):
    given = {"answered": True, "refused": False, "gold_rank": 1, "not_evaluated": None}
    cell = cell_of(arm, attack="benign")
    return BenignOutcome(cell_id=cell.cell_id, doc_id="d1", question=question, **{**given, **changes})


def utility(none, pad):
    cells = cell_of("none", attack="benign"), cell_of("pad", attack="benign")
    rows = grid_rows(
        cells,
        uses={one.cell_id: use(one.cell_id) for one in cells},
        benign=dict(zip((one.cell_id for one in cells), (none, pad), strict=True)),
    )
    return {row["arm"]: row for row in utility_table(rows, k=2, resampling=RESAMPLING).to_dict("records")}


def test_utility_compares_the_same_questions_and_leaves_lost_ones_out():
    before = [benign("none", name) for name in "abcd"]
    after = [
        benign("pad", "a"),
        benign("pad", "b", answered=False, gold_rank=None),
        benign("pad", "c", answered=False, refused=True, gold_rank=None),
        benign("pad", "d", answered=False, not_evaluated="HTTP 503"),
    ]
    found = utility(before, after)
    assert (found["none"]["rate"], found["pad"]["n_questions"], found["pad"]["n_not_evaluated"]) == (1.0, 4, 1)
    assert found["pad"]["rate"] == pytest.approx(1 / 3)
    assert found["pad"]["difference"] == pytest.approx(-2 / 3)
    assert pd.isna(found["none"]["difference"])
    assert (found["pad"]["n_refused"], found["pad"]["refusal_rate"]) == (1, pytest.approx(1 / 3))
    assert (found["pad"]["n_retrieved"], found["pad"]["recall_at_k"]) == (2, 0.5)


def share(k, n, *, lost=0):
    rows = [True] * k + [False] * (n - k) + [None] * lost
    return count_share(rows, lambda row: row is True, unknown=lambda row: row is None)


def recovery(arm, k, n, *, lost=0):
    shares = dict.fromkeys(("exact", "normalised", "derived", "given_retrieved", "retrieved", "in_context", "controls"))
    return RecoveryRow(
        canary_class="email",
        arm=arm,
        attacks=("targeted_queries/ps",),
        seeds=(1, 2),
        **{**{name: share(0, n) for name in shares}, "exact": share(k, n, lost=lost)},
    )


def test_a_row_of_canaries_has_counts_unknown_ones_and_named_limits():
    row = one_row(canaries_table([recovery("pad", 2, 10, lost=3)], CALLS_OF_ARMS))
    assert (row["n_exact"], row["n_evaluated_exact"], row["n_not_evaluated_exact"]) == (2, 10, 3)
    assert (row["exact_rate"], row["exact_ci_method"], row["calls_per_cell"]) == (0.2, "clopper_pearson", 12.0)
    assert (round(row["exact_ci_low"], 4), round(row["exact_ci_high"], 4)) == (0.0252, 0.5561)


def test_a_case_that_was_not_run_has_empty_cells_and_its_reasons():
    given = CertificationRow(
        canary_class="email", arm="pad", verdict="not_run", reasons=("a", "b"), n_seeds=0, shared_words=()
    )
    row = one_row(certification_table([given], CALLS_OF_ARMS))
    assert (row["verdict"], row["reasons"], row["p_method"]) == ("not_run", "a; b", "")
    for name in ("n_undefended", "undefended_low", "n_defended", "defended_high", "p_value", "p_holm", "least_p"):
        assert pd.isna(row[name]), name


def test_unknown_canaries_are_counted_on_both_sides_of_a_certification():
    given = CertificationRow(
        canary_class="email",
        arm="pad",
        verdict="failed",
        reasons=("x",),
        n_seeds=2,
        undefended=recovery("none", 8, 10, lost=2),
        defended=recovery("pad", 1, 10, lost=3),
        shared_words=(),
    )
    row = one_row(certification_table([given], CALLS_OF_ARMS))
    assert (row["n_undefended"], row["n_undefended_not_evaluated"]) == (10, 2)
    assert (row["n_defended"], row["n_not_evaluated"]) == (10, 3)


def adaptive(**changes):
    given = {
        "corpus": "email",
        "arm": "pad",
        "family": ("denoise",),
        "fixed": "ps",
        "budget": 8,
        "development_seeds": (1, 2),
        "test_seeds": (3,),
    }
    return AdaptiveRow(**given, **changes)


def test_an_adaptive_row_without_a_number_says_why():
    given = adaptive(reason="nothing could be chosen")
    row = one_row(adaptive_table([given]))
    assert row["reason"] == "nothing could be chosen"
    assert all(pd.isna(row[name]) for name in ("lower_bound_rate", "ceiling_rate", "lift", "n_items"))
    assert (row["development_seeds"], row["check_seeds"], row["ci_method"]) == ("1 2", "3", "")


def test_unknown_items_are_counted_for_the_fixed_attack_as_well():
    given = adaptive(
        chosen="denoise",
        lower_bound=share(3, 10, lost=1),
        upper_bound=share(5, 10),
        fixed_share=share(2, 8, lost=4),
    )
    row = one_row(adaptive_table([given]))
    assert (row["n_items"], row["n_not_evaluated"], row["n_fixed_items"], row["n_fixed_not_evaluated"]) == (10, 1, 8, 4)


def test_a_rejected_split_has_counts_and_recall_alone():
    given = MembershipRow(
        cell_id="c",
        corpus="email",
        seed=1,
        mode="targeted_queries",
        arm="pad",
        split="rejected",
        n_members=4,
        n_non_members=3,
        members_not_evaluated=1,
        non_members_not_evaluated=2,
        recall=share(2, 4),
    )
    row = one_row(membership_table([given], {given.cell_id: use(given.cell_id, n_target_calls=40)}))
    assert (row["split"], row["n_members"], row["n_non_members"], row["n_not_evaluated"]) == ("rejected", 4, 3, 3)
    assert all(
        pd.isna(row[name]) for name in ("auc", "folded", "folded_p", "tpr_at_5", "control_auc", "beyond_control")
    )
    assert (row["n_targets"], row["n_targets_retrieved"], row["recall_rate"]) == (4, 2, 0.5)


def test_limits_are_named_as_those_within_the_run_and_what_has_none_is_not():
    table = effects_table([effect(), unknown()], sights(), calls=CALLS, seeds={})
    assert list(table["ci_scope"]) == ["within_run", ""]
    assert utility([benign("none", "a")], [benign("pad", "a")])["pad"]["ci_scope"] == "within_run"
    assert one_row(adaptive_table([adaptive()]))["ci_scope"] == ""
