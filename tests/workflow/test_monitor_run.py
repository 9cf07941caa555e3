"""The monitor's replay as a user starts it: one target, twice the same bytes, thresholds from other seeds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pipeline import REPOSITORY, Pipeline

from mragaudit.config import load_settings
from mragaudit.paths import MONITOR_TABLES, RunPaths
from mragaudit.records.base import iter_records
from mragaudit.records.replay import CountedQuery, QueryEvent
from mragaudit.stages.aggregate import read_table

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.embedded]

CASE = REPOSITORY / "tests" / "cases" / "monitor" / "config.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which `snakemake monitor` has run."""
    folder = tmp_path_factory.mktemp("monitor")
    shutil.copy(REPOSITORY / "config.yaml", folder)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--snakefile", str(REPOSITORY / "Snakefile")]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*command, "--configfile", str(CASE), "--", "monitor"],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> RunPaths:
    return RunPaths(folder / "results" / "monitor")


def _table(run: RunPaths, name: str) -> pd.DataFrame:
    return read_table(run.monitor_table(name))


def test_one_target_leaves_tables_and_a_page_and_asks_no_judge_and_no_generator(run: RunPaths) -> None:
    assert all(run.monitor_table(name).stat().st_size > 0 for name in MONITOR_TABLES)
    page = (run.monitor / "report.html").read_text(encoding="utf-8")
    assert "What is not detected" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert not any((run.root / name).exists() for name in ("judgements", "generations", "backtranslations"))


def test_a_second_replay_of_the_same_run_gives_the_same_bytes(folder: Path, run: RunPaths, tmp_path: Path) -> None:
    """Jobs run again in a copy, without Snakemake: new secrets, new stores, another process."""
    shutil.copytree(folder / "results", tmp_path / "results")
    shutil.rmtree(tmp_path / "results" / "monitor" / "monitor")
    settings = load_settings({**yaml.safe_load(CASE.read_text(encoding="utf-8"))})
    again = Pipeline(tmp_path, settings).monitor()
    before = {path.relative_to(run.monitor): path.read_bytes() for path in run.monitor.rglob("*") if path.is_file()}
    after = {path.relative_to(again.monitor): path.read_bytes() for path in again.monitor.rglob("*") if path.is_file()}
    assert before == after


def test_development_and_check_share_no_actor(run: RunPaths) -> None:
    actors = [
        {row.actor for row in iter_records(run.monitor / "traffic" / f"{part}.jsonl", QueryEvent)}
        for part in ("development", "check")
    ]
    assert all(actors)
    assert not actors[0] & actors[1]


def test_every_query_was_counted_once(run: RunPaths) -> None:
    for part in ("development", "check"):
        asked = [row.query_id for row in iter_records(run.monitor / "traffic" / f"{part}.jsonl", QueryEvent)]
        counted = [row.query_id for row in iter_records(run.monitor / "replay" / f"{part}.jsonl", CountedQuery)]
        assert asked == counted


@pytest.mark.parametrize(
    ("profile", "signal"),
    [("hammering", "volume"), ("low_and_slow", "coverage"), ("confidential_pulls", "sensitivity")],
)
def test_a_single_signal_attacker_is_caught_by_its_signal_and_by_the_composite(
    run: RunPaths, profile: str, signal: str
) -> None:
    table = _table(run, "detection")
    rows = table[(table["profile"] == profile) & table["signal"].isin([signal, "composite"])]
    assert len(rows)
    assert (rows["n_detected"] == rows["n_attackers"]).all()


def test_patience_and_many_accounts_are_said_not_to_be_detected(run: RunPaths) -> None:
    table = _table(run, "detection")
    rows = table[
        table["profile"].isin(["patient_sweep", "sybils_8", "one_shot_pull"]) & (table["signal"] == "composite")
    ]
    assert set(rows["n_detected"]) == {0}
    page = (run.monitor / "report.html").read_text(encoding="utf-8")
    assert "sybils 8 (en): 0 of 1 throttled" in page


def test_every_rate_has_its_counts_and_the_name_of_its_interval(run: RunPaths) -> None:
    for name in ("detection", "sweep", "curves", "languages", "collections"):
        table = _table(run, name)
        known = table[table["rate"].notna()]
        assert known["ci_method"].notna().all(), name
        assert (known["ci_low"] <= known["rate"]).all(), name
        assert (known["rate"] <= known["ci_high"]).all(), name
    alarms = _table(run, "false_alarms")
    assert (alarms["upper_method"] == "poisson_exact_one_sided_upper").all()


def test_an_automated_job_needs_a_role_and_has_no_alarm_with_it(run: RunPaths) -> None:
    table = _table(run, "false_alarms")
    rows = table[(table["profile"] == "automated_job") & (table["signal"] == "composite")]
    assert (rows[rows["roles"] == "without"]["n_alarms"] > 0).all()
    assert (rows[rows["roles"] == "with"]["n_alarms"] == 0).all()
