"""Our own defenses under our own hook audit: declared, static and observed agree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mragaudit.defenses.arms import defense_class
from mragaudit.errors import MissingPackageError
from mragaudit.hookaudit.inventory import audit_path
from mragaudit.hookaudit.probe import sandbox
from mragaudit.hookaudit.probe.run import probe_inventory
from mragaudit.provenance import PACKAGE_ROOT
from mragaudit.registry import names

FOLDER = PACKAGE_ROOT / "defenses"
ACTING = {
    "none": (),
    "dp_r": ("scores",),
    "ca_dp": ("scores",),
    "private_rag": ("scores",),
    "pad": ("response",),
    "lprag": ("documents", "response"),
}
USER_DEFENSE = """
from mragaudit.defenses.base import BaseDefense

class Mine(BaseDefense):
    declared_hooks = ("response",)

    def proces_response(self, response, *, turn):
        return response.replace("@", "#")
"""


def sandbox_works() -> bool:
    try:
        sandbox.require_sandbox()
    except MissingPackageError:
        return False
    return True


needs_sandbox = pytest.mark.skipif(
    not sandbox_works() and os.environ.get("CI") != "true", reason="no sandbox works here: bwrap is missing or refused"
)


def test_every_defense_declares_the_hooks_that_it_is_meant_to_act_at():
    assert {name: defense_class(name).declared_hooks for name in names("defense")} == ACTING


def test_the_inventory_lists_every_declared_hook_as_active_and_no_inherited_empty_one():
    expected = {(defense_class(name).__name__, hook) for name, hooks in ACTING.items() for hook in hooks}
    verdicts = [verdict for verdict in audit_path(FOLDER).verdicts if verdict.class_name != "Composition"]
    assert {(verdict.class_name, verdict.hook) for verdict in verdicts} == expected
    assert {(verdict.status, verdict.declared) for verdict in verdicts} == {("active", True)}


@needs_sandbox
def test_the_probe_sees_an_effect_at_every_declared_hook():
    seen = [found for found in probe_inventory(FOLDER, audit_path(FOLDER)) if not found.name.startswith("Composition.")]
    assert {found.outcome for found in seen} == {"changed"}
    assert len(seen) == sum(map(len, ACTING.values()))
    assert all(found.n_changed == found.n_inputs and not found.detail for found in seen)


def test_a_declared_hook_that_a_class_only_inherits_is_listed_as_inactive(tmp_path):
    package = tmp_path / "mragaudit" / "defenses"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "base.py").write_text((FOLDER / "base.py").read_text(encoding="utf-8"), encoding="utf-8")
    (package / "mine.py").write_text(USER_DEFENSE)
    (verdict,) = audit_path(tmp_path).verdicts
    assert (verdict.name, verdict.status, verdict.kind) == (
        "Mine.process_response",
        "inactive",
        "delegates_to_identity",
    )


def test_a_base_of_the_same_name_elsewhere_is_audited(tmp_path):
    (tmp_path / "base.py").write_text("class BaseDefense:\n    def process_query(self, query):\n        return query\n")
    assert [verdict.name for verdict in audit_path(Path(tmp_path)).verdicts] == ["BaseDefense.process_query"]
