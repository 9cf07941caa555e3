"""The metric-to-channel map and the interpretability matrix, against the published table of the case study."""

from __future__ import annotations

# ruff: noqa: E501  # source of audited code, one string a line of it
from pathlib import Path

import pytest

from mragaudit.errors import ConfigError
from mragaudit.hookaudit.inventory import audit_path
from mragaudit.hookaudit.matrix import ActiveHooks, active_hooks, build_matrix, cell, combined
from mragaudit.hookaudit.metrics import read_metrics, shipped_metrics

SUBJECTS = Path(__file__).parents[3] / "resources" / "hook_audit" / "subjects"
CLASSES = {
    "dp_r": "DPRetrieval",
    "ca_dp": "CompositionAwareDP",
    "private_rag": "PrivateRAGFilter",
    "pad": "RegexMasker",
    "lprag": "EntitySubstitution",
}


@pytest.fixture(scope="module")
def defenses():
    verdicts = audit_path(SUBJECTS).verdicts
    return {name: active_hooks(name, [v for v in verdicts if v.class_name == cls]) for name, cls in CLASSES.items()}


@pytest.mark.parametrize("name", ["dp_r", "ca_dp", "private_rag"])
def test_leak_metrics_see_the_dp_stubs_only_through_retrieval(defenses, name):
    metrics = shipped_metrics()
    assert cell(defenses[name], metrics.metric("nel_strict")).sight == "indirect"
    assert cell(defenses[name], metrics.metric("canary_recovery")).sight == "indirect"
    assert cell(defenses[name], metrics.metric("mi_auc")).sight == "interpretable"
    assert cell(defenses[name], metrics.metric("recall_at_k")).sight == "interpretable"


def test_the_masker_is_a_nuisance_to_membership_inference(defenses):
    found = cell(defenses["pad"], shipped_metrics().metric("mi_auc"))
    assert found.sight == "nuisance"
    assert not found.reported_as_effect
    assert "without touching membership" in found.words


def test_the_masker_is_not_observable_in_retrieval(defenses):
    found = cell(defenses["pad"], shipped_metrics().metric("recall_at_k"))
    assert (found.sight, found.hooks) == ("not_observable", ("response",))
    assert not found.reported_as_effect


def test_entity_substitution_is_interpretable_by_leak_metrics(defenses):
    found = cell(defenses["lprag"], shipped_metrics().metric("canary_recovery"))
    assert (found.sight, found.hooks) == ("interpretable", ("documents", "response"))


def test_no_metric_sees_a_defense_that_acts_nowhere():
    nothing = ActiveHooks(defense="none", active=())
    assert {c.sight for c in build_matrix([nothing], shipped_metrics())} == {"not_observable"}


def test_a_combination_acts_wherever_one_of_its_parts_does(defenses):
    both = combined([defenses["dp_r"], defenses["lprag"]])
    assert (both.defense, both.active) == ("dp_r+lprag", ("scores", "documents", "response"))


def test_a_conditional_hook_counts_as_it_is_by_default(tmp_path):
    (tmp_path / "code.py").write_text(
        "class A:\n    on = False\n    def process_response(self, response):\n"
        "        return response.upper() if self.on else response\n"
    )
    assert active_hooks("a", audit_path(tmp_path).verdicts).active == ()


def test_an_unknown_hook_is_named_beside_the_cell(tmp_path):
    (tmp_path / "code.py").write_text(
        "from elsewhere import mask\nclass A:\n    def process_response(self, response):\n        return mask(response)\n"
    )
    found = active_hooks("a", audit_path(tmp_path).verdicts)
    assert (found.active, found.undecided) == ((), ("response",))
    assert "not told by the source: H4 response" in cell(found, shipped_metrics().metric("nel_strict")).words


def test_a_filled_async_form_beside_a_stubbed_sync_one_is_active_and_undecided(tmp_path):
    (tmp_path / "code.py").write_text(
        "class A:\n    def process_response(self, response):\n        return response\n"
        "    async def aprocess_response(self, response):\n        return response.upper()\n"
    )
    found = active_hooks("a", audit_path(tmp_path).verdicts)
    assert (found.active, found.undecided) == (("response",), ("response",))


def test_the_matrix_has_a_cell_for_every_defense_and_metric(defenses):
    metrics = shipped_metrics()
    cells = build_matrix(defenses.values(), metrics)
    assert len({(c.defense, c.metric) for c in cells}) == len(defenses) * len(metrics.metrics) == 45


def test_a_hook_in_two_lists_is_refused(tmp_path):
    (tmp_path / "m.yaml").write_text(
        "schema_version: 1\nmetrics:\n  - {name: a, title: a, channel: text, observes: [query], through: {query: b}}\n"
    )
    with pytest.raises(ConfigError, match="query stands in more than one"):
        read_metrics(tmp_path / "m.yaml")


def test_an_unknown_metric_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match='did you mean "mi_auc"'):
        shipped_metrics().metric("mi_auk")
