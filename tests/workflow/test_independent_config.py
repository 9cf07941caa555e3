"""The shipped config with independent models; that it runs dry is tested in test_shipped_configs."""

from __future__ import annotations

import pytest
import yaml
from pipeline import REPOSITORY

from mragaudit.config import load_settings, stage_needs

pytestmark = pytest.mark.workflow

CONFIG = REPOSITORY / "resources" / "configs" / "independent.yaml"
SETTINGS = load_settings(yaml.safe_load(CONFIG.read_text(encoding="utf-8")))


def test_every_stage_with_a_model_asks_for_a_gpu_and_for_the_memory_of_its_models() -> None:
    stages = ("index", "translate", "backtranslate", "retrieve", "calibrate", "judge", "generate")
    needs = {stage: stage_needs(SETTINGS, stage) for stage in stages}
    assert {stage: (one.gpus, one.memory_mb) for stage, one in needs.items()} == {
        "index": (1, 8000),
        "translate": (1, 8000),
        "backtranslate": (1, 16000),
        "retrieve": (1, 8000),
        "calibrate": (1, 24000),
        "judge": (1, 24000),
        "generate": (1, 24000),
    }


def test_no_model_judges_or_translates_its_own_text() -> None:
    roles = SETTINGS.roles
    translators = {roles.translator.model, roles.back_translator.model}
    families = {name.partition("/")[0] for name in (roles.judge.model, roles.generator.model, *translators)}
    assert {roles.translator.backend, roles.back_translator.backend} == {"nllb"}
    assert len(families) == 3
