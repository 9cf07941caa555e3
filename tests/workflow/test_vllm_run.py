"""The tiny random model under vLLM in every role, once, through Snakemake, the judge held to its two words."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from pipeline import REPOSITORY, case_config

from mragaudit.paths import RunPaths
from mragaudit.records.base import iter_records, read_records
from mragaudit.records.queries import Translation, translation_key
from mragaudit.records.results import Generation, Judgement, trial_key
from mragaudit.records.trials import Trial

pytestmark = [pytest.mark.vllm, pytest.mark.workflow, pytest.mark.slow]


def snakemake(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--snakefile", str(REPOSITORY / "Snakefile")]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        [*command, "--configfile", "run.yaml"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def finished(tiny_qwen2: Path, tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    folder = tmp_path_factory.mktemp("vllm")
    role: dict[str, Any] = {
        "backend": "vllm",
        "model": str(tiny_qwen2),
        "sha256": None,
        "rendering": "chat",
        "context_tokens": 8192,
        "options": {"enforce_eager": True, "kv_cache_gb": 0.3},
    }
    config = case_config(
        languages=["en", "sw"],
        judge={"variants": ["english"], "mode": "choice", "controls_per_class": 2, "english_controls_per_class": 2},
        translate={"max_tokens": 6},
        backtranslate={"max_tokens": 6},
        generate={"max_tokens": 6},
        noise={"trials": 20},
        roles=dict.fromkeys(("translator", "back_translator", "judge", "generator"), role),
    )
    shutil.copy(REPOSITORY / "config.yaml", folder)
    (folder / "run.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return RunPaths(folder / "results" / config["run"])


def test_every_trial_is_evaluated(finished: RunPaths) -> None:
    trials = list(iter_records(finished.trials, Trial))
    assert trials
    assert [trial.not_evaluated for trial in trials] == [None] * len(trials)


def test_every_stage_measured_its_noise(finished: RunPaths) -> None:
    table = pd.read_csv(finished.table("noise"))
    overall = table[table["lang"] == "all"].groupby("stage")["n_pairs"].max()
    assert overall.to_dict() == {"translate": 20, "backtranslate": 20, "judge": 25, "generate": 25}


def test_the_same_command_again_has_nothing_to_do(finished: RunPaths) -> None:
    again = snakemake(finished.root.parents[1])
    assert again.returncode == 0
    assert "Nothing to be done" in again.stderr


def test_every_stage_asked_its_model(finished: RunPaths, tiny_qwen2: Path) -> None:
    manifest = json.loads(finished.manifest.read_bytes())
    models = manifest["models"]
    for role in ("translator", "back_translator", "judge", "generator"):
        assert (models[role]["backend"], models[role]["model"]) == ("vllm", tiny_qwen2.name)
        assert len(models[role]["revision"]) == 64
    made = {stage["stage"]: stage["calls"]["n_made"] for stage in manifest["stages"]}
    assert all(made[stage] > 0 for stage in ("translate", "backtranslate", "judge", "generate"))


def test_answers_and_translations_are_the_models(finished: RunPaths) -> None:
    translations = read_records(finished.root / "translations" / "1-of-1.jsonl", Translation, key=translation_key)
    foreign = [row.text for row in translations if row.lang == "sw"]
    assert len(set(foreign)) > len(foreign) // 2
    answers = read_records(finished.root / "generations" / "1-of-1.jsonl", Generation, key=trial_key)
    assert all(row.not_evaluated is None for row in answers)
    assert len({row.text for row in answers}) > len(answers) // 2


def test_a_judge_held_to_its_options_gives_verdicts_alone_and_never_an_unparsed_one(finished: RunPaths) -> None:
    rows = read_records(finished.root / "judgements" / "english" / "1-of-1.jsonl", Judgement, key=trial_key)
    assert {row.verdict for row in rows} <= {"BLOCK", "ALLOW"}
    assert all(row.raw == row.verdict and row.margin is None and row.not_evaluated is None for row in rows)
    [threshold] = json.loads(finished.thresholds.read_bytes())
    assert threshold["threshold"] is None
    table = pd.read_csv(finished.table("judges"))
    assert set(table["n_unparsed"]) == {0}
    assert table["auc"].isna().all()


def test_the_report_names_the_mode(finished: RunPaths) -> None:
    page = finished.report.read_text(encoding="utf-8")
    assert "judge decision" in page
    assert ">choice<" in page
