"""The grid of the hook audit from plan to page, on scripted models: what a run leaves, resumes, refuses, owns up to."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from pipeline import GRID_CASE, REPOSITORY, Pipeline, grid_settings, write_settings

from mragaudit.config import Settings
from mragaudit.paths import GRID_TABLES, RunPaths
from mragaudit.records.base import Record, iter_records, read_records, write_records
from mragaudit.records.grid import (
    BenignOutcome,
    CandidateScore,
    Cell,
    CellUse,
    DocumentExtraction,
    GridDocument,
    ItemOutcome,
    NelCount,
    TargetCall,
    cell_key,
)
from mragaudit.stages import grid_calls
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.manifest import read_manifest

pytestmark = pytest.mark.workflow

SCORES = ("items", "nel", "candidates", "extractions", "benign")
BEFORE_CALLS = ("cells.jsonl", "documents.jsonl", "splits.jsonl", "hooks.json")
AFTER_CALLS = ("grid_scores", "grid_tables", "grid_page")
PATIENCE_SECONDS = 90.0
BATCH_CALLS = 16


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--snakefile", str(REPOSITORY / "Snakefile")]
    command += ["--configfile", str(GRID_CASE), *arguments, "--", "hook_audit"]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which Snakemake ran the tiny grid."""
    folder = tmp_path_factory.mktemp("grid")
    shutil.copy(REPOSITORY / "config.yaml", folder)
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> RunPaths:
    return RunPaths(folder / "results" / "grid").grid


@pytest.fixture
def planned(run: RunPaths, tmp_path: Path) -> Callable[[Settings], Pipeline]:
    """Return what makes a run of which plan, documents and hooks are there and no call was made."""

    def make(settings: Settings) -> Pipeline:
        grid = RunPaths(tmp_path / "results" / settings.run).grid
        grid.root.mkdir(parents=True)
        for name in BEFORE_CALLS:
            shutil.copy(run.root / name, grid.root / name)
        return Pipeline(tmp_path, settings)

    return make


def rows(grid: RunPaths, folder: str, kind: type[Record]) -> list[Record]:
    return [row for path in sorted((grid.root / folder).glob("*.jsonl")) for row in iter_records(path, kind)]


def lines(grid: RunPaths, folder: str) -> list[bytes]:
    """Return the rows of all shards, sorted."""
    return sorted(line for path in (grid.root / folder).glob("*.jsonl") for line in path.read_bytes().splitlines())


def table(grid: RunPaths, name: str) -> pd.DataFrame:
    return read_table(grid.table(name))


def test_one_command_leaves_the_page_every_table_and_a_manifest_that_knows_the_calls(run: RunPaths) -> None:
    assert run.report.stat().st_size > 100_000
    assert [name for name in GRID_TABLES if not len(table(run, name))] == []
    manifest = read_manifest(run.manifest)
    assert [stage.stage for stage in manifest.stages] == ["grid_calls"]
    assert set(manifest.models) == {"generator", "attacker", "embedder", "positive_control", "negative_control"}
    assert {f"tables/{name}.csv" for name in GRID_TABLES} <= manifest.files.keys()


@pytest.mark.slow
def test_the_same_command_again_finds_nothing_to_do(run: RunPaths) -> None:
    again = snakemake(run.root.parents[2])
    assert again.returncode == 0
    assert "Nothing to be done" in again.stderr


def test_every_cell_of_the_plan_has_its_calls_and_no_other_has_any(run: RunPaths) -> None:
    cells = read_records(run.root / "cells.jsonl", Cell, key=cell_key)
    wanted = {cell.cell_id for cell in cells if cell.same_as is None}
    uses = {use.cell_id: use.n_target_calls for use in rows(run, "uses", CellUse)}
    made = Counter(call.cell_id for call in rows(run, "calls", TargetCall))
    assert uses.keys() == wanted
    assert made == Counter(uses)
    budgets = {cell.cell_id: cell.budget for cell in cells}
    assert all(0 < n <= budgets[name] for name, n in uses.items())


def test_three_shards_give_the_bytes_of_one(run: RunPaths, planned: Callable[[Settings], Pipeline]) -> None:
    three = planned(grid_settings(shards=3)).grid("grid_calls", *AFTER_CALLS)
    assert len(list((three.root / "calls").glob("*.jsonl"))) == 3
    assert all(path.stat().st_size for path in (three.root / "calls").glob("*.jsonl"))
    for name in ("calls", "uses"):
        assert lines(three, name) == lines(run, name)
    for kind in SCORES:
        assert three.scores(kind).read_bytes() == run.scores(kind).read_bytes()
    for name in GRID_TABLES:
        assert three.table(name).read_bytes() == run.table(name).read_bytes(), name
    assert three.report.read_bytes() == run.report.read_bytes()


