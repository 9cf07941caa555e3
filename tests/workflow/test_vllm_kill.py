"""A stage on vLLM killed in its middle: nothing lost or double, and no more rows differ than in an A/A repeat."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pipeline import Pipeline, case_settings, write_settings

from mragaudit.config import Settings
from mragaudit.journal import recover

pytestmark = [pytest.mark.vllm, pytest.mark.workflow, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("counted_vllm.py")
BATCH_CALLS = 64
MAX_NUM_SEQS = 16
FEWEST_KEPT = 30
PATIENCE_SECONDS = 400.0
"""For an engine that starts on a busy machine."""


def _settings(model: Path) -> Settings:
    options = {"enforce_eager": True, "kv_cache_gb": 0.3, "max_num_seqs": MAX_NUM_SEQS}
    generator = {
        "backend": "vllm",
        "model": str(model),
        "sha256": None,
        "rendering": "chat",
        "context_tokens": 8192,
        "options": options,
    }
    return case_settings(
        languages=["en", "sw"],
        judge={"controls_per_class": 2, "variants": []},
        corpus={"n_documents": 10},
        generate={"max_tokens": 6},
        roles={"generator": generator},
    )


class Run:
    """A folder in which all stages before `generate` are done."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.pipeline = Pipeline(folder, settings)
        self.journal = self.pipeline.files.journal / "generate.1-of-1.jsonl"

    def generate(self) -> dict[str, bytes]:
        """Run the stage here and return its rows by trial."""
        self.pipeline.job("generate", "1-of-1")
        lines = (self.pipeline.files.root / "generations" / "1-of-1.jsonl").read_bytes().splitlines()
        rows = {json.loads(line)["trial_id"]: line for line in lines}
        assert len(rows) == len(lines)
        return rows

    def calls(self) -> Mapping[str, Any]:
        """Return the counts that the stage wrote of its calls."""
        return json.loads(self.pipeline.files.job_metrics("generate", "1-of-1").read_bytes())["calls"]  # type: ignore[no-any-return]

    def kill_amid(self) -> int:
        """Start the stage as a process, kill it with half of its answers journalled; return how many it had made."""
        folder = self.pipeline.folder
        write_settings(folder, self.pipeline.settings)
        with (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen([sys.executable, str(PROGRAM), "generate", "1-of-1"], cwd=folder, stderr=stderr)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._kept() < FEWEST_KEPT and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL, (folder / "stderr").read_text()
        return (folder / "finished").stat().st_size

    def _kept(self) -> int:
        return self.journal.read_bytes().count(b"\n") if self.journal.is_file() else 0


def _differing(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> int:
    assert one.keys() == other.keys()
    return sum(one[trial] != other[trial] for trial in one)


def test_a_stage_on_vllm_that_is_killed_loses_nothing_and_flips_no_more_than_a_repeat(
    tiny_qwen2: Path, tmp_path: Path
) -> None:
    settings = _settings(tiny_qwen2)
    (tmp_path / "unbroken").mkdir()
    Pipeline(tmp_path / "unbroken", settings).before("calibrate")
    runs = {}
    for name in ("unbroken", "repeat", "killed"):
        if name != "unbroken":
            shutil.copytree(tmp_path / "unbroken", tmp_path / name)
        runs[name] = Run(tmp_path / name, settings)
    made = runs["killed"].kill_amid()
    kept = len(recover(runs["killed"].journal).answers)
    resumed = runs["killed"].generate()
    unbroken, repeat = runs["unbroken"].generate(), runs["repeat"].generate()

    distinct = runs["unbroken"].calls()["n_distinct"]
    assert FEWEST_KEPT <= kept < distinct
    assert runs["killed"].calls()["n_from_journal"] == kept
    assert made + runs["killed"].calls()["n_made"] - distinct <= BATCH_CALLS
    journal = recover(runs["killed"].journal)
    assert (len(journal.answers), journal.n_duplicates) == (distinct, 0)
    assert _differing(unbroken, resumed) <= _differing(unbroken, repeat)
    assert len(set(unbroken.values())) > distinct // 2
