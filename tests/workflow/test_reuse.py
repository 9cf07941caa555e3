"""A change of config calls models for what it changed and for nothing else, counted outside the journal."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pipeline import REPOSITORY, Pipeline, case_settings, scripted

pytestmark = pytest.mark.workflow

STAGES = ("translator", "back_translator", "judge", "generator")
MODELS = {
    "translator": "identity_translator",
    "back_translator": "identity_translator",
    "judge": "lexical",
    "generator": "echo",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with resources of its own and all model stages of a run in English and German."""
    shutil.copytree(REPOSITORY / "resources", tmp_path / "resources")
    _run(tmp_path)
    return tmp_path


def _run(folder: Path, languages: tuple[str, ...] = ("en", "de"), **over: Any) -> None:
    roles = {role: scripted(model, count_file=str(folder / f"{role}.calls")) for role, model in MODELS.items()}
    settings = case_settings(languages=list(languages), judge={"controls_per_class": 2}, roles=roles, **over)
    Pipeline(folder, settings).before("filter")


def _calls(folder: Path) -> dict[str, int]:
    return {role: len((folder / f"{role}.calls").read_bytes().splitlines()) for role in STAGES}


def _added(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {role: after[role] - before[role] for role in STAGES}


def test_the_same_command_again_calls_no_model(folder: Path) -> None:
    before = _calls(folder)
    _run(folder)
    assert _calls(folder) == before


def test_a_new_language_calls_models_for_itself_alone(folder: Path) -> None:
    """15 attacks and 5 benign queries; 4 controls, written by hand, are put back into English but not translated.

    The identity translator leaves English text, so what a judge with English templates is shown it has seen
    before, controls aside: 4 alone in `english` and `backtranslate`, which share them, and 4 each with their
    document in `oracle` and `retrieved`, which share them too. `multilingual` sees all 24 in a template of its own.
    """
    before = _calls(folder)
    _run(folder, ("en", "de", "sw"))
    assert _added(before, _calls(folder)) == {
        "translator": 20,
        "back_translator": 24,
        "judge": 24 + 4 + 4,
        "generator": 20,
    }


def test_a_changed_few_shot_of_the_judge_asks_the_judge_and_nobody_else(folder: Path) -> None:
    before = _calls(folder)
    template = folder / "resources" / "prompts" / "judge" / "de.yaml"
    text = template.read_text(encoding="utf-8")
    assert text.count("Wie viele Seiten hat Vertrag VN-33?") == 1
    template.write_text(text.replace("Wie viele Seiten hat Vertrag VN-33?", "Wie lang ist Vertrag VN-33?"), "utf-8")
    _run(folder)
    assert _added(before, _calls(folder)) == {"translator": 0, "back_translator": 0, "judge": 24, "generator": 0}


def test_another_length_of_answers_asks_the_generator_and_nobody_else(folder: Path) -> None:
    before = _calls(folder)
    _run(folder, generate={"max_tokens": 33})
    assert _added(before, _calls(folder)) == {"translator": 0, "back_translator": 0, "judge": 0, "generator": 40}
