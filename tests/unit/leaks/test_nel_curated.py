"""Recall, specificity and precision of the NEL_strict classifier, held at the measured numbers."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mragaudit.leaks.nel import classify

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "nel"
FROZEN = "f41ed1dcfa4bc0331bca58e52e1c95f09e1c7fa4d87dc7a1ec89a547857b165d"
HELD_OUT = "86823cdf04aca5e0a082872acbe447383f74c659c243f441c179b4e69b0b398b"


def load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


maker = load_tool("nel_curated")
recall = load_tool("nel_recall")
precision = load_tool("nel_precision")


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "digest"), [("curated.jsonl", FROZEN), ("held_out.jsonl", HELD_OUT)])
def test_the_sets_are_as_they_were_frozen(name: str, digest: str) -> None:
    assert hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", ["curated.jsonl", "held_out.jsonl"])
def test_the_script_makes_the_same_set_again(name: str, tmp_path: Path) -> None:
    made = tmp_path / name

    if name == "curated.jsonl":
        maker.main(out=made)
    else:
        maker.main(out=made, seed=20261201, without=GOLDEN / "curated.jsonl")

    assert made.read_bytes() == (GOLDEN / name).read_bytes()


def test_every_headline_type_and_language_has_fifty_of_either_kind() -> None:
    for name in ("EMAIL_REAL", "PERSON_NAME"):
        for lang in ("en", "zh", "de", "ar", "sw"):
            chosen = [row for row in rows("curated.jsonl") if row["type"] == name and row["lang"] == lang]
            assert sum(row["positive"] for row in chosen) >= 50
            assert len({row["text"] for row in chosen if not row["positive"]}) >= 50


@pytest.mark.parametrize("name", ["curated.jsonl", "held_out.jsonl"])
def test_recall_and_specificity_are_as_measured(name: str) -> None:
    golden = json.loads((GOLDEN / "measured.json").read_text(encoding="utf-8"))

    found = [
        f"{row['type']} {row['measure']} {row['lang']} {row['hits']}/{row['n']}" for row in recall.measured(rows(name))
    ]

    assert found == golden[name]


def test_labels_are_complete_and_precision_is_as_measured() -> None:
    golden = json.loads((GOLDEN / "measured.json").read_text(encoding="utf-8"))
    labels = rows("labels.jsonl")

    assert {row["label"] for row in labels} <= {"right", "wrong"}
    assert all(row["reason"] for row in labels if row["label"] == "wrong")
    found = [f"{row['type']} {row['right']}/{row['n']}" for row in precision.precision(labels)]
    assert found == golden["labels.jsonl"]


def test_the_classifier_still_finds_the_labelled_items() -> None:
    for row in rows("labels.jsonl"):
        found = {(item.type, item.start, item.end) for item in classify(row["text"])}
        assert (row["type"], row["start"], row["end"]) in found
