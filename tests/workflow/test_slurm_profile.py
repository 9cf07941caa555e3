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


@pytest.mark.parametrize(
    ("target", "jobs"),
    [
        ((), {"generate 4", "judge 4", "index 1"}),
        (("--", "hook_audit_bundle"), {"grid_calls 4", "grid_plan 1", "grid_tables 1", "hook_audit_bundle 1"}),
    ],
    ids=["audit", "hook_audit"],
)
def test_a_dry_run_under_the_profile_needs_no_slurm(target: tuple[str, ...], jobs: set[str], tmp_path: Path) -> None:
    tools = _tools(tmp_path / "bin")
    assert shutil.which("squeue", path=str(tools)) is None
    shutil.copy(REPOSITORY / "config.yaml", tmp_path)
    (tmp_path / "resources").symlink_to(REPOSITORY / "resources")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--dry-run", "--snakefile", str(REPOSITORY / "Snakefile")),
            *("--profile", str(PROFILE), "--configfile", str(CASE), "--config", "shards=4", *target),
        ],
        cwd=tmp_path,
        env={**os.environ, "PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert jobs <= {" ".join(line.split()) for line in done.stdout.splitlines()}


def test_of_the_grid_s_rules_only_the_calls_go_to_the_cluster() -> None:
    """A rule that is sent away states memory and minutes; all others run where the command is typed."""
    rules = REPOSITORY / "workflow" / "rules" / "hook_audit.smk"
    parts = rules.read_text(encoding="utf-8").split("\nrule ")[1:]
    text = {part.partition(":")[0]: part for part in parts}
    snakefile = (REPOSITORY / "Snakefile").read_text(encoding="utf-8")
    local = set(snakefile.partition("localrules:")[2].partition("\n\n")[0].replace(",", " ").split())
    assert text.keys() - local == {"grid_calls"}
    assert all(f"{name}=" in text["grid_calls"] for name in ("gpu", "mem_mb", "runtime"))


def test_every_option_of_the_profile_has_a_comment() -> None:
    paragraphs = (PROFILE / "config.yaml").read_text(encoding="utf-8").strip().split("\n\n")[1:]
    assert len(paragraphs) == 9
    for paragraph in paragraphs:
        *comment, option = paragraph.splitlines()
        assert comment
        assert all(line.startswith("# ") for line in comment)
        assert not option.startswith("#")
