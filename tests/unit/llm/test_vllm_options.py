"""What of the backend `vllm` can be known without vLLM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mragaudit.errors import ConfigError
from mragaudit.llm.checkpoints import Checkpoint
from mragaudit.llm.vllm_engine import Loading, _engine_arguments
from mragaudit.llm.vllm_lm import VllmBackend
from mragaudit.registry import checked_options, locate

LOADING: dict[str, Any] = {
    "dtype": "auto",
    "quantisation": None,
    "context_tokens": 4096,
    "max_num_seqs": 64,
    "tensor_parallel_size": 1,
    "gpu_memory_utilization": 0.9,
    "kv_cache_gb": None,
    "enforce_eager": False,
    "batch_invariant": False,
    "seed": 0,
    "threads": 1,
}


def arguments(folder: Path, *, config: dict[str, Any], **over: Any) -> dict[str, Any]:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    checkpoint = Checkpoint(folder=folder, name="m", sha256="0" * 64)
    return _engine_arguments(checkpoint, loading=Loading(**{**LOADING, **over}))


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({"max_num_seqs": 0}, "max_num_seqs is 0; it must be above 0"),
        ({"tensor_parallel_size": -1}, "tensor_parallel_size is -1; it must be above 0"),
        ({"kv_cache_gb": 0.0}, "kv_cache_gb is 0.0; it must be above 0"),
        ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization is 1.5; it is a share above 0 and at most 1"),
        ({"gpu_memory_utilization": 0.0}, "gpu_memory_utilization is 0.0; it is a share above 0 and at most 1"),
    ],
)
def test_an_option_out_of_bounds_is_refused_with_what_would_be_right(over: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Loading(**{**LOADING, **over})
    assert str(caught.value) == message


def test_an_option_of_the_wrong_type_is_named_before_any_model_is_looked_for() -> None:
    with pytest.raises(ConfigError, match=r"llm vllm\.max_num_seqs: Expected `int`"):
        checked_options("llm", "vllm", options={"model": "org/gone", "max_num_seqs": "many"})


def test_the_role_decides_how_the_engine_is_set(tmp_path: Path) -> None:
    given = arguments(
        tmp_path,
        config={"max_position_embeddings": 32768, "torch_dtype": "bfloat16"},
        tensor_parallel_size=2,
        gpu_memory_utilization=0.5,
        kv_cache_gb=1.5,
        quantisation="fp8",
        enforce_eager=True,
        seed=7,
    )
    expected = {
        "tensor_parallel_size": 2,
        "gpu_memory_utilization": 0.5,
        "kv_cache_memory_bytes": 1_500_000_000,
        "quantization": "fp8",
        "enforce_eager": True,
        "seed": 7,
        "max_model_len": 4096,
        "max_num_seqs": 64,
        "enable_prefix_caching": True,
        "trust_remote_code": False,
        "load_format": "safetensors",
    }
    assert given.items() >= expected.items()


@pytest.mark.parametrize(
    ("config", "wanted", "dtype"),
    [
        ({"dtype": "float32"}, "auto", "float32"),
        ({"torch_dtype": "float16"}, "auto", "float16"),
        ({"text_config": {"dtype": "bfloat16"}}, "auto", "bfloat16"),
        ({"dtype": "float32"}, "bfloat16", "bfloat16"),
        ({}, "auto", "auto"),
    ],
)
def test_the_precision_is_the_checkpoints_own_unless_the_role_sets_one(
    config: dict[str, Any], wanted: str, dtype: str, tmp_path: Path
) -> None:
    """By its own `auto` vLLM would run a float32 checkpoint in 16 bits."""
    assert arguments(tmp_path, config=config, dtype=wanted)["dtype"] == dtype


@pytest.mark.parametrize(("limit", "length"), [(2048, 2048), (32768, 4096)])
def test_the_context_is_no_longer_than_the_models_own(limit: int, length: int, tmp_path: Path) -> None:
    assert arguments(tmp_path, config={"max_position_embeddings": limit})["max_model_len"] == length


def test_what_changes_answers_stands_in_the_identity() -> None:
    common: dict[str, Any] = {"model": "org/name", "sha256": "a" * 64, "rendering": "chat"}
    plain = VllmBackend.identify(**common)
    full = VllmBackend.identify(**common, dtype="bfloat16", quantisation="fp8", batch_invariant=True, max_num_seqs=8)
    assert (plain.backend, plain.model, plain.revision, plain.rendering) == ("vllm", "org/name", "a" * 64, "chat")
    assert full.revision == f"{'a' * 64} bfloat16 fp8 batch-invariant"


def test_a_hub_id_that_is_not_here_is_told_with_the_folder_and_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(ConfigError, match=r"looked for .*models--org--gone.*HF_HUB_OFFLINE.*hf download org/gone"):
        locate("llm", "vllm").identify(model="org/gone")
