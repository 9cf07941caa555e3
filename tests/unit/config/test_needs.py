from __future__ import annotations

import pytest

from mragaudit.config import Needs, Settings, load_settings, stage_needs
from mragaudit.registry import PLUGINS, Plugin

GPU_MODEL = Plugin(target="mragaudit.llm.scripted:ScriptedBackend", gpus=1, memory_mb=16000)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return the defaults with a back-translator and a judge on a backend that runs on a GPU."""
    monkeypatch.setitem(PLUGINS["llm"], "on_gpu", GPU_MODEL)
    roles = {name: {"backend": "on_gpu", "model": "large", "sha256": None} for name in ("back_translator", "judge")}
    return load_settings({"roles": roles})


@pytest.mark.parametrize("stage", ["translate", "backtranslate", "index", "retrieve", "calibrate", "judge", "generate"])
def test_no_stage_of_the_default_run_asks_for_a_gpu(stage: str) -> None:
    assert stage_needs(load_settings({}), stage).gpus == 0


def test_only_stages_whose_backend_runs_on_a_gpu_ask_for_one(settings: Settings) -> None:
    stages = ("translate", "index", "retrieve", "calibrate", "judge", "generate")
    asking = [stage for stage in stages if stage_needs(settings, stage).gpus]
    assert asking == ["calibrate", "judge"]


def test_models_of_one_stage_share_gpus_and_add_up_in_memory(settings: Settings) -> None:
    assert stage_needs(settings, "backtranslate") == Needs(gpus=1, memory_mb=16000 + 1000)


def test_a_stage_without_model_needs_nothing() -> None:
    assert stage_needs(load_settings({}), "score") == Needs(gpus=0, memory_mb=0)
