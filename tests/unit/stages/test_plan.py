"""The plan counts calls by hand-checkable rules and says what the journal holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mragaudit.cli import main
from mragaudit.config import load_settings
from mragaudit.errors import ConfigError
from mragaudit.journal import Journal
from mragaudit.protocols import Completion
from mragaudit.stages.plan import PlannedStage, Sizes, plan_stages, render_plan
from mragaudit.stages.targets import RULES, require_targets

REPOSITORY = Path(__file__).parents[3]

SIZES = Sizes(
    documents=10,
    unstructured=4,
    document_chars=300,
    queries=40,
    other_languages=2,
    english_controls=16,
    controls=12,
)


def _plan(folder: Path, **over: Any) -> dict[str, PlannedStage]:
    config = {"languages": ["en", "de", "sw"], "retrieve": {"k": 2}, "generate": {"max_tokens": 30}, **over}
    return {row.stage: row for row in plan_stages(load_settings(config), SIZES, results=folder)}


def test_calls_are_counted_stage_by_stage(tmp_path: Path) -> None:
    """40 queries in 2 languages; with 12 controls each back; 120 trials and 40 controls in 5 variants; 120 answers."""
    assert {name: row.calls for name, row in _plan(tmp_path).items()} == {
        "translate": 80,
        "backtranslate": 104,
        "judge": 800,
        "generate": 120,
    }


def test_repeats_for_the_noise_floor_are_counted_where_a_stage_makes_them(tmp_path: Path) -> None:
    """30 attacks and 10 benign trials beside them, in 5 variants of the judge; all other stages are bit-stable."""
    roles = {"judge": {"backend": "openai_http", "options": {"base_url": "http://127.0.0.1:1/v1"}}}
    rows = _plan(tmp_path, roles=roles, noise={"trials": 30})
    assert {name: row.repeats for name, row in rows.items()} == {
        "translate": 0,
        "backtranslate": 0,
        "judge": 40 * 5,
        "generate": 0,
    }
    assert rows["judge"].calls == 800 + 200


def test_no_more_calls_are_repeated_than_there_are(tmp_path: Path) -> None:
    rows = _plan(tmp_path, noise={"stages": "all", "trials": 1000})
    assert {name: row.repeats for name, row in rows.items()} == {
        "translate": 80,
        "backtranslate": 80,
        "judge": 600,
        "generate": 120,
    }


def test_the_plan_says_how_many_calls_are_repeats(tmp_path: Path) -> None:
    config = {"languages": ["en", "de"], "corpus": {"n_documents": 5}, "judge": {"variants": []}}
    text = render_plan(load_settings({**config, "noise": {"stages": "all", "trials": 6}}), results=tmp_path)
    assert "of these calls about 24 are repeats, for the noise floor: translate 8, backtranslate 8, generate 8" in text


def test_tokens_are_about_a_quarter_of_the_characters(tmp_path: Path) -> None:
    """An answer reads its query (110 characters) and two documents of 300."""
    row = _plan(tmp_path)["generate"]
    assert (row.fresh_tokens, row.answer_tokens) == (120 * (110 + 600) // 4, 120 * 30)


def test_a_judge_that_compares_two_options_writes_nothing(tmp_path: Path) -> None:
    assert _plan(tmp_path)["judge"].answer_tokens == 0
    assert _plan(tmp_path, judge={"mode": "parse", "max_tokens": 8})["judge"].answer_tokens == 6400


def test_a_judge_that_is_held_to_its_options_says_no_more_than_their_letters(tmp_path: Path) -> None:
    held = {"backend": "vllm", "model": "org/name", "sha256": None}
    planned = _plan(tmp_path, judge={"mode": "choice"}, roles={"judge": held})
    judge = planned["judge"]
    assert (judge.calls - judge.repeats, judge.repeats > 0) == (
        800,
        True,
    )  # vLLM's answers are repeated for the noise floor
    assert judge.answer_tokens == judge.calls * len("BLOCK")


def test_without_judge_variants_no_judge_is_asked(tmp_path: Path) -> None:
    assert _plan(tmp_path, judge={"variants": []})["judge"].calls == 0


def test_finished_calls_in_the_journal_are_counted(tmp_path: Path) -> None:
    answer = Completion(text="x", finish_reason="stop", prompt_tokens=1, completion_tokens=1)
    with Journal(tmp_path / "quick" / "journal" / "generate.1-of-2.jsonl") as journal:
        journal.append("a", answer)
        journal.append("b", answer)
    assert {name: row.in_journal for name, row in _plan(tmp_path).items()} == {
        "translate": 0,
        "backtranslate": 0,
        "judge": 0,
        "generate": 2,
    }


def test_the_plan_is_text_with_trials_controls_and_the_gap_that_could_be_seen(tmp_path: Path) -> None:
    config = {
        "run": "small",
        "languages": ["en", "de"],
        "corpus": {"n_documents": 5},
        "judge": {"english_controls_per_class": 4, "controls_per_class": 2},
    }
    lines = render_plan(load_settings(config), results=tmp_path).split("\n")
    assert lines[0] == "plan of run small: 5 documents, 2 languages, 40 trials and 12 controls"
    assert [line.split()[:3] for line in lines[2:6]] == [
        ["translate", "20", "0"],
        ["backtranslate", "24", "0"],
        ["judge", "260", "0"],
        ["generate", "40", "0"],
    ]
    assert "2 documents with a name or address" in lines[6]


def test_a_config_file_in_the_place_of_a_target_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mragaudit", "plan", "mine.yaml"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == (
        'error: "mine.yaml" is no target; a config is given as: --configfile mine.yaml\n'
    )


def test_an_unknown_target_is_refused_with_the_nearest_and_a_path_is_taken() -> None:
    require_targets(["results/quick/report.html", "hook_audit"])
    with pytest.raises(ConfigError, match=r'^"hook_adit" is no target; did you mean "hook_audit"'):
        require_targets(["hook_adit"])


def test_the_targets_known_are_the_rules_of_the_workflow() -> None:
    files = [REPOSITORY / "Snakefile", *(REPOSITORY / "workflow" / "rules").glob("*.smk")]
    rules = {name for path in files for name in re.findall(r"^rule (\w+):", path.read_text("utf-8"), re.MULTILINE)}
    assert rules == RULES
