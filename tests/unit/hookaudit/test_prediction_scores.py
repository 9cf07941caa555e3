"""The rule by which a run bears predictions out, by hand, case by case."""

from __future__ import annotations

import msgspec
import pytest

from mragaudit.errors import DataError
from mragaudit.hookaudit.attacks import shipped_attacks
from mragaudit.hookaudit.matrix import ActiveHooks
from mragaudit.hookaudit.metrics import shipped_metrics
from mragaudit.hookaudit.predictions import Effect, ScoringRule, classify, predict, score_predictions

RULE = ScoringRule(tolerance=0.1, tolerances={"nel_strict": 0.5})
DEFENSES = (
    ActiveHooks(defense="masker", active=("response",)),
    ActiveHooks(defense="noise", active=("scores",)),
    ActiveHooks(defense="riddle", active=(), undecided=("response",)),
)
PREDICTIONS = predict(DEFENSES, shipped_metrics(), attacks=shipped_attacks())


def effect(defense="masker", attack="ps", metric="canary_recovery", *, interval=(-0.5, -0.2), n=60, **other):
    low, high = interval
    values = {
        "baseline": 0.4,
        "defended": 0.4 + (low + high) / 2,
        "difference": (low + high) / 2,
        "ci_low": low,
        "ci_high": high,
        "ci_method": "bootstrap_paired",
        "n": n,
        "n_not_evaluated": 0,
    }
    return Effect(defense=defense, attack=attack, metric=metric, **(values | other))


NOTHING = {"baseline": None, "defended": None, "difference": None, "ci_low": None, "ci_high": None, "ci_method": ""}


@pytest.mark.parametrize(
    ("interval", "movement"),
    [
        ((-0.5, -0.2), "moved_down"),
        ((0.01, 0.3), "moved_up"),
        ((0.01, 0.05), "moved_up"),
        ((-0.3, 0.0), "unclear"),
        ((0.0, 0.09), "not_moved"),
        ((-0.09, 0.09), "not_moved"),
        ((-0.1, 0.05), "unclear"),
        ((-0.05, 0.1), "unclear"),
        ((0.0, 0.0), "unclear"),
        ((0.2, 0.2), "moved_up"),
    ],
)
def test_a_metric_moved_when_its_interval_excludes_0_and_did_not_when_it_lies_inside_the_tolerance(interval, movement):
    assert classify(effect(interval=interval), RULE)[0] == movement


def test_a_metric_may_have_a_tolerance_of_its_own():
    assert classify(effect(metric="nel_strict", interval=(-0.4, 0.4)), RULE)[0] == "not_moved"


def test_a_movement_within_the_tolerance_says_so():
    assert classify(effect(interval=(0.01, 0.05)), RULE)[1] == "the interval excludes 0, though by less than 0.1"


@pytest.mark.parametrize(("n", "movement"), [(5, "unclear"), (6, "moved_down")])
def test_fewer_than_six_units_prove_nothing(n, movement):
    assert classify(effect(n=n), RULE)[0] == movement


@pytest.mark.parametrize(("n", "movement"), [(5, "unclear"), (6, "not_moved")])
def test_arms_that_are_identical_on_six_units_did_not_move(n, movement):
    assert classify(effect(interval=(0.0, 0.0), n=n, identical=True), RULE)[0] == movement


def test_without_an_interval_nothing_is_told():
    assert classify(effect(ci_low=None, ci_high=None, ci_method=""), RULE) == ("unclear", "no interval")


def test_what_was_not_evaluated_is_no_zero():
    found = classify(effect(n=0, n_not_evaluated=60, **NOTHING), RULE)
    assert found == ("not_evaluated", "n = 0, 60 not evaluated")


@pytest.mark.parametrize(
    ("attack", "metric", "interval", "outcome"),
    [
        ("ps", "canary_recovery", (-0.5, -0.2), "right"),
        ("ps", "canary_recovery", (0.2, 0.5), "right"),
        ("ps", "canary_recovery", (-0.05, 0.05), "wrong"),
        ("ps", "canary_recovery", (-0.3, 0.1), "undecided"),
        ("mi", "recall_at_k", (-0.5, -0.2), "wrong"),
        ("mi", "recall_at_k", (-0.05, 0.05), "right"),
        ("mi", "recall_at_k", (-0.3, 0.1), "undecided"),
        ("mi", "mi_auc", (-0.5, -0.2), "apart"),
        ("mi", "mi_auc", (-0.05, 0.05), "apart"),
    ],
)
def test_the_outcome_of_a_prediction_on_the_masker(attack, metric, interval, outcome):
    scores = score_predictions(PREDICTIONS, [effect(attack=attack, metric=metric, interval=interval)], rule=RULE)
    assert [s.outcome for s in scores.scored if s.effect is not None] == [outcome]


