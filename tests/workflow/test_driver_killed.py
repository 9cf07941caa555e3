"""Snakemake itself killed with -9: no second job joins the one that it left behind, and the README's way on works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from pipeline import CASE, REPOSITORY, scripted

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

JOURNAL = "results/scripted/journal/translate.1-of-1.jsonl"
PATIENCE_SECONDS = 120.0


class Driver:
    """Snakemake on the scripted case, whose translator takes its time and counts its calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        translator = scripted("identity_translator", sleep_seconds=1, count_file=str(folder / "calls"))
        over = {"languages": ["en", "de"], "roles": {"translator": translator}}
        (folder / "over.yaml").write_text(yaml.safe_dump(over), encoding="utf-8")
        (folder / "config.yaml").write_bytes((REPOSITORY / "config.yaml").read_bytes())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--snakefile", str(REPOSITORY / "Snakefile")]
        command += ["--configfile", str(CASE), "over.yaml", *arguments]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, said

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not until():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


def _left_behind(folder: Path) -> list[int]:
    """Return the processes that still work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder and b"translate.py" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:  # it ended meanwhile
            continue
    return found


def test_after_a_kill_of_snakemake_no_call_is_made_twice_and_the_run_ends(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    killed = driver.start()
    _wait(lambda: len(driver.calls()) > 2)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()  # the job that it left behind holds its output open

    assert driver.run("--unlock")[0] == 0
    code, said = driver.run("--rerun-incomplete", "--", "results/scripted/translations/1-of-1.jsonl")
    assert code == 1
    assert f"{JOURNAL}: another job is writing this journal" in said

    _wait(lambda: not _left_behind(tmp_path))
    code, said = driver.run("--rerun-incomplete")
    assert code == 0, said[-3000:]
    killed.communicate()
    assert set(Counter(driver.calls()).values()) == {1}
    assert (tmp_path / "results" / "scripted" / "report.html").is_file()
