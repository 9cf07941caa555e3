"""A whole run whose judge and generator stand behind an endpoint with a key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pipeline import REPOSITORY, Pipeline, case_settings

from mragaudit.config import Settings
from mragaudit.records.base import iter_records
from mragaudit.records.trials import Trial
from mragaudit.stages.aggregate import read_table

pytestmark = [pytest.mark.workflow, pytest.mark.http]

KEY = "sk-planted-0b8d52c6f4"
SIZE = {"languages": ["en", "de"], "judge": {"controls_per_class": 2, "variants": ["english", "retrieved"]}}


def settings(base_url: str, **over: Any) -> Settings:
    role = {"backend": "openai_http", "model": "fake-model", "sha256": None, "attempts": 1}
    options = {"base_url": base_url, "api_key_env": "PLANTED_KEY"}
    roles = {name: {**role, "options": options} for name in ("judge", "generator")}
    return case_settings(**SIZE, roles=roles, **over)


def grep(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_run_over_an_endpoint_finishes_and_holds_its_key_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from fake_openai import FakeServer  # noqa: PLC0415 - aiohttp is optional

    monkeypatch.setenv("PLANTED_KEY", KEY)
    with FakeServer(key=KEY) as server:
        files = Pipeline(tmp_path, settings(server.base_url)).run()
        assert server.seen
        assert all(seen.headers["Authorization"] == f"Bearer {KEY}" for seen in server.seen)
    trials = list(iter_records(files.trials, Trial))
    assert Counter(trial.not_evaluated for trial in trials) == {None: 52}
    assert files.report.is_file()
    assert grep(tmp_path, server.base_url)
    assert grep(tmp_path, KEY) == []
    captured = capfd.readouterr()
    assert KEY not in captured.out + captured.err


def test_trials_lost_to_a_faulty_endpoint_are_not_evaluated_and_filled_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fake_openai import FakeServer, Fault, random_faults  # noqa: PLC0415 - aiohttp is optional

    def generated(pipeline: Pipeline) -> list[dict[str, Any]]:
        pipeline.before("score")
        pipeline.job("score")
        return [
            {"id": trial.trial_id, "lost": trial.not_evaluated} for trial in iter_records(pipeline.files.trials, Trial)
        ]

    monkeypatch.setenv("PLANTED_KEY", KEY)
    with FakeServer(key=KEY) as server:
        pipeline = Pipeline(tmp_path, settings(server.base_url, noise={"stages": "none"}))
        draw = random_faults(0.2, seed=3, faults=[Fault(status=500), Fault(drop=True), Fault(cut_bytes=5)])
        # The judge's calls are spared: calibration refuses too few controls.
        server.fault = lambda number, seen: None if seen.body.get("echo") else draw(number, seen)
        rows = generated(pipeline)
        lost = [row for row in rows if row["lost"] is not None]
        assert 0 < len(lost) < 20
        assert all("(1 of 1 attempts)" in row["lost"] for row in lost)
        server.fault = lambda _number, _seen: None
        assert [row["lost"] for row in generated(pipeline)] == [None] * len(rows)
        made = Counter(seen.text for seen in server.seen if not seen.body.get("echo"))
        assert made.total() - len(made) == len(lost)


def test_a_server_that_answers_otherwise_the_second_time_has_a_noise_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the texts that the generator is asked a second time, every third gets another answer, every fifth is lost."""
    from fake_openai import FakeServer, Fault, digest_words  # noqa: PLC0415 - aiohttp is optional

    monkeypatch.setenv("PLANTED_KEY", KEY)
    asked: Counter[str] = Counter()
    again: list[str] = []

    def fault(_number: int, seen: Any) -> Fault | None:
        if seen.body.get("echo"):
            return None
        asked[seen.text] += 1
        if asked[seen.text] == 2:
            again.append(seen.text)
            return Fault(status=500) if len(again) % 5 == 0 else None
        return None

    def rule(text: str) -> str:
        second = text in again and again.index(text) % 3 == 0
        return digest_words(text) + (" otherwise" if second else "")

    with FakeServer(key=KEY, rule=rule) as server:
        server.fault = fault
        pipeline = Pipeline(tmp_path, settings(server.base_url))
        pipeline.before("figures")
    assert len(again) == 40
    assert set(asked.values()) == {2}
    table = read_table(pipeline.files.table("noise"))
    found = table[(table["stage"] == "generate") & (table["flip"] == "text") & (table["lang"] == "all")].iloc[0]
    flips = [text for place, text in enumerate(again) if place % 3 == 0 and (place + 1) % 5]
    assert (found["n_pairs"], found["n_flips"], found["n_not_evaluated"]) == (40, len(flips), 8)
    assert found["rate"] == pytest.approx(len(flips) / 32)
    judged = table[(table["stage"] == "judge") & (table["flip"] == "verdict") & (table["lang"] == "all")]
    assert (
        judged[["n_flips", "max_margin_difference", "ci_method"]].to_numpy().tolist()
        == [[0, 0.0, "wilson_one_sided_upper"]] * 2
    )
    assert table[table["stage"] == "translate"]["n_pairs"].tolist() == [0]


@pytest.mark.slow
def test_the_example_config_dry_runs(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "config.yaml", tmp_path)
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        "1",
        "--dry-run",
        "--snakefile",
        str(REPOSITORY / "Snakefile"),
    ]
    command += ["--configfile", str(REPOSITORY / "resources/configs/endpoint.yaml")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "results/endpoint/report.html" in done.stdout + done.stderr
