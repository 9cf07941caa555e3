"""vLLM's engine in this process: loaded for one stage, given all its calls at once, each out as it finishes.

vLLM is imported by functions alone. It reads its settings from environment variables, which are set here before.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from mragaudit.errors import BackendError, ConfigError
from mragaudit.llm.checkpoints import Checkpoint
from mragaudit.llm.torch_models import require_all_weights
from mragaudit.protocols import Meter
from mragaudit.registry import import_package

logger = logging.getLogger(__name__)

Dtype = Literal["auto", "float32", "bfloat16", "float16"]

EXTRA = "vllm"
BYTES_PER_GB = 10**9
BATCH_INVARIANT = "VLLM_BATCH_INVARIANT"
ENVIRONMENT = {
    # The engine in this process: it gets all calls before its first step, so its batches are the same on every run.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # vLLM reports its use to its makers unless it is told not to.
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
}
PREFERENCES = {"VLLM_LOGGING_LEVEL": "WARNING", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""Set where the user has set nothing. Threads bound to cores would bind those of two shards to the same ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loading:
    """How a checkpoint is brought into an engine."""

    dtype: Dtype
    """Of weights and arithmetic; auto: as the checkpoint says."""
    quantisation: str | None
    context_tokens: int
    """Longest prompt and answer together; the model's own limit counts where it is less."""
    max_num_seqs: int
    """Calls under way at once."""
    tensor_parallel_size: int
    gpu_memory_utilization: float
    """Share of each GPU's memory (on a CPU, of main memory) for weights and cache together."""
    kv_cache_gb: float | None
    """Size of the cache instead of what that share leaves."""
    enforce_eager: bool
    batch_invariant: bool
    seed: int
    threads: int
    """Of the CPU."""

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "tensor_parallel_size", "kv_cache_gb"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"{name} is {value}; it must be above 0")
        if not 0 < self.gpu_memory_utilization <= 1:
            raise ConfigError(
                f"gpu_memory_utilization is {self.gpu_memory_utilization}; it is a share above 0 and at most 1"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineCall:
    """One call to the engine: tokens to continue, and how."""

    tokens: Sequence[int]
    sampling: Mapping[str, Any]
    """Arguments of vLLM's SamplingParams beyond those of greedy decoding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineAnswer:
    """What the engine made of a call."""

    tokens: tuple[int, ...]
    """Tokens drawn, one that ended the answer among them."""
    n_text_tokens: int
    """How many of them are text: all but the one that ended the answer."""
    finish_reason: Literal["stop", "length"]
    logprobs: Mapping[int, float]
    """Token → natural-log probability as the first token drawn; empty where none were asked for."""


class Engine:
    """A loaded engine."""

    def __init__(self, checkpoint: Checkpoint, *, loading: Loading, meter: Meter) -> None:
        """Load a checkpoint; only safetensors are read, and no code that comes with a model is run.

        Raises MissingPackageError, and BackendError for what vLLM cannot load or this machine cannot give.
        """
        vllm = _imported(loading)
        parallel = import_package("vllm.distributed.parallel_state", extra=EXTRA)
        if parallel.model_parallel_is_initialized():
            raise BackendError("vLLM runs one engine a process, and one is open in this; close it first")
        torch = import_package("torch", extra=EXTRA)
        torch.set_num_threads(loading.threads)
        arguments = _engine_arguments(checkpoint, loading=loading)
        check_weights(checkpoint)
        try:
            with _loading(checkpoint):
                self._engine = vllm.LLMEngine.from_engine_args(vllm.EngineArgs(**arguments))
        except BaseException:
            parallel.cleanup_dist_env_and_memory()
            raise
        self.context_tokens = int(self._engine.model_config.max_model_len)
        self._vllm = vllm
        self._out_of_memory = torch.OutOfMemoryError
        self._meter = meter
        self._numbers = count()
        logger.info(
            "model %s: sha256 %s, %s, vLLM %s, %d calls at once",
            *(checkpoint.name, checkpoint.sha256, self._engine.model_config.dtype, vllm.__version__),
            loading.max_num_seqs,
        )

    def run(self, calls: Sequence[EngineCall]) -> Iterator[tuple[int, EngineAnswer]]:
        """Yield (place in `calls`, answer) after the step of the engine in which each finishes.

        The engine gets all calls before its first step. Closing the iterator drops those under way. Raises
        BackendError for a GPU that runs full and where the engine gives up a call.
        """
        places: dict[str, int] = {}
        try:
            started = time.perf_counter()
            for place, call in enumerate(calls):
                places[self._add(call)] = place
            while places:
                finished = self._step()
                seconds = time.perf_counter() - started if finished else 0.0
                for _ in finished:
                    self._meter.add(seconds / len(finished))
                for output in finished:
                    yield places.pop(output.request_id), _answer(output)
                started = time.perf_counter() if finished else started
        finally:
            if places and hasattr(self, "_engine"):
                self._engine.abort_request(list(places))

    def close(self) -> None:
        """Free the model; may be called twice."""
        engine = self.__dict__.pop("_engine", None)
        if engine is not None:
            engine.engine_core.shutdown()

    def _add(self, call: EngineCall) -> str:
        name = str(next(self._numbers))
        params = self._vllm.SamplingParams(
            temperature=0.0,
            output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
            skip_clone=True,
            **call.sampling,
        )
        self._engine.add_request(name, {"type": "token", "prompt_token_ids": list(call.tokens)}, params)
        return name

    def _step(self) -> list[Any]:
        if not self._engine.has_unfinished_requests():
            raise BackendError("vLLM has no call under way, though not all have come back")
        try:
            return [output for output in self._engine.step() if output.finished]
        except self._out_of_memory as error:
            raise BackendError(
                "the GPU's memory is full; lower gpu_memory_utilization, max_num_seqs or context_tokens in the role, "
                "and look whether another process uses the same GPU"
            ) from error


def load_tokenizer(checkpoint: Checkpoint) -> Any:
    """Return the checkpoint's tokenizer; raises MissingPackageError, and BackendError where it cannot be loaded."""
    transformers = import_package("transformers", extra=EXTRA)
    with _loading(checkpoint):
        return transformers.AutoTokenizer.from_pretrained(
            checkpoint.folder, local_files_only=True, trust_remote_code=False
        )


def check_weights(checkpoint: Checkpoint) -> None:
    """Raise BackendError for a checkpoint that lacks weights of its architecture, by the names in its files alone.

    vLLM itself looks for all weights only outside linear and embedding layers. A checkpoint that is quantised, or of
    a kind that transformers does not know, cannot be checked like this, which is logged.
    """
    transformers = import_package("transformers", extra=EXTRA)
    if "quantization_config" in _model_config(checkpoint):
        logger.warning("model %s: quantised, so not checked for missing weights", checkpoint.name)
        return
    transformers.utils.logging.disable_progress_bar()
    try:
        _, report = transformers.AutoModelForCausalLM.from_pretrained(
            checkpoint.folder,
            device_map="meta",
            use_safetensors=True,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    except _loading_errors() as error:
        logger.warning("model %s: not checked for missing weights (%s)", checkpoint.name, error)
        return
    require_all_weights(report["missing_keys"], checkpoint=checkpoint)


@contextmanager
def _loading(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn what fails while files are read and memory is taken into a BackendError."""
    try:
        yield
    except _loading_errors() as error:
        raise BackendError(f"model {checkpoint.name}: vLLM cannot load {checkpoint.folder}: {error}") from error


def _loading_errors() -> tuple[type[Exception], ...]:
    """Return what is raised for files that are damaged or of an unknown kind, and for memory that is not there."""
    safetensors = import_package("safetensors", extra=EXTRA)
    return (OSError, ValueError, KeyError, RuntimeError, ImportError, safetensors.SafetensorError)


def _imported(loading: Loading) -> Any:
    """Return vLLM, imported under the settings that we need."""
    mode = str(int(loading.batch_invariant))
    loaded_in = os.environ.get(BATCH_INVARIANT, "0") if "vllm" in sys.modules else mode
    if loaded_in == mode:
        os.environ.update({**ENVIRONMENT, BATCH_INVARIANT: mode})
    for name, value in {**PREFERENCES, "OMP_NUM_THREADS": str(loading.threads)}.items():
        os.environ.setdefault(name, value)
    vllm = import_package("vllm", extra=EXTRA)
    platform = import_package("vllm.platforms", extra=EXTRA).current_platform
    if loading.batch_invariant and not (platform.is_cuda_alike() or platform.is_xpu()):
        raise BackendError(
            f"batch_invariant: vLLM has this mode on GPUs, and here it runs on {platform.device_name}; leave it out"
        )
    # Some of vLLM's modules keep the value that they find when they are imported.
    if loaded_in != mode:
        raise BackendError("batch_invariant: vLLM was loaded in this process with another value; one process, one mode")
    return vllm


def _model_config(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the part of config.json that describes the language model."""
    whole = json.loads((checkpoint.folder / "config.json").read_text(encoding="utf-8"))
    return {**whole, **whole.get("text_config", {})}


def _engine_arguments(checkpoint: Checkpoint, *, loading: Loading) -> dict[str, Any]:
    limits = _model_config(checkpoint)
    own = limits.get("max_position_embeddings") or loading.context_tokens
    cache_bytes = None if loading.kv_cache_gb is None else int(loading.kv_cache_gb * BYTES_PER_GB)
    return {
        "model": str(checkpoint.folder),
        "dtype": _dtype(loading.dtype, limits),
        "quantization": loading.quantisation,
        "max_model_len": min(loading.context_tokens, int(own)),
        "max_num_seqs": loading.max_num_seqs,
        "tensor_parallel_size": loading.tensor_parallel_size,
        "gpu_memory_utilization": loading.gpu_memory_utilization,
        "kv_cache_memory_bytes": cache_bytes,
        "enforce_eager": loading.enforce_eager,
        "seed": loading.seed,
        "enable_prefix_caching": True,
        "load_format": "safetensors",
        "trust_remote_code": False,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
    }


def _dtype(wanted: Dtype, limits: Mapping[str, Any]) -> str:
    """Return the precision to use: vLLM's own `auto` would halve that of a float32 checkpoint."""
    if wanted != "auto":
        return wanted
    return str(limits.get("dtype") or limits.get("torch_dtype") or "auto")


def _answer(output: Any) -> EngineAnswer:
    [drawn] = output.outputs
    if drawn.finish_reason not in {"stop", "length"}:
        raise BackendError(f"vLLM gave up a call: {drawn.finish_reason}")
    tokens = tuple(drawn.token_ids)
    by_token = drawn.finish_reason == "stop" and not isinstance(drawn.stop_reason, str)
    first = drawn.logprobs[0] if drawn.logprobs else {}
    return EngineAnswer(
        tokens=tokens,
        n_text_tokens=len(tokens) - by_token,
        finish_reason=drawn.finish_reason,
        logprobs={token: float(found.logprob) for token, found in first.items()},
    )
