"""A verdict held against what the judge is recorded to have replied."""

from __future__ import annotations

from typing import Any

import pytest

from mragaudit.config import Settings, load_settings
from mragaudit.judges.margins import Threshold
from mragaudit.judges.parser import parse_verdict
from mragaudit.records.results import Judgement
from mragaudit.stages.consistency import _of_decision

VLLM: dict[str, Any] = {"backend": "vllm", "model": "org/name", "sha256": None}
CHOICE = load_settings({"judge": {"mode": "choice"}, "roles": {"judge": VLLM}})
PARSE = load_settings({"judge": {"mode": "parse"}})


def faults(settings: Settings, *, verdict: Any, raw: str) -> list[str]:
    row = Judgement(
        trial_id="t", variant="english", verdict=verdict, raw=raw, margin=None, judged_text="q", not_evaluated=None
    )
    return list(_of_decision(row, None, settings=settings, read=parse_verdict))


@pytest.mark.parametrize("verdict", ["BLOCK", "ALLOW"])
def test_a_held_reply_that_is_the_verdict_is_in_order(verdict: str) -> None:
    assert faults(CHOICE, verdict=verdict, raw=verdict) == []


@pytest.mark.parametrize(("verdict", "raw"), [("ALLOW", "BLOCK"), ("ALLOW", "ALLOW it"), ("UNPARSED", "BLOCK")])
def test_a_verdict_other_than_the_held_reply_is_named(verdict: str, raw: str) -> None:
    assert faults(CHOICE, verdict=verdict, raw=raw) == [
        f'its verdict is {verdict}, and it was held to the reply "{raw}"'
    ]


def test_a_parsed_verdict_is_what_its_reply_says() -> None:
    assert faults(PARSE, verdict="ALLOW", raw="ALLOW.") == []
    assert faults(PARSE, verdict="ALLOW", raw="BLOCK.") == ["its verdict is not what its reply says"]


@pytest.mark.parametrize(
    ("raw", "fits"),
    [
        ("log p(BLOCK) -1.000000, log p(ALLOW) -3.000000", True),
        ("log p(BLOCK) -1.000000, log p(ALLOW) -2.000000", False),
        ("log p(BLOCK) -1.000000, log p(ALLOW) -3.000000 or so", False),
        ("BLOCK", False),
    ],
)
def test_a_margin_is_that_of_the_log_probabilities_in_its_reply_and_of_nothing_else(raw: str, *, fits: bool) -> None:
    threshold = Threshold(
        variant="english", threshold=0.0, target_rate=0.1, n_benign=10, n_blocked=1, n_not_evaluated=0
    )
    row = Judgement(
        trial_id="t", variant="english", verdict="BLOCK", raw=raw, margin=2.0, judged_text="q", not_evaluated=None
    )
    found = list(_of_decision(row, threshold, settings=load_settings({}), read=parse_verdict))
    assert found == ([] if fits else ["its margin is not the difference of its log-probabilities"])
