"""The shipped config with independent models, on a machine that has neither them, nor a GPU, nor their packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pipeline import REPOSITORY

from mragaudit.config import load_settings, stage_needs

pytestmark = pytest.mark.workflow

CONFIG = REPOSITORY / "resources" / "configs" / "independent.yaml"
SETTINGS = load_settings(yaml.safe_load(CONFIG.read_text(encoding="utf-8")))
NO_MODEL_PACKAGES = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"accelerate", "bitsandbytes", "FlagEmbedding", "torch", "transformers"}:
            raise ImportError(name + " is not installed")

sys.meta_path.insert(0, Absent())
"""


def test_a_dry_run_needs_neither_models_nor_their_packages(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "config.yaml", tmp_path)
    (tmp_path / "resources").symlink_to(REPOSITORY / "resources")
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / "sitecustomize.py").write_text(NO_MODEL_PACKAGES, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path / "absent"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--dry-run", "--snakefile", str(REPOSITORY / "Snakefile")),
            *("--configfile", str(CONFIG)),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "HF_HUB_CACHE": str(tmp_path / "empty"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = {" ".join(line.split()) for line in done.stdout.splitlines()}
    assert {"translate 4", "backtranslate 4", "judge 4", "generate 4", "index 1"} <= lines


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
