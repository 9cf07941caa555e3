"""The real models, once, through Snakemake, on the smallest corpus."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mragaudit.paths import FIGURES, TABLES, RunPaths
from mragaudit.records.base import iter_records
from mragaudit.records.trials import Trial
from mragaudit.stages.manifest import Manifest, read_manifest

REPOSITORY = Path(__file__).parents[2]
CASE = REPOSITORY / "tests" / "cases" / "embedded" / "config.yaml"
LEAST_INSIDE = 0.85
LEAST_SECONDS = 5.0
"""Jobs shorter than this are start-up, not model work: their share says nothing."""

pytestmark = [pytest.mark.embedded, pytest.mark.workflow, pytest.mark.slow]


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--snakefile", str(REPOSITORY / "Snakefile")]
    command += ["--configfile", str(CASE), *arguments]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    folder = tmp_path_factory.mktemp("embedded")
    shutil.copy(REPOSITORY / "config.yaml", folder)
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return RunPaths(folder / "results" / "embedded")


@pytest.fixture(scope="module")
def manifest(run: RunPaths) -> Manifest:
    return read_manifest(run.manifest)


def test_a_run_leaves_report_tables_figures_and_manifest(run: RunPaths) -> None:
    assert run.report.stat().st_size > 100_000
    assert all(run.table(name).is_file() for name in TABLES)
    assert all(run.figure(name).is_file() for name in FIGURES)


def test_every_trial_is_evaluated_in_every_language(run: RunPaths) -> None:
    trials = list(iter_records(run.trials, Trial))
    attacks = [trial for trial in trials if trial.intent == "attack"]
    assert len(attacks) == 5 * 5
    assert {trial.lang for trial in attacks} == {"en", "zh", "de", "ar", "sw"}
    assert [trial.not_evaluated for trial in trials] == [None] * len(trials)


def test_the_model_stages_spend_their_time_inside_the_model(manifest: Manifest) -> None:
    measured = [one for one in manifest.stages if one.inside_seconds > LEAST_SECONDS and one.inside_share is not None]
    assert {one.stage for one in measured} >= {"translate", "generate"}
    slow = {one.stage: one.inside_share for one in measured if (one.inside_share or 0) < LEAST_INSIDE}
    assert slow == {}


def test_the_manifest_names_models_by_their_weights(manifest: Manifest) -> None:
    assert set(manifest.models) == {"translator", "back_translator", "judge", "generator", "embedder"}
    assert manifest.models["judge"]["revision"].startswith("a5fd3b62")


def test_the_same_command_again_has_nothing_to_do(run: RunPaths) -> None:
    again = snakemake(run.root.parents[1])
    assert again.returncode == 0
    assert "Nothing to be done" in again.stderr


def test_a_rerun_of_all_model_stages_is_answered_by_the_journal(run: RunPaths) -> None:
    before = run.trials.read_bytes()
    again = snakemake(run.root.parents[1], "--forcerun", "generate", "--", "results/embedded/trials.jsonl")
    assert again.returncode == 0, again.stderr[-4000:]
    metrics = msgspec.json.decode(run.job_metrics("generate", "1-of-2").read_bytes())
    assert (metrics["calls"]["n_made"], metrics["load_seconds"]) == (0, 0)
    assert run.trials.read_bytes() == before
