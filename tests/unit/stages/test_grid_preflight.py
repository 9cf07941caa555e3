"""What is wrong with a grid is said before its first job, and only where a grid is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mragaudit.config import load_settings
from mragaudit.errors import ConfigError, DataError, MissingPackageError
from mragaudit.grid.cells import plan_cells
from mragaudit.journal import Journal
from mragaudit.protocols import Completion
from mragaudit.stages import preflight
from mragaudit.stages.grid_outlook import plan_purposes, render_grid_plan
from mragaudit.stages.plan import render_plan
from mragaudit.stages.preflight import check_run, require_models
from mragaudit.stages.targets import asked_parts

REMOTE = {"backend": "openai_http", "model": "m", "sha256": None, "options": {"base_url": "ftp://nowhere"}}


def _check(folder: Path, *targets: str, roles: dict[str, Any] | None = None, **grid: Any) -> bool:
    settings = load_settings({"hook_audit": grid, "roles": roles or {}})
    check_run(settings, results=folder / "results", targets=targets)
    return (folder / "results").is_dir()  # made where a run may start


@pytest.mark.parametrize(
    ("targets", "parts"),
    [
        ((), {"audit"}),
        (("monitor",), {"audit"}),
        (("hook_audit",), {"hook_audit"}),
        (("hook_audit_bundle",), {"hook_audit"}),
        (("grid_calls",), {"hook_audit"}),
        (("results/quick/hook_audit/tables/leaks.csv",), {"hook_audit"}),
        (("results/quick/report.html",), {"audit"}),
        (("all", "hook_audit"), {"audit", "hook_audit"}),
    ],
)
def test_targets_ask_for_parts_of_the_workflow(targets: tuple[str, ...], parts: set[str]) -> None:
    assert asked_parts(targets) == parts


def test_the_default_grid_may_start(tmp_path: Path) -> None:
    assert _check(tmp_path, "hook_audit")


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"attack_options": {"deal": {"iteration": 2}}}, 'attack deal: "iteration" is no option .* "iterations"?'),
        ({"attack_options": {"deal": {"iterations": "two"}}}, r"attack deal.iterations: Expected `int`"),
        ({"defense_options": {"ca_dp": {"horizn": 3}}}, 'defense ca_dp: "horizn" is no option .* "horizon"?'),
        ({"corpora": ["pubmedqa"], "pubmedqa": "no.json"}, '"hook_audit.pubmedqa": no.json: this file is missing'),
        ({"k": 5, "canaries": {"per_seed": 4}}, '"hook_audit.k" is 5 and hook_audit.canaries.per_seed 4'),
    ],
)
def test_what_cannot_be_run_is_named_with_its_key_where_the_grid_is_asked_for(
    grid: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        _check(tmp_path, "hook_audit", **grid)
    _check(tmp_path, "all", **grid)


def test_a_file_that_is_not_pubmedqa_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(DataError, match=r"own\.json"):
        _check(tmp_path, "hook_audit", corpora=["pubmedqa"], pubmedqa=str(tmp_path / "own.json"))


def test_a_pubmedqa_file_with_too_few_articles_is_refused_before_the_run(tmp_path: Path) -> None:
    sample = "resources/examples/pubmedqa_small.json"
    _check(tmp_path, "hook_audit", corpora=["pubmedqa"], pubmedqa=sample, indexed=20, held_out=4)
    with pytest.raises(ConfigError, match=r"25 documents are asked for, and the PubMedQA file has 24 articles"):
        _check(tmp_path, "hook_audit", corpora=["pubmedqa"], pubmedqa=sample, indexed=20, held_out=5)


def test_an_endpoint_of_the_attacker_that_cannot_be_asked_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'"roles.attacker.options": openai_http.base_url does not begin with'):
        _check(tmp_path, "hook_audit", roles={"attacker": REMOTE})
    _check(tmp_path, roles={"attacker": REMOTE})


def test_a_translation_model_plays_neither_generator_nor_attacker(tmp_path: Path) -> None:
    role = {"backend": "nllb", "model": "m", "sha256": None}
    with pytest.raises(ConfigError, match=r'"roles.attacker.backend" is "nllb", which can only translate'):
        _check(tmp_path, "hook_audit", roles={"attacker": role})


def test_calls_that_are_to_run_again_need_models_or_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(kind: str, name: str) -> None:
        if kind == "llm":
            raise MissingPackageError(f"the package of {name} is not installed; install it with: pip install 'x[y]'")

    monkeypatch.setattr(preflight, "load", absent)
    monkeypatch.setattr(preflight, "import_package", lambda name, *, extra: (name, extra))
    settings = load_settings({"run": "r"})
    with pytest.raises(MissingPackageError, match=r"stage grid_calls runs the generator: .*pip install"):
        require_models(settings, stages=["grid_calls"], results=tmp_path)
    require_models(settings, stages=["grid_tables"], results=tmp_path)
    answer = Completion(text="x", finish_reason="stop", prompt_tokens=1, completion_tokens=1)
    with Journal(tmp_path / "r" / "hook_audit" / "journal" / "grid_calls.1-of-2.jsonl") as journal:
        journal.append("a", answer)
    require_models(settings, stages=["grid_calls"], results=tmp_path)


def test_the_plan_is_that_of_the_target(tmp_path: Path) -> None:
    settings = load_settings({"run": "r"})
    assert render_plan(settings, results=tmp_path).startswith("plan of run r: ")
    grid = render_plan(settings, results=tmp_path, targets=["hook_audit"])
    assert grid == render_grid_plan(settings, results=tmp_path)
    assert grid.startswith("plan of the hook audit of run r: ")
    both = render_plan(settings, results=tmp_path, targets=["all", "hook_audit"])
    assert both == render_plan(settings, results=tmp_path) + grid


def test_calls_of_a_grid_are_counted_by_purpose() -> None:
    """DP-R at two epsilons, none and PAD once each: 4 arms run of 6; PS 3 calls, MI one for 4 + 4, benign 2."""
    settings = load_settings(
        {
            "hook_audit": {
                "defenses": [["none"], ["dp_r"], ["pad"]],
                "attacks": ["ps", "mi"],
                "indexed": 4,
                "held_out": 4,
                "budget": 3,
                "benign_questions": 2,
                "max_tokens": 10,
                "canaries": {"seeds": [1, 2], "classes": ["id"], "budget": 5, "per_seed": 5},
                "adaptive": {"probes": []},
            }
        }
    )
    rows = {row.purpose: row for row in plan_purposes(plan_cells(settings.hook_audit), settings)}
    found = {name: (row.cells, row.run, row.calls, row.answer_tokens) for name, row in rows.items()}
    assert found == {
        "grid": (18, 12, 4 * (3 + 8 + 2), 4 * 13 * 10),
        "canary": (2 * 3 * 2, 2 * 3, 2 * 3 * 5, 300),
        "positive_control": (1, 1, 3, 0),
        "negative_control": (1, 1, 3, 0),
    }


def test_the_plan_says_what_canaries_could_certify_at_best(tmp_path: Path) -> None:
    """Five seeds against five: 1 of 252 ways, twice that after Holm over two classes."""
    settings = load_settings({"run": "r"})
    last = render_grid_plan(settings, results=tmp_path).splitlines()[-1]
    assert "60 a class and arm; 5 seeds against 5 give a least p of 0.004, 0.0079 after Holm over 2 classes" in last