@pytest.mark.slow
def test_calls_killed_twice_end_with_the_bytes_of_an_unbroken_run(
    run: RunPaths, planned: Callable[[Settings], Pipeline], tmp_path: Path
) -> None:
    counted = tmp_path / "calls"
    options = {"sleep_seconds": 0.02, "count_file": str(counted)}
    settings = grid_settings(roles={"generator": {"options": options}})
    grid = planned(settings).files.grid
    write_settings(tmp_path, settings)
    for n_calls in (20, 60):
        assert stop_after(tmp_path, counted, n_calls=n_calls) == -signal.SIGKILL
        assert not (grid.root / "calls" / "1-of-1.jsonl").exists()
    assert start(tmp_path).wait(timeout=PATIENCE_SECONDS) == 0
    for name in ("calls", "uses"):
        assert (grid.root / name / "1-of-1.jsonl").read_bytes() == (run.root / name / "1-of-1.jsonl").read_bytes()
    made = Counter(counted.read_text().splitlines())
    assert made.total() - len(made) <= 2 * BATCH_CALLS


def start(folder: Path) -> subprocess.Popen[bytes]:
    program = Path(__file__).with_name("pipeline.py")
    with (folder / "stderr").open("wb") as stderr:
        return subprocess.Popen([sys.executable, str(program), "grid_calls", "1-of-1"], cwd=folder, stderr=stderr)


def stop_after(folder: Path, counted: Path, *, n_calls: int) -> int:
    """Kill the calls once so many were made in all, and return the exit code."""
    process = start(folder)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if counted.is_file() and len(counted.read_text().splitlines()) >= n_calls:
            break
        time.sleep(0.005)
    process.kill()
    return process.wait(timeout=PATIENCE_SECONDS)


def without_id(grid: RunPaths, cell_id: str) -> list[TargetCall]:
    calls = [call for call in rows(grid, "calls", TargetCall) if call.cell_id == cell_id]
    assert calls
    return [msgspec.structs.replace(call, cell_id="") for call in sorted(calls, key=lambda call: call.number)]


def test_epsilons_of_an_arm_without_noise_are_one_unit_and_give_the_same_bytes_when_run_apart(
    planned: Callable[[Settings], Pipeline],
) -> None:
    pipeline = planned(grid_settings())
    path = pipeline.files.grid.root / "cells.jsonl"
    names = [f"grid.email.s1.targeted_queries.{arm}.ps" for arm in ("pad", "pad@5", "dp_r@1", "dp_r@5")]
    cells = {cell.cell_id: cell for cell in read_records(path, Cell, key=cell_key) if cell.cell_id in names}
    assert {name: cells[name].same_as for name in names} == {**dict.fromkeys(names), names[1]: names[0]}
    write_records(path, [msgspec.structs.replace(cell, same_as=None) for cell in cells.values()], key=cell_key)
    grid = pipeline.grid("grid_calls")
    pad, pad_at_5, noisy, less_noisy = (without_id(grid, name) for name in names)
    assert pad == pad_at_5
    assert noisy != less_noisy


