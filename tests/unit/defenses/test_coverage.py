"""What the coverage table claims, held against what the defenses do."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest

from mragaudit.defenses.arms import make_arm
from mragaudit.defenses.coverage import LEAK_CLASSES, coverage
from mragaudit.rag.hooks import Turn
from mragaudit.records.grid import Arm
from mragaudit.registry import names

ITEMS = {
    "email": "margaret.oduya@corp.example",
    "person_name": "Margaret Oduya",
    "phone": "+1 202-555-0147",
    "id": "SSN 912-34-5678",
}
CARRIER = "The contact is {item} for this contract."
COMBINATIONS = [*((name,) for name in names("defense")), ("dp_r", "lprag"), ("pad", "lprag"), ("dp_r", "pad")]


def turn(seed: int = 0) -> Turn:
    return Turn(principal="p", session=f"s{seed}", rng=np.random.default_rng(seed))


def made(defenses: tuple[str, ...]):
    arm = Arm(name="+".join(defenses), defenses=defenses, epsilon=1.0)
    return make_arm(arm, k=5, public_threshold=0.5)


def covered(defenses: tuple[str, ...], leak_class: str) -> tuple[tuple[str, str], ...]:
    (row,) = (row for row in coverage(defenses) if row.leak_class == leak_class)
    return tuple((acting.defense, acting.hook) for acting in row.covered)


def survives(defenses: tuple[str, ...], text: str, *, hook: str) -> bool:
    defense = made(defenses)
    carrier = CARRIER.format(item=text)
    if hook == "documents":
        return text in defense.rewrite_documents([carrier], turn=turn())[0]
    return text in defense.process_response(carrier, turn=turn())


@pytest.mark.parametrize("defenses", COMBINATIONS, ids="+".join)
@pytest.mark.parametrize("leak_class", ITEMS)
def test_an_item_is_gone_behind_the_hooks_that_cover_its_class_and_stands_behind_all_others(defenses, leak_class):
    hooks = {hook for _, hook in covered(defenses, leak_class)}
    for hook in ("documents", "response"):
        assert survives(defenses, ITEMS[leak_class], hook=hook) is (hook not in hooks)


def test_the_regex_masker_leaves_names_open_and_the_entity_substitution_phones_and_ids():
    open_classes = {name: [row.leak_class for row in coverage((name,)) if row.is_open] for name in ("pad", "lprag")}
    assert open_classes == {
        "pad": ["person_name", "membership", "verbatim_text"],
        "lprag": ["phone", "id", "membership", "verbatim_text"],
    }


@pytest.mark.parametrize("defenses", COMBINATIONS, ids="+".join)
@pytest.mark.parametrize("leak_class", ITEMS)
def test_encoded_output_is_open_whatever_is_combined(defenses, leak_class):
    encoded = base64.b64encode(ITEMS[leak_class].encode()).decode()
    assert survives(defenses, encoded, hook="response")


@pytest.mark.parametrize("defenses", COMBINATIONS, ids="+".join)
def test_membership_is_covered_exactly_where_the_target_is_retrieved_less_often(defenses):
    scores = np.append(np.random.default_rng(0).normal(0.3, 0.1, size=49), 0.75)
    found = 0
    for seed in range(200):
        ranked = made(defenses).perturb_scores(scores, turn=turn(seed))
        found += np.isfinite(ranked[-1]) and (ranked > ranked[-1]).sum() < 5
    assert bool(found < 150) is bool(covered(defenses, "membership"))


@pytest.mark.parametrize("defenses", COMBINATIONS, ids="+".join)
def test_ordinary_text_reaches_the_asker_letter_by_letter_and_is_covered_by_nothing(defenses):
    text = "The delivery was moved to the second week of the month, because the road is closed."
    assert covered(defenses, "verbatim_text") == ()
    assert made(defenses).process_response(text, turn=turn()) == text
    assert made(defenses).rewrite_documents([text], turn=turn()) == [text]


def test_a_combination_covers_what_its_parts_cover_and_names_what_gets_past():
    rows = {row.leak_class: row for row in coverage(("dp_r", "lprag"))}
    assert tuple(rows) == LEAK_CLASSES
    assert [(a.defense, a.hook) for a in rows["email"].covered] == [("lprag", "documents"), ("lprag", "response")]
    assert [(a.defense, a.hook) for a in rows["email"].indirect] == [("dp_r", "scores")]
    assert rows["email"].open_hooks == ("query", "scores", "generation")
    assert [(a.defense, a.hook) for a in rows["membership"].covered] == [("dp_r", "scores")]
    assert all(acting.limits for row in rows.values() for acting in (*row.covered, *row.indirect))


def test_without_a_defense_every_class_is_open_at_every_hook():
    assert all(row.is_open and not row.indirect and len(row.open_hooks) == 5 for row in coverage(("none",)))


def test_the_documentation_prints_the_table():
    def cell(row):
        return ", ".join(dict.fromkeys(acting.hook for acting in row.covered)) or (
            f"({', '.join(dict.fromkeys(acting.hook for acting in row.indirect))})" if row.indirect else "open"
        )

    printed = (
        (Path(__file__).parents[3] / "docs" / "hook_audit" / "defenses.md").read_text(encoding="utf-8").splitlines()
    )
    order = ("none", "dp_r", "ca_dp", "private_rag", "pad", "lprag")
    for defenses in (*((name,) for name in order), ("dp_r", "lprag"), ("pad", "lprag")):
        assert f"| {'+'.join(defenses)} | {' | '.join(map(cell, coverage(defenses)))} |" in printed
