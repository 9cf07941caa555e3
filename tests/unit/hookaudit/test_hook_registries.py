"""What other modules, or the second of two definitions, do to a hook."""

from __future__ import annotations

import pytest

from mragaudit.hookaudit.inventory import audit_source

HOOK = """
from pkg.registry import STEPS, registry
class Hook:
    def process_response(self, response):
        for step in {steps}:
            response = step(response)
        return response
"""
REGISTRY = """
STEPS = []
def step(fn):
    STEPS.append(fn)
    return fn
class Registry:
    def __init__(self):
        self.rules = []
    def register(self, fn):
        self.rules.append(fn)
        return fn
registry = Registry()
"""
FILLERS = {
    "imported decorator": ("STEPS", "from pkg.registry import step\n@step\ndef up(t): return t.upper()"),
    "decorator of a module": ("STEPS", "from pkg import registry\n@registry.step\ndef up(t): return t.upper()"),
    "method of the list": ("STEPS", "from pkg.registry import STEPS\nSTEPS.append(str.upper)"),
    "method of an object": (
        "registry.rules",
        "from pkg.registry import registry\n@registry.register\ndef up(t): return t.upper()",
    ),
}
TWICE = """
import platform, sys
if {test}:
    class Hook:
        def process_response(self, response):
            return response.upper()
else:
    class Hook:
        def process_response(self, response):
            return {other}
"""


def verdict_of(source):
    (verdict,) = audit_source(source, class_name="Hook", hooks=["process_response"])
    return verdict


@pytest.mark.parametrize("name", FILLERS)
def test_a_registry_that_another_module_fills_is_unknown(name):
    steps, filler = FILLERS[name]
    verdict = verdict_of({"pkg.hook": HOOK.format(steps=steps), "pkg.registry": REGISTRY, "pkg.rules": filler})
    assert (verdict.status, "filled by `pkg.rules`" in verdict.evidence) == ("unknown", True)


def test_a_registry_that_nobody_fills_does_nothing():
    source = {"pkg.hook": HOOK.format(steps="STEPS"), "pkg.registry": REGISTRY, "pkg.rules": "X = 1"}
    assert verdict_of(source).default == "inactive"


@pytest.mark.parametrize(
    ("test", "other", "status"),
    [
        ("sys.version_info >= (3, 8)", "response", "active"),
        ("sys.version_info < (3, 8)", "response", "inactive"),
        ("platform.system() == 'Linux'", "response", "unknown"),
        ("platform.system() == 'Linux'", "response.lower()", "active"),
    ],
)
def test_of_two_definitions_of_a_class_the_one_that_holds_counts(test, other, status):
    assert verdict_of(TWICE.format(test=test, other=other)).status == status