@pytest.mark.parametrize(
    ("purpose", "rule", "message"),
    [
        ("positive_control", "blind", "positive_control, attack ps: an echo shows 0.00 of the items in context"),
        ("negative_control", "echo", "items recovered from a generator that sees no context"),
    ],
)
def test_a_failed_control_refuses_the_tables_by_name_and_leaves_what_was_computed(
    purpose: str,
    rule: str,
    message: str,
    planned: Callable[[Settings], Pipeline],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(grid_calls.CONTROLS, purpose, rule)
    pipeline = planned(
        grid_settings(hook_audit={"canaries": {"seeds": [1], "classes": ["email"]}, "adaptive": {"probes": []}})
    )
    pipeline.grid("grid_plan", "grid_calls", "grid_scores")
    with pytest.raises(SystemExit):
        pipeline.grid("grid_tables")
    log = pipeline.log("grid_tables")
    assert "the hook audit is not reported, since a control failed" in log
    assert message in log
    grid = pipeline.files.grid
    assert (grid.root / "calls" / "1-of-1.jsonl").stat().st_size
    assert all(grid.scores(kind).is_file() for kind in SCORES)
    assert not any(grid.table(name).exists() for name in GRID_TABLES)


@pytest.fixture(scope="module")
def lossy(run: RunPaths, tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    """Return a run in which every call that meets one indexed document is lost for good."""
    documents = list(iter_records(run.root / "documents.jsonl", GridDocument))
    title = lost_document(documents, run).title
    folder = tmp_path_factory.mktemp("lossy")
    pipeline = Pipeline(folder, grid_settings(roles={"generator": {"attempts": 1, "options": {"fail_on": title}}}))
    pipeline.files.grid.root.mkdir(parents=True)
    for name in BEFORE_CALLS:
        shutil.copy(run.root / name, pipeline.files.grid.root / name)
    return pipeline.grid("grid_calls", "grid_scores", "grid_tables", "grid_page")


def lost_document(documents: list[GridDocument], run: RunPaths) -> GridDocument:
    """Return the indexed document that most calls about candidates and benign facts meet."""
    grid = [call for call in rows(run, "calls", TargetCall) if call.cell_id.startswith("grid.email.s1.")]
    asked = Counter(call.target for call in grid if call.cell_id.endswith((".none.mi", ".none.benign")))
    indexed = [one for one in documents if one.realisation == "email.s1" and one.split == "indexed"]
    return max(indexed, key=lambda one: (asked[one.doc_id], one.doc_id))


def cells_with_losses(grid: RunPaths) -> dict[str, set[int]]:
    return {use.cell_id: set(use.lost_calls) for use in rows(grid, "uses", CellUse) if use.n_not_evaluated}


def test_a_lost_call_has_no_reply_and_is_counted_in_its_cell(lossy: RunPaths) -> None:
    lost = [call for call in rows(lossy, "calls", TargetCall) if call.not_evaluated is not None]
    assert {(call.answer, call.reply, call.refused_by, call.not_evaluated) for call in lost} == {
        ("", "", None, "scripted: connection lost for good")
    }
    found: dict[str, set[int]] = {}
    for call in lost:
        found.setdefault(call.cell_id, set()).add(call.number)
    assert found == cells_with_losses(lossy)
    assert {name.rsplit(".", 1)[1] for name in found} >= {"ps", "mi", "benign"}
    spent = table(lossy, "cells").set_index("cell_id")
    assert {name: int(spent.loc[name, "n_not_evaluated"]) for name in found} == {
        name: len(numbers) for name, numbers in found.items()
    }


def test_items_of_a_cell_with_a_lost_call_carry_its_reason_and_no_others_do(lossy: RunPaths) -> None:
    lost = cells_with_losses(lossy)
    items = list(iter_records(lossy.scores("items"), ItemOutcome))
    assert {item.not_evaluated for item in items if item.cell_id in lost} == {"scripted: connection lost for good"}
    assert {item.not_evaluated for item in items if item.cell_id not in lost} == {None}


def test_documents_candidates_and_benign_questions_of_lost_calls_are_unknown(lossy: RunPaths) -> None:
    lost = cells_with_losses(lossy)
    calls = [call for call in rows(lossy, "calls", TargetCall) if call.not_evaluated is not None]
    about = {(call.cell_id, call.target) for call in calls}
    extractions = [row for row in iter_records(lossy.scores("extractions"), DocumentExtraction) if row.cell_id in lost]
    assert extractions
    assert None not in {row.not_evaluated for row in extractions}
    candidates = list(iter_records(lossy.scores("candidates"), CandidateScore))
    assert any(row.score is None for row in candidates)
    assert all((row.score is None) == ((row.cell_id, row.doc_id) in about) for row in candidates)
    assert {row.retrieved for row in candidates if row.score is None and row.member} <= {True, False}
    benign = list(iter_records(lossy.scores("benign"), BenignOutcome))
    unknown = {(row.cell_id, row.doc_id) for row in benign if row.not_evaluated is not None}
    assert unknown
    assert unknown <= about
    assert not any(row.answered or row.refused for row in benign if row.not_evaluated is not None)


def test_a_lost_call_has_no_named_entity(lossy: RunPaths) -> None:
    lost = cells_with_losses(lossy)
    assert not [
        row
        for row in iter_records(lossy.scores("nel"), NelCount)
        if row.number is not None and row.number in lost.get(row.cell_id, set())
    ]


def test_every_table_counts_what_was_lost_and_the_page_says_so_first(lossy: RunPaths, run: RunPaths) -> None:
    counting = ("cells", "leaks", "leak_types", "extraction", "membership", "utility", "effects", "predictions")
    for name in counting:
        assert table(lossy, name)["n_not_evaluated"].sum() > 0, name
        assert table(run, name)["n_not_evaluated"].sum() == 0, name
    n_lost = sum(use.n_not_evaluated for use in rows(lossy, "uses", CellUse))
    page = lossy.report.read_text(encoding="utf-8")
    assert f"{n_lost} target calls have no reply. What their cells would have given away besides is unknown" in page


def test_what_was_lost_stands_in_no_denominator(lossy: RunPaths) -> None:
    leaks = table(lossy, "leaks")
    assert leaks["n_leaked_beside_lost"].sum() > 0
    known = leaks["n_items"] - leaks["n_not_evaluated"]
    measured = leaks[known > 0]
    assert (measured["rate"] - measured["n_leaked"] / known[known > 0]).abs().max() < 1e-6
    assert leaks.loc[known == 0, "rate"].isna().all()
    asked = table(lossy, "utility")
    assert (
        (asked["rate"] * (asked["n_questions"] - asked["n_not_evaluated"]) - asked["n_answered"]).abs() < 1e-6
    ).all()
