"""Predictions from the inventory, by hand for every kind of hook, and the attack map."""

from __future__ import annotations

from pathlib import Path

import pytest

from mragaudit.errors import ConfigError
from mragaudit.hookaudit.attacks import read_attacks, shipped_attacks
from mragaudit.hookaudit.inventory import audit_path
from mragaudit.hookaudit.matrix import ActiveHooks, found_defenses
from mragaudit.hookaudit.metrics import shipped_metrics
from mragaudit.hookaudit.predictions import grouped, predict

SUBJECTS = Path(__file__).parents[3] / "resources" / "hook_audit" / "subjects"
SCORES = ActiveHooks(defense="noise", active=("scores",))
MASKER = ActiveHooks(defense="masker", active=("response",))


def made(*defenses):
    return predict(defenses, shipped_metrics(), attacks=shipped_attacks())


def one(prediction_list, attack, metric):
    return next(p for p in prediction_list if (p.attack, p.metric) == (attack, metric))


@pytest.mark.parametrize(
    ("defense", "attack", "metric", "expectation"),
    [
        (SCORES, "ps", "nel_strict", "indirect"),
        (SCORES, "mi", "mi_auc", "expected_to_move"),
        (SCORES, "mi", "recall_at_k", "expected_to_move"),
        (MASKER, "ps", "nel_strict", "expected_to_move"),
        (MASKER, "mi", "mi_auc", "nuisance"),
        (MASKER, "mi", "recall_at_k", "not_observable"),
        (MASKER, "denoise", "linkage", "expected_to_move"),
    ],
)
def test_a_prediction_is_what_the_metric_sees_of_the_active_hooks(defense, attack, metric, expectation):
    found = one(made(defense), attack, metric)
    assert (found.expectation, found.hooks) == (expectation, defense.active)


def test_the_case_study_predicts_membership_to_move_under_noise_and_leaks_only_through_retrieval():
    defenses = found_defenses(audit_path(SUBJECTS).verdicts)
    predictions = predict(defenses, shipped_metrics(), attacks=shipped_attacks())
    of_noise = [p for p in predictions if p.defense == "DPRetrieval"]
    assert {p.metric for p in of_noise if p.expectation == "expected_to_move"} == {"mi_auc", "recall_at_k"}
    assert {p.expectation for p in of_noise if p.attack != "mi"} == {"indirect"}


def test_nothing_can_be_seen_of_a_defense_that_acts_nowhere():
    assert {p.expectation for p in made(ActiveHooks(defense="stub", active=()))} == {"not_observable"}


def test_an_attack_made_to_get_round_an_active_hook_says_that_the_metric_may_stay():
    found = one(made(SCORES), "repeat_union", "canary_recovery")
    assert (found.evaded, found.expectation) == (("scores",), "indirect")
    assert found.words.endswith("the attack is made to get round H1 scores, so the metric may stay")
    assert one(made(SCORES), "ps", "canary_recovery").evaded == ()


def test_a_hook_that_the_source_does_not_tell_of_leaves_a_prediction_open_where_it_would_change_it():
    predictions = made(ActiveHooks(defense="a", active=("scores",), undecided=("response",)))
    assert one(predictions, "ps", "canary_recovery").open_hooks == ("response",)
    assert one(predictions, "mi", "mi_auc").open_hooks == ()  # a nuisance more changes nothing


def test_a_hook_that_acts_in_one_form_only_leaves_the_prediction_on_it_open():
    predictions = made(ActiveHooks(defense="a", active=("response",), undecided=("response",)))
    assert one(predictions, "ps", "canary_recovery").open_hooks == ("response",)


def test_there_is_one_prediction_for_every_defense_attack_and_metric_of_the_attack():
    attacks = shipped_attacks()
    predictions = made(SCORES, MASKER)
    assert len(predictions) == 2 * sum(len(attack.metrics) for attack in attacks.attacks) == 92
    assert len({(p.defense, p.attack, p.metric) for p in predictions}) == 92


def test_rows_to_be_read_hold_every_prediction_once():
    predictions = made(SCORES, MASKER)
    rows = grouped(predictions)
    held = [(g.defense, a, m, g.expectation) for g in rows for a in g.attacks for m in g.metrics]
    assert sorted(held) == sorted((p.defense, p.attack, p.metric, p.expectation) for p in predictions)
    assert [g.attacks for g in rows if g.defense == "noise"][:2] == [("ps", "pm"), ("ikea", "deal", "rag_thief")]


def test_two_classes_of_one_name_are_told_apart_by_file_and_functions_go_by_module(tmp_path):
    hook = "    def process_response(self, response):\n        return response.upper()\n"
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(f"class Masker:\n{hook}")
    (tmp_path / "c.py").write_text("def mask_response(response):\n    return response.upper()\n")
    names = [found.defense for found in found_defenses(audit_path(tmp_path).verdicts)]
    assert names == ["Masker (a.py)", "Masker (b.py)", "functions of c.py"]


def test_an_inherited_hook_counts_for_the_class_that_inherits_it(tmp_path):
    (tmp_path / "base.py").write_text(
        "class Base:\n    def process_response(self, response):\n        return response.upper()\n"
    )
    (tmp_path / "sub.py").write_text(
        "from base import Base\nclass Sub(Base):\n"
        "    def perturb_scores(self, scores, rng):\n        return scores[:1]\n"
    )
    found = {one.defense: one.active for one in found_defenses(audit_path(tmp_path).verdicts)}
    assert found == {"Base": ("response",), "Sub": ("scores", "response")}


def test_the_shipped_attacks_are_the_six_of_the_case_study_and_six_probes_of_ours():
    attacks = shipped_attacks().attacks
    assert [a.name for a in attacks if a.kind != "probe"] == ["ps", "pm", "ikea", "deal", "rag_thief", "mi"]
    assert [a.name for a in attacks if a.spec == "own"] == [a.name for a in attacks if a.kind == "probe"]
    assert {a.name for a in attacks if a.spec == "assumption"} == {"ps", "pm"}


ATTACK = "{name: x, title: x, kind: probe, spec: own, aim: x, metrics: [mi_auc]%s}"


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (ATTACK % ", evades: [answer]", "hooks are query, scores"),
        (ATTACK % ", source: a paper", "`source` belongs to every attack"),
        (ATTACK.replace("[mi_auc]", "[]") % "", "at least one metric"),
        (ATTACK.replace("own", "assumption") % ", source: a paper", "`assumed` has to say"),
        (f"{ATTACK % ''}\n  - {ATTACK % ''}", "x stands there twice"),
    ],
)
def test_an_attack_map_that_says_too_little_or_too_much_is_refused(tmp_path, attack, words):
    path = tmp_path / "attacks.yaml"
    path.write_text(f"schema_version: 1\nattacks:\n  - {attack}\n")
    with pytest.raises(ConfigError, match=words) as refused:
        read_attacks(path)
    assert "attacks.yaml" in str(refused.value)


def test_an_attack_scored_by_an_unknown_metric_is_named_with_the_nearest(tmp_path):
    path = tmp_path / "attacks.yaml"
    path.write_text(f"schema_version: 1\nattacks:\n  - {(ATTACK % '').replace('mi_auc', 'mi_auk')}\n")
    with pytest.raises(ConfigError, match='attack "x": metric "mi_auk" is unknown; did you mean "mi_auc"'):
        predict([SCORES], shipped_metrics(), attacks=read_attacks(path))


def test_an_unknown_attack_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match='did you mean "rag_thief"'):
        shipped_attacks().attack("ragthief")
