"""A stage killed at any point resumes where it was: same bytes, and hardly a call made twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from pipeline import Pipeline, case_settings, scripted, write_settings

from mragaudit.config import Settings
from mragaudit.journal import recover

pytestmark = pytest.mark.workflow

PROGRAM = Path(__file__).with_name("pipeline.py")
ROLES = {"translate": "translator", "judge": "judge", "generate": "generator"}
OUTPUTS = {
    "translate": ["translations/1-of-1.jsonl"],
    "judge": ["judgements/english/1-of-1.jsonl", "judgements/retrieved/1-of-1.jsonl"],
    "generate": ["generations/1-of-1.jsonl"],
}
BATCH_CALLS = 16
KILLS = 4
"""A stage; three stages make twelve."""
PATIENCE_SECONDS = 60.0


def _settings(folder: Path, *, sleep_seconds: float) -> Settings:
    def role(stage: str, model: str) -> dict[str, object]:
        return scripted(model, sleep_seconds=sleep_seconds, count_file=str(folder / f"{stage}.calls"))

    roles = {
        "translator": role("translate", "identity_translator"),
        "judge": role("judge", "lexical"),
        "generator": role("generate", "echo"),
    }
    return case_settings(
        languages=["en", "de", "sw"],
        judge={"controls_per_class": 2, "variants": ["english", "retrieved"]},
        roles=roles,
    )


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    Pipeline(folder, _settings(folder, sleep_seconds=0)).before("score")
    return folder


def _start(folder: Path, stage: str) -> subprocess.Popen[bytes]:
    with (folder / f"{stage}.stderr").open("wb") as stderr:
        return subprocess.Popen([sys.executable, str(PROGRAM), stage, "1-of-1"], cwd=folder, stderr=stderr)


def _calls(folder: Path, stage: str) -> list[str]:
    path = folder / f"{stage}.calls"
    return path.read_text().splitlines() if path.is_file() else []


def _stop_after(folder: Path, stage: str, *, n_calls: int, how: signal.Signals) -> int:
    """Start a stage, send it a signal once this many calls were made in all, and return its exit code."""
    process = _start(folder, stage)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(_calls(folder, stage)) < n_calls and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process.pid, how)
    return process.wait(timeout=PATIENCE_SECONDS)


def _prepare(unbroken: Path, folder: Path, stage: str) -> tuple[int, dict[str, bytes]]:
    """Copy a finished run, take one stage's work out of it; return its number of calls and its output."""
    shutil.copytree(unbroken / "results", folder / "results")
    run = folder / "results" / "scripted"
    whole = {name: (run / name).read_bytes() for name in OUTPUTS[stage]}
    for name in OUTPUTS[stage]:
        (run / name).unlink()
    (run / "journal" / f"{stage}.1-of-1.jsonl").unlink()
    write_settings(folder, _settings(folder, sleep_seconds=0.01))
    calibrated = len(recover(run / "journal" / "judge.calibration.jsonl").answers) if stage == "judge" else 0
    return len(set(_calls(unbroken, stage))) - calibrated, whole


@pytest.mark.parametrize("stage", ["translate", "judge", "generate"])
def test_a_stage_killed_four_times_ends_with_the_bytes_of_an_unbroken_run(
    stage: str, unbroken: Path, tmp_path: Path
) -> None:
    n_calls, whole = _prepare(unbroken, tmp_path, stage)
    rng = random.Random(f"kills of {stage}")  # noqa: S311  # places of kills, no secret
    for point in sorted(rng.sample(range(1, n_calls - 1), KILLS)):
        assert _stop_after(tmp_path, stage, n_calls=point, how=signal.SIGKILL) == -signal.SIGKILL
    assert _start(tmp_path, stage).wait(timeout=PATIENCE_SECONDS) == 0
    run = tmp_path / "results" / "scripted"
    assert {name: (run / name).read_bytes() for name in OUTPUTS[stage]} == whole
    made = Counter(_calls(tmp_path, stage))
    assert len(made) == n_calls
    assert made.total() - len(made) <= BATCH_CALLS


def test_ctrl_c_keeps_finished_calls_and_says_how_to_resume(unbroken: Path, tmp_path: Path) -> None:
    n_calls, whole = _prepare(unbroken, tmp_path, "generate")
    assert _stop_after(tmp_path, "generate", n_calls=n_calls // 2, how=signal.SIGINT) == 130
    run = tmp_path / "results" / "scripted"
    message = (tmp_path / "generate.stderr").read_text(encoding="utf-8")
    assert "interrupted: finished model calls are kept in the journal; run the same command again" in message
    assert "Traceback" not in message
    assert not (run / "generations" / "1-of-1.jsonl").exists()
    kept = len(recover(run / "journal" / "generate.1-of-1.jsonl").answers)
    assert n_calls // 2 - 1 <= kept < n_calls
    assert _start(tmp_path, "generate").wait(timeout=PATIENCE_SECONDS) == 0
    assert (run / "generations" / "1-of-1.jsonl").read_bytes() == whole["generations/1-of-1.jsonl"]
