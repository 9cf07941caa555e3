"""What of a run goes into a bundle: its own files, resources and inputs, under the bundle's own names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mragaudit.bundle.contents import (
    bundled_config,
    is_current,
    render_bundled_config,
    required_files,
    resource_files,
    run_files,
    without_places,
)
from mragaudit.bundle.kinds import HOOK_AUDIT
from mragaudit.bundle.readme import GRID_STEPS, STEPS, render_readme
from mragaudit.config import Settings, load_settings
from mragaudit.config.slices import STAGE_KEYS
from mragaudit.errors import DataError
from mragaudit.paths import RunPaths
from mragaudit.resources import REPOSITORY


def _settings(**over: Any) -> Settings:
    return load_settings({"run": "x", "shards": 2, "judge": {"variants": ["english"]}, **over})


def _run(folder: Path, settings: Settings) -> RunPaths:
    for name in required_files(settings):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("", encoding="utf-8")
    return RunPaths(folder)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("queries/2-of-2.jsonl", True),
        ("queries/1-of-1.jsonl", False),
        ("metrics/translate.1-of-4.json", False),
        ("judgements/english/1-of-2.jsonl", True),
        ("judgements/oracle/1-of-2.jsonl", False),
        ("judgements/thresholds.json", True),
        ("repeats/judge/2-of-2.jsonl", True),
        ("repeats/judge/1-of-1.jsonl", False),
        ("filtered/regex_ascii/2-of-2.jsonl", True),
        ("tables/f1_output_only.csv", True),
        ("monitor/traffic/check.jsonl", False),
    ],
)
def test_files_of_other_shards_and_variants_do_not_belong_to_a_run(name: str, *, answer: bool) -> None:
    assert is_current(name, _settings()) is answer


def test_stale_files_journal_and_secrets_stay_out(tmp_path: Path) -> None:
    settings = _settings()
    paths = _run(tmp_path, settings)
    for name in ("queries/1-of-1.jsonl", "journal/judge.1-of-2.jsonl", "mask.key", "logs/score.log", "bundle.tar.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    assert set(run_files(paths, settings)) == {f"results/x/{name}" for name in required_files(settings)}


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    paths = _run(tmp_path, _settings())
    paths.report.unlink()
    with pytest.raises(DataError, match=r"report.html: this file is missing; finish the run"):
        run_files(paths, _settings())


def test_a_file_that_no_bundle_holds_is_named_and_not_dropped(tmp_path: Path) -> None:
    paths = _run(tmp_path, _settings())
    (tmp_path / "tables" / "notes.docx").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"notes.docx: a bundle holds no such file; move it elsewhere"):
        run_files(paths, _settings())


def test_the_resources_of_a_bundle_are_what_stages_read() -> None:
    names = set(resource_files(REPOSITORY / "resources"))
    assert {"resources/prompts/judge/en.yaml", "resources/controls/contexts.yaml", "resources/versions.csv"} <= names
    assert not [name for name in names if name.startswith(("resources/example", "resources/configs"))]


def test_the_config_of_a_bundle_names_places_in_the_bundle() -> None:
    corpus = {"source": "/home/somebody/Secret Name.CSV", "personal_data": "synthetic"}
    monitor = {"access_log": "/home/somebody/log.csv"}
    settings = _settings(resources="/elsewhere", corpus=corpus, queries={"source": "mine.jsonl"}, monitor=monitor)
    config = bundled_config(settings)
    assert config["resources"] == "resources"
    assert config["corpus"]["source"] == "inputs/corpus.csv"
    assert config["queries"]["source"] == "inputs/queries.jsonl"
    assert "monitor" not in config
    assert without_places(config) == without_places(settings.model_dump(mode="json"))


def test_the_config_of_a_bundle_is_read_back() -> None:
    settings = _settings()
    assert load_settings(yaml.safe_load(render_bundled_config(settings))) == settings


def test_the_readme_tells_how_to_run_every_stage_again() -> None:
    told = {step.stage for step in (*STEPS, *GRID_STEPS)}
    assert told >= {stage for stage in STAGE_KEYS if not stage.startswith("monitor")}
    text = render_readme(_settings(), version="1")
    writes = "`generations/`, `repeats/generate/`"
    assert f"| `generate` | documents, queries, translations, retrieval | {writes} | `mragaudit[embedded]` |" in text
    assert "| `score` | all of the above | `trials.jsonl`, `noise.jsonl` | nothing |" in text


def test_the_config_of_a_grid_s_bundle_has_the_grid_s_sections_and_names_places_in_the_bundle() -> None:
    grid = {"corpora": ["email", "pubmedqa"], "pubmedqa": "/home/somebody/Ori.JSON"}
    settings = _settings(resources="/elsewhere", corpus={"source": "/home/somebody/own.csv"}, hook_audit=grid)
    config = bundled_config(settings, kind=HOOK_AUDIT)
    assert set(config) == {
        *("run", "resources", "seed", "shards", "generate", "statistics", "hook_audit", "roles"),
    }
    assert config["resources"] == "resources"
    assert config["hook_audit"]["pubmedqa"] == "inputs/pubmedqa.json"
    whole = settings.model_dump(mode="json")
    assert without_places(config, kind=HOOK_AUDIT) == without_places(whole, kind=HOOK_AUDIT)


def test_every_section_that_a_stage_of_the_grid_reads_is_in_the_config_of_its_bundle() -> None:
    read = {key.partition(".")[0] for stage, keys in STAGE_KEYS.items() if stage.startswith("grid_") for key in keys}
    assert read <= set(bundled_config(_settings(), kind=HOOK_AUDIT))


@pytest.mark.parametrize(
    ("name", "answer"),
    [("calls/2-of-2.jsonl", True), ("calls/1-of-1.jsonl", False), ("tables/leaks.csv", True), ("notes.md", False)],
)
def test_files_of_other_shards_do_not_belong_to_a_grid(name: str, *, answer: bool) -> None:
    assert is_current(name, _settings(), kind=HOOK_AUDIT) is answer


def test_the_readme_of_a_grid_s_bundle_names_the_target_of_its_stages() -> None:
    text = render_readme(_settings(), version="1", kind=HOOK_AUDIT)
    assert "--forcerun STAGE --until STAGE -- hook_audit" in text
    assert "| `grid_calls` | cells, documents, resources | `calls/`, `uses/` | `mragaudit[embedded]` |" in text
    assert "writes below `results/x/hook_audit/`" in text
