"""The regex masker on the forms of `resources/defenses/masker_cases.yaml`, which the documentation prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from mragaudit.defenses.regex_masker import RegexMasker
from mragaudit.rag.hooks import Turn

REPOSITORY = Path(__file__).parents[3]
CASES_FILE = REPOSITORY / "resources" / "defenses" / "masker_cases.yaml"
CASES = yaml.safe_load(CASES_FILE.read_text(encoding="utf-8"))["cases"]
TURN = Turn(principal="p", session="s", rng=np.random.default_rng(0))
TAGS = {"email": "[EMAIL]", "phone": "[PHONE]", "id": "[ID]"}


def outcome(case: dict[str, str], patterns: str) -> str:
    before, after = case["text"].split("{}")
    text = RegexMasker(patterns=patterns).process_response(before + case["item"] + after, turn=TURN)
    if text == before + TAGS[case["kind"]] + after:
        return "masked"
    return "passes" if case["item"] in text else "part"


@pytest.mark.parametrize("case", CASES, ids=[f"{case['kind']}: {case['form']}" for case in CASES])
def test_each_form_is_masked_or_gets_past_as_the_table_says(case):
    assert {patterns: outcome(case, patterns) for patterns in case["outcome"]} == case["outcome"]


def test_the_documentation_prints_the_table():
    printed = (REPOSITORY / "docs" / "hook_audit" / "defenses.md").read_text(encoding="utf-8").splitlines()
    rows = [
        f"| {case['kind']} | {case['form']} | {case['outcome']['regex_unicode']} | {case['outcome']['regex_ascii']} |"
        for case in CASES
    ]
    assert [row for row in printed if row in set(rows)] == rows


def test_every_form_that_the_reference_asks_for_is_in_the_table():
    forms = {case["form"] for case in CASES if case["kind"] == "email"}
    asked = {
        "plus addressing", "subdomains", "internationalised domain", "spelled out", "zero-width space inside",
        "full-width characters", "line break behind the sign", "line break inside the domain",
    }  # fmt: skip
    assert asked <= forms
