"""The whole pipeline with tiny random models on PyTorch, an NLLB among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run_stages import run_stages, scripted_settings

from mragaudit.paths import RunPaths
from mragaudit.records.base import read_records
from mragaudit.records.queries import BackTranslation, Translation, translation_key

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def finished(tiny_qwen2: Path, tiny_m2m100: Path, tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    results = tmp_path_factory.mktemp("torch") / "results"
    nllb = {"backend": "nllb", "model": str(tiny_m2m100), "sha256": None, "context_tokens": 1024}
    qwen2: dict[str, Any] = {"backend": "transformers", "model": str(tiny_qwen2), "sha256": None}
    settings = scripted_settings(
        languages=["en", "sw"],
        judge={"variants": []},
        generate={"max_tokens": 4},
        roles={
            "translator": {**nllb, "options": {"batch_size": 8}},
            "back_translator": {**nllb, "options": {}},
            "generator": {**qwen2, "context_tokens": 8192, "rendering": "chat", "options": {"batch_size": 4}},
        },
    )
    return run_stages(settings, results=results)


def rows_of(paths: RunPaths, folder: str, kind: type[Any]) -> list[Any]:
    shards = sorted((paths.root / folder).glob("*.jsonl"))
    return [row for shard in shards for row in read_records(shard, kind, key=translation_key)]


def test_every_query_goes_through_the_translation_model_and_back(finished: RunPaths) -> None:
    translated = {row.trial_id: row.text for row in rows_of(finished, "translations", Translation) if row.lang == "sw"}
    returned = {row.trial_id: row.text for row in rows_of(finished, "backtranslations", BackTranslation)}
    assert translated.keys() == returned.keys()
    assert len(set(translated.values())) > len(translated) // 2
    assert len(set(returned.values())) > len(returned) // 2


def test_the_manifest_names_the_models_by_hash(finished: RunPaths, tiny_m2m100: Path) -> None:
    models = json.loads(finished.manifest.read_bytes())["models"]
    assert models["translator"] == models["back_translator"]
    assert (models["translator"]["model"], models["translator"]["rendering"]) == (tiny_m2m100.name, "translation")
    assert {len(models[role]["revision"]) for role in ("translator", "generator")} == {64}


def test_the_report_is_there(finished: RunPaths) -> None:
    assert finished.report.stat().st_size > 0
