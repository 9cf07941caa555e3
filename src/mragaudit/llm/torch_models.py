"""What the backends on PyTorch share: loading, batches of like length, greedy generation watched row by row.

torch and transformers are imported by functions alone: a dry run and the scoring stages work without them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from mragaudit.errors import BackendError, ConfigError
from mragaudit.llm.base import BATCH_CALLS, BATCH_SECONDS, longest_head
from mragaudit.llm.checkpoint_prompts import answer_text, decoded, plain_tokens, token_ends
from mragaudit.llm.checkpoints import Checkpoint
from mragaudit.protocols import Completion, Meter
from mragaudit.registry import import_package

logger = logging.getLogger(__name__)

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
ModelClass = Literal["AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForSequenceClassification"]
Item = TypeVar("Item")

BATCH_SIZE = 16
MAX_BATCH_SIZE = 64
"""A killed run loses the batch under way, and may lose 64 calls at most."""
BURST_SECONDS = 5.0
"""Seconds of model time after which the journal must be on disk where batches are larger than 16 calls."""

_OWN_FILES_ALONE = {"local_files_only": True, "trust_remote_code": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Loading:
    """How a checkpoint is brought into memory."""

    dtype: Dtype
    """Of weights and arithmetic; auto: as the checkpoint says."""
    device: str
    """auto (a GPU if there is one), cpu, cuda, cuda:1, …"""
    quantisation: Literal["nf4"] | None
    threads: int
    """Of the CPU."""
    extra: str
    """Extra of mragaudit whose packages are needed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """A model and its tokenizer, both of transformers."""

    model: Any
    tokenizer: Any
    ends: frozenset[int]
    """Tokens that end an answer; none for a model that writes none."""
    pad: int

    @property
    def device(self) -> Any:
        """Where inputs go."""
        return self.model.device

    @property
    def max_positions(self) -> int | None:
        """Longest input that the model was made for; None where it does not say."""
        limit = getattr(self.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        return None if limit is None else int(limit)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowAnswer:
    """What one row of a batch came to."""

    text: str
    finish_reason: Literal["stop", "length"]
    n_tokens: int
    """Tokens drawn, the one that ended the answer among them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchBounds:
    """When the journal must be on disk, where calls go to the model in batches."""

    calls: int
    seconds: float


def batch_bounds(size: int) -> BatchBounds:
    """Return the bounds for a number of calls together; raises ConfigError outside 1 to MAX_BATCH_SIZE."""
    if not 1 <= size <= MAX_BATCH_SIZE:
        raise ConfigError(f"batch_size is {size}; it must lie between 1 and {MAX_BATCH_SIZE}")
    if size <= BATCH_CALLS:
        return BatchBounds(calls=BATCH_CALLS, seconds=BATCH_SECONDS)
    return BatchBounds(calls=MAX_BATCH_SIZE, seconds=BURST_SECONDS)


def like_lengths(items: Sequence[Item], *, length: Callable[[Item], int], size: int) -> Iterator[list[Item]]:
    """Yield batches of at most `size` items, longest first: a batch that does not fit fails before any work is done."""
    ordered = sorted(items, key=length, reverse=True)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def load_checkpoint(checkpoint: Checkpoint, *, kind: ModelClass, loading: Loading) -> Loaded:
    """Return model and tokenizer, ready for greedy generation where the model generates.

    Raises MissingPackageError without a package, BackendError for a GPU that is not there and for files that
    transformers cannot load. Only safetensors are read, and no code that comes with a model is run.
    """
    torch = import_package("torch", extra=loading.extra)
    transformers = import_package("transformers", extra=loading.extra)
    safetensors = import_package("safetensors", extra=loading.extra)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(loading.threads)
    device = _device(loading.device, torch)
    how = {
        "dtype": loading.dtype,
        "device_map": device,
        "quantization_config": _quantisation(loading, device=device, torch=torch, transformers=transformers),
    }
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint.folder, **_OWN_FILES_ALONE)
        model, report = getattr(transformers, kind).from_pretrained(
            checkpoint.folder, use_safetensors=True, output_loading_info=True, **how, **_OWN_FILES_ALONE
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, safetensors.SafetensorError) as error:
        raise BackendError(f"model {checkpoint.name}: transformers cannot load {checkpoint.folder}: {error}") from error
    require_all_weights(report["missing_keys"], checkpoint=checkpoint)
    logger.info("model %s: sha256 %s, %s on %s", checkpoint.name, checkpoint.sha256, model.dtype, device)
    if not tokenizer.is_fast:
        raise BackendError(f"model {checkpoint.name}: its tokenizer has no fast version (tokenizer.json)")
    if not model.can_generate():
        return Loaded(model=model.eval(), tokenizer=tokenizer, ends=frozenset(), pad=tokenizer.pad_token_id or 0)
    return _made_greedy(model.eval(), tokenizer, transformers=transformers)


def require_all_weights(missing: Collection[str], *, checkpoint: Checkpoint) -> None:
    """Raise BackendError where weights are missing: engines go on with whatever numbers are in their place."""
    if missing:
        raise BackendError(
            f"model {checkpoint.name}: {len(missing)} weights of the architecture are not in {checkpoint.folder}, "
            f"{min(missing)} among them; take a complete checkpoint of the kind that the backend runs"
        )


def _device(wanted: str, torch: Any) -> str:
    there = torch.cuda.is_available()
    if wanted == "auto":
        return "cuda" if there else "cpu"
    if wanted.startswith("cuda") and not there:
        raise BackendError(f'device is "{wanted}" and PyTorch sees no GPU here; set device: cpu or auto')
    return wanted


def _quantisation(loading: Loading, *, device: str, torch: Any, transformers: Any) -> Any:
    if loading.quantisation is None:
        return None
    if not device.startswith("cuda"):
        raise BackendError(
            f"quantisation {loading.quantisation} needs a GPU, and the model would run on {device}; "
            "leave quantisation out, or run a quantised GGUF file with the backend llama_cpp"
        )
    import_package("bitsandbytes", extra="nf4")
    # bitsandbytes has no "auto": float32 is its own default and several times as slow.
    compute = torch.bfloat16 if loading.dtype == "auto" else getattr(torch, loading.dtype)
    return transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute)


def _made_greedy(model: Any, tokenizer: Any, *, transformers: Any) -> Loaded:
    given = model.generation_config
    ends = given.eos_token_id if isinstance(given.eos_token_id, list) else [given.eos_token_id]
    known = frozenset(token for token in (*ends, tokenizer.eos_token_id) if token is not None)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else min(known, default=0)
    # A checkpoint's own settings, such as a repetition penalty, would enter every call, greedy ones too.
    model.generation_config = transformers.GenerationConfig(
        do_sample=False,
        num_beams=1,
        eos_token_id=sorted(known) or None,
        pad_token_id=pad,
        decoder_start_token_id=given.decoder_start_token_id,
    )
    return Loaded(model=model, tokenizer=tokenizer, ends=known, pad=pad)


def padded(rows: Sequence[Sequence[int]], *, pad: int, side: Literal["left", "right"], device: Any) -> tuple[Any, Any]:
    """Return (token ids, mask of what is no padding), each of shape (n_rows, longest row)."""
    import torch  # noqa: PLC0415 - optional package

    width = max(map(len, rows))
    gaps = [width - len(row) for row in rows]
    left = side == "left"
    ids = [[pad] * gap + [*row] if left else [*row] + [pad] * gap for row, gap in zip(rows, gaps, strict=True)]
    mask = [[0] * gap + [1] * (width - gap) if left else [1] * (width - gap) + [0] * gap for gap in gaps]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


class RowWatch:
    """Follows the rows of a batch as they grow, as a stopping criterion of transformers, and keeps their answers."""

    def __init__(
        self,
        *,
        loaded: Loaded,
        limits: Sequence[int],
        stops: Sequence[Sequence[str]],
    ) -> None:
        """Watch rows that may draw `limits` tokens each, and end before any of their `stops`."""
        self._loaded = loaded
        self._limits = limits
        self._stops = [tuple(text for text in stop if text) for stop in stops]
        self._tokens: list[list[int]] = [[] for _ in limits]
        self._answers: list[RowAnswer | None] = [None] * len(limits)

    def __call__(self, input_ids: Any, _scores: Any, **_others: Any) -> Any:
        """Return which rows are finished, after the token that each was just given."""
        import torch  # noqa: PLC0415 - optional package

        for row, token in enumerate(input_ids[:, -1].tolist()):
            if self._answers[row] is None:
                self._tokens[row].append(token)
                self._answers[row] = self._finished(row, token)
        return torch.tensor([answer is not None for answer in self._answers], device=input_ids.device)

    def answers(self) -> list[RowAnswer]:
        """Return the answers, one a row; raises BackendError where transformers ended a row before its time."""
        finished = [answer for answer in self._answers if answer is not None]
        if len(finished) != len(self._limits):
            raise BackendError(f"{len(self._limits) - len(finished)} rows of a batch were left unfinished")
        return finished

    def _finished(self, row: int, token: int) -> RowAnswer | None:
        tokens = self._tokens[row]
        if token in self._loaded.ends:
            return self._answer(tokens[:-1], reason="stop", row=row)
        if self._stops[row]:
            text = self._decode(tokens)
            if any(stop in text for stop in self._stops[row]):
                return self._answer(tokens, reason="stop", row=row)
        return self._answer(tokens, reason="length", row=row) if len(tokens) == self._limits[row] else None

    def _answer(self, tokens: Sequence[int], *, reason: Literal["stop", "length"], row: int) -> RowAnswer:
        text = answer_text(self._decode(tokens), stops=self._stops[row])
        return RowAnswer(text=text, finish_reason=reason, n_tokens=len(self._tokens[row]))

    def _decode(self, tokens: Sequence[int]) -> str:
        return decoded(self._loaded.tokenizer, tokens)


def grow(loaded: Loaded, watch: RowWatch, *, inputs: dict[str, Any], max_tokens: int) -> list[RowAnswer]:
    """Return the greedy continuations of a batch: the likeliest token at each step, none beyond `max_tokens`."""
    loaded.model.generate(**inputs, max_new_tokens=max_tokens, stopping_criteria=[watch])
    return watch.answers()


@contextmanager
def lowest_call(meter: Meter, *, n_calls: int) -> Iterator[None]:
    """Meter a batch as its calls, equal shares of its time each; a GPU that runs full says what to change."""
    import torch  # noqa: PLC0415 - optional package

    start = time.perf_counter()
    try:
        with torch.inference_mode():
            yield
    except torch.OutOfMemoryError as error:
        raise BackendError(
            f"a batch of {n_calls} calls does not fit into the GPU's memory; lower batch_size in the role's options, "
            "or set quantisation: nf4"
        ) from error
    share = (time.perf_counter() - start) / n_calls
    for _ in range(n_calls):
        meter.add(share)


class TorchBackend:
    """What the backends over a loaded checkpoint share."""

    def __init__(
        self, checkpoint: Checkpoint, *, kind: ModelClass, loading: Loading, batch_size: int, context_tokens: int
    ) -> None:
        bounds = batch_bounds(batch_size)
        self.batch_calls, self.batch_seconds = bounds.calls, bounds.seconds
        self.meter = Meter()
        self._loaded = load_checkpoint(checkpoint, kind=kind, loading=loading)
        self._batch_size = batch_size
        self._context_tokens = min(context_tokens, self._loaded.max_positions or context_tokens)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(plain_tokens(self._loaded.tokenizer, text))

    def truncate(self, text: str, max_tokens: int) -> str:
        """Return the longest head of the text that has at most `max_tokens` tokens; never half a character."""
        ends = token_ends(self._loaded.tokenizer, text)
        return longest_head(text, max_tokens=max_tokens, ends=ends, count=self.count_tokens)

    def close(self) -> None:
        """Free the model; may be called twice."""
        # Taken away, not set to None: a closed backend that is asked fails at once.
        self.__dict__.pop("_loaded", None)


def completion_of(answer: RowAnswer, *, prompt_tokens: int) -> Completion:
    """Return a row's answer as a stage is given it."""
    return Completion(
        text=answer.text,
        finish_reason=answer.finish_reason,
        prompt_tokens=prompt_tokens,
        completion_tokens=answer.n_tokens,
    )
