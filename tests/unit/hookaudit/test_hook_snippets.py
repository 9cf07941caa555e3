"""Verdicts on hand-written hooks, and on the field cases of component "hooks"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from mragaudit.hookaudit.inventory import audit_source

HERE = Path(__file__).parent
SNIPPETS = yaml.safe_load((HERE / "hook_snippets.yaml").read_text(encoding="utf-8"))
CASES = [
    case
    for line in (HERE.parents[1] / "golden" / "field_cases.jsonl").read_text(encoding="utf-8").split("\n")
    if line and (case := json.loads(line))["component"] == "hooks"
]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[snippet["name"] for snippet in SNIPPETS])
def test_a_hand_written_hook_gets_its_verdict(snippet):
    (verdict,) = audit_source(
        snippet["source"], class_name=snippet.get("class", "Hook"), hooks=[snippet.get("hook", "process_response")]
    )
    expected = {
        name: snippet[name] for name in ("status", "default", "condition", "kind", "fail_open") if name in snippet
    }
    assert {name: getattr(verdict, name) for name in expected} == expected, verdict.evidence


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_field_case_gets_its_verdict(case):
    given, expected = case["input"], dict(case["expected"])
    verdicts = audit_source(given["source"], class_name=given["class"], hooks=given["hooks"])
    found = {verdict.method: verdict.status for verdict in verdicts}
    assert found == {hook: expected.pop(hook) for hook in given["hooks"]}
    assert {name: getattr(verdicts[-1], name) for name in expected} == expected


def test_there_are_field_cases():
    assert len(CASES) >= 7
