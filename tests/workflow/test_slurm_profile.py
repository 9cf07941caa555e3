"""The profile for SLURM on a machine without SLURM; tests/slurm runs it on a real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline import CASE, REPOSITORY

pytestmark = pytest.mark.workflow

PROFILE = REPOSITORY / "workflow" / "profiles" / "slurm"


def _tools(folder: Path) -> Path:
    """Return a folder with the programs that Snakemake calls, and none of SLURM's."""
    folder.mkdir()
    for name in ("bash", "sh", "env", "uname", "which"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def test_a_dry_run_under_the_profile_needs_no_slurm(tmp_path: Path) -> None:
    tools = _tools(tmp_path / "bin")
    assert shutil.which("squeue", path=str(tools)) is None
    shutil.copy(REPOSITORY / "config.yaml", tmp_path)
    (tmp_path / "resources").symlink_to(REPOSITORY / "resources")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--dry-run", "--snakefile", str(REPOSITORY / "Snakefile")),
            *("--profile", str(PROFILE), "--configfile", str(CASE), "--config", "shards=4"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert {"generate 4", "judge 4", "index 1"} <= {" ".join(line.split()) for line in done.stdout.splitlines()}


def test_every_option_of_the_profile_has_a_comment() -> None:
    paragraphs = (PROFILE / "config.yaml").read_text(encoding="utf-8").strip().split("\n\n")[1:]
    assert len(paragraphs) == 9
    for paragraph in paragraphs:
        *comment, option = paragraph.splitlines()
        assert comment
        assert all(line.startswith("# ") for line in comment)
        assert not option.startswith("#")
