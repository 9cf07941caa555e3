"""What the backend `vllm` says of models that it cannot load; no engine is open beside it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mragaudit.errors import BackendError, RequestError
from mragaudit.llm.vllm_lm import VllmBackend
from mragaudit.protocols import GenerateRequest, Message, Prompt

pytestmark = pytest.mark.vllm
SMALL: dict[str, Any] = {"enforce_eager": True, "kv_cache_gb": 0.1}


def load(folder: Path, **options: Any) -> VllmBackend:
    return VllmBackend(model=str(folder), **{**SMALL, **options})


@pytest.fixture
def copied(tiny_qwen2: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_qwen2, tmp_path / "copied"))


def test_files_that_vllm_cannot_load_are_a_backend_error_and_leave_the_process_usable(
    tiny_qwen2: Path, copied: Path
) -> None:
    (copied / "model.safetensors").write_bytes(b"cut short")
    with pytest.raises(BackendError, match="vLLM cannot load"):
        load(copied)
    backend = load(tiny_qwen2, context_tokens=10**6)
    request = GenerateRequest(prompt=Prompt(messages=(Message("user", "x" * 8192),), shared=0), max_tokens=1, stop=())
    with pytest.raises(RequestError, match="exceed the context of 8192 tokens"):
        list(backend.generate([request]))
    backend.close()


def test_a_checkpoint_that_lacks_weights_is_refused_though_vllm_would_run_it(copied: Path) -> None:
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - optional package

    weights = load_file(copied / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BackendError, match=r"1 weights of the architecture are not in .*, lm_head\.weight among them"):
        load(copied)


def test_code_that_comes_with_a_model_is_never_run(copied: Path, tmp_path: Path) -> None:
    config = (copied / "config.json").read_text(encoding="utf-8")
    auto = '{"auto_map": {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"}, "model_type": "mine",'
    config = config.replace('"model_type": "qwen2"', '"was": "qwen2"').replace("{", auto, 1)
    (copied / "config.json").write_text(config, encoding="utf-8")
    marker = tmp_path / "ran"
    (copied / "mine.py").write_text(f"open({str(marker)!r}, 'w').close()", encoding="utf-8")
    with pytest.raises(BackendError, match="vLLM cannot load"):
        load(copied)
    assert not marker.exists()


def test_a_model_without_a_chat_template_is_refused_for_the_chat_rendering(tmp_path: Path) -> None:
    from tiny_models import make_qwen2  # noqa: PLC0415 - needs PyTorch

    with pytest.raises(BackendError, match="has no chat template; set rendering: completion"):
        load(make_qwen2(tmp_path / "base", chat=False), rendering="chat")


def test_a_cache_too_small_for_one_prompt_says_what_to_change(tiny_qwen2: Path) -> None:
    with pytest.raises(BackendError, match=r"vLLM cannot load.*max.*model.*len"):
        load(tiny_qwen2, context_tokens=8192, kv_cache_gb=0.001)


def test_weights_of_another_hash_are_refused_before_anything_is_loaded(tiny_qwen2: Path) -> None:
    with pytest.raises(BackendError, match="but the config pins 0000"):
        load(tiny_qwen2, sha256="0" * 64)