@pytest.mark.parametrize("interval", [(-0.5, -0.2), (-0.05, 0.05)])
def test_a_prediction_on_what_the_source_does_not_tell_is_neither_right_nor_wrong(interval):
    scores = score_predictions(PREDICTIONS, [effect("riddle", interval=interval)], rule=RULE)
    (found,) = [s for s in scores.scored if s.effect is not None]
    assert found.outcome == "undecided"
    assert found.words.endswith("the source does not tell whether H4 response acts")


def test_the_counts_by_expectation_by_hand():
    effects = [
        effect(attack="ps", interval=(-0.5, -0.2)),  # right
        effect(attack="pm", interval=(-0.05, 0.05)),  # wrong
        effect(attack="ikea", interval=(-0.3, 0.3)),  # undecided
        effect(attack="deal", n=0, n_not_evaluated=60, **NOTHING),
        effect(attack="mi", metric="recall_at_k", interval=(0.0, 0.0), identical=True),  # right
        effect(attack="mi", metric="mi_auc", interval=(-0.4, -0.2)),  # nuisance, moved
        effect("noise", interval=(0.2, 0.4)),  # indirect, moved up
        effect("noise", attack="pm", interval=(-0.02, 0.02)),  # indirect, stayed
    ]
    scores = score_predictions(PREDICTIONS, effects, rule=RULE)
    counts = {count.expectation: msgspec.structs.asdict(count) for count in scores.counts}
    moving, unseen, indirect, nuisance = (
        counts[name] for name in ("expected_to_move", "not_observable", "indirect", "nuisance")
    )
    assert [moving[key] for key in ("right", "wrong", "undecided", "not_evaluated")] == [1, 1, 1, 1]
    assert [moving[key] for key in ("moved_down", "moved_up", "not_moved", "unclear")] == [1, 0, 1, 1]
    assert [unseen[key] for key in ("right", "wrong", "undecided")] == [1, 0, 0]
    assert [indirect[key] for key in ("right", "moved_up", "moved_down", "not_moved")] == [None, 1, 0, 1]
    assert [nuisance[key] for key in ("wrong", "moved_down")] == [None, 1]
    assert (scores.count("right"), scores.count("wrong"), scores.count("undecided"), scores.count("apart")) == (
        2,
        1,
        1,
        3,
    )
    movements = ("moved_up", "moved_down", "not_moved", "unclear", "not_evaluated", "not_run")
    assert all(sum(count[key] for key in movements) == count["n"] for count in counts.values())
    assert sum(count["n"] for count in counts.values()) == len(PREDICTIONS) == len(scores.scored)


def test_several_cells_of_one_prediction_are_scored_one_by_one():
    cells = [effect(cell="email, epsilon 1"), effect(cell="email, epsilon 5", interval=(-0.05, 0.05))]
    scores = score_predictions(PREDICTIONS, cells, rule=RULE)
    assert [s.outcome for s in scores.scored if s.effect is not None] == ["right", "wrong"]
    assert len(scores.scored) == len(PREDICTIONS) + 1


def test_a_run_without_effects_decides_nothing():
    scores = score_predictions(PREDICTIONS, [], rule=RULE)
    assert {s.outcome for s in scores.scored} == {"not_run"}


def test_an_effect_that_nobody_predicted_is_refused_with_the_nearest_name():
    with pytest.raises(DataError, match='maskr ps canary_recovery has no prediction; did you mean "masker ps canary_r'):
        score_predictions(PREDICTIONS, [effect("maskr")], rule=RULE)


def test_two_effects_of_one_name_are_refused():
    with pytest.raises(DataError, match="two effects are called masker ps canary_recovery; tell them apart by `cell`"):
        score_predictions(PREDICTIONS, [effect(), effect()], rule=RULE)


def test_two_defenses_of_one_name_are_refused():
    with pytest.raises(DataError, match="defenses need names of their own"):
        score_predictions([*PREDICTIONS, PREDICTIONS[0]], [], rule=RULE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 0}, "all missing where n is 0"),
        ({"defended": None}, "all given"),
        ({"ci_low": None}, "two limits and a name"),
        ({"ci_method": ""}, "two limits and a name"),
        ({"interval": (0.2, 0.1)}, "the lower limit 0.2 is above the upper one 0.1"),
        ({"difference": float("nan")}, "not finite"),
        ({"identical": True}, "identical arms have the difference 0"),
        ({"n_not_evaluated": -1}, "counts are not negative"),
    ],
)
def test_an_effect_that_contradicts_itself_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        effect(**change)


@pytest.mark.parametrize("tolerances", [{"tolerance": 0.0}, {"tolerance": 0.1, "tolerances": {"mi_auc": -0.1}}])
def test_a_tolerance_is_above_0(tolerances):
    with pytest.raises(ValueError, match="a tolerance is above 0"):
        ScoringRule(**tolerances)
