"""The grid's own defenses by their source, and what each metric can say of its arms."""

import pytest

from mragaudit.grid.hooks import HookFindings, arm_hooks, coverage_table, hooks_table, matrix_table
from mragaudit.hookaudit.inventory import audit_path
from mragaudit.hookaudit.maps import shipped_maps
from mragaudit.hookaudit.metrics import shipped_metrics
from mragaudit.hookaudit.probe.records import Observation
from mragaudit.records.grid import Arm
from mragaudit.stages.grid_hooks import DEFENSES, OWN_MAP

ALL = ("ca_dp", "dp_r", "lprag", "none", "pad", "private_rag")


@pytest.fixture(scope="module")
def inventory():
    return audit_path(DEFENSES, tuple(one for one in shipped_maps() if one.name == OWN_MAP))


def arm(*defenses, epsilon=None):
    return Arm(name="+".join(defenses), defenses=defenses, epsilon=epsilon)


def acting(inventory, *defenses):
    [found] = arm_hooks([arm(*defenses)], inventory)
    return found.active


@pytest.mark.parametrize(
    ("defense", "hooks"),
    [
        ("none", ()),
        ("dp_r", ("scores",)),
        ("ca_dp", ("scores",)),
        ("private_rag", ("scores",)),
        ("pad", ("response",)),
        ("lprag", ("documents", "response")),
    ],
)
def test_each_defense_acts_where_it_was_built_to(defense, hooks, inventory):
    assert acting(inventory, defense) == hooks


def test_a_combination_acts_wherever_a_part_does(inventory):
    assert acting(inventory, "dp_r", "lprag") == ("scores", "documents", "response")


def test_declared_and_static_agree_on_every_hook_of_the_grid(inventory):
    table = hooks_table(HookFindings(inventory=inventory, observations=None, not_probed="no sandbox"), ALL)
    assert len(table) == 6
    assert set(table["declared"]) == set(table["static"]) == {"active"}
    assert set(table["observed"]) == {"not probed"}
    assert table["n_inputs"].isna().all()


def test_what_a_probe_saw_stands_beside_and_a_clash_is_named(inventory):
    verdict = next(one for one in inventory.verdicts if one.class_name == "RegexMasker")
    seen = Observation(
        file=verdict.file,
        name=verdict.name,
        hook=verdict.hook,
        outcome="unchanged",
        n_inputs=5,
        n_changed=0,
        detail="",
    )
    table = hooks_table(HookFindings(inventory=inventory, observations=(seen,), not_probed=""), ["pad"])
    [row] = table.to_dict("records")
    assert (row["static"], row["n_inputs"], row["n_changed"]) == ("active", 5, 0)
    assert "no effect seen" in row["observed"]
    assert row["disagreement"]


def test_a_masker_of_the_response_is_seen_by_leaks_and_not_by_recall(inventory):
    table = matrix_table(arm_hooks([arm("pad")], inventory), shipped_metrics())
    sights = dict(zip(table["metric"], zip(table["sight"], table["reported_as_effect"], strict=True), strict=True))
    assert sights["verbatim_leak"] == ("interpretable", True)
    assert sights["mi_auc"] == ("nuisance", False)
    assert sights["recall_at_k"] == ("not_observable", False)


def test_noise_on_scores_is_seen_by_leaks_only_through_retrieval(inventory):
    table = matrix_table(arm_hooks([arm("dp_r", epsilon=1.0)], inventory), shipped_metrics())
    sights = dict(zip(table["metric"], table["sight"], strict=True))
    assert (sights["canary_recovery"], sights["recall_at_k"]) == ("indirect", "interpretable")


def test_coverage_names_what_each_combination_leaves_open_and_skips_none():
    table = coverage_table([("none",), ("pad",), ("pad", "lprag")])
    assert set(table["defenses"]) == {"pad", "pad+lprag"}
    of_pad = table[(table["defenses"] == "pad") & (table["leak_class"] == "person_name")].to_dict("records")[0]
    assert of_pad["is_open"]
    both = table[(table["defenses"] == "pad+lprag") & (table["leak_class"] == "email")].to_dict("records")[0]
    assert "pad at response" in both["covered_at"]
    assert "lprag at documents" in both["covered_at"]
