"""BGE-M3 through FlagEmbedding: one dense vector a text, and on demand a weight and a vector for each of its tokens.

Chen et al. (2024), M3-Embedding, arXiv:2402.03216. The model is driven batch by batch and not through the package's
`encode`, which makes batches smaller by itself when memory runs out, and with them other vectors.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mragaudit.embed.base import unit_rows
from mragaudit.embed.batches import even_batches
from mragaudit.embed.checkpoints import Checkpoint, find_checkpoint
from mragaudit.embed.torch_device import Device, memory_explained, prepare_device, require_batch
from mragaudit.errors import BackendError, ConfigError
from mragaudit.protocols import Meter, ModelIdentity, TokenSignals
from mragaudit.registry import import_package

logger = logging.getLogger(__name__)

EXTRA = "bge_m3"
MODEL = "BAAI/bge-m3"
MAX_TOKENS = 8192
"""What the model was trained for; FlagEmbedding itself would cut at 512."""
HEADS = ("colbert_linear.pt", "sparse_linear.pt")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Batch:
    """Texts of one token count on their way through the model."""

    positions: tuple[int, ...]
    """Places of the texts; the last one is repeated where the batch was filled up."""
    token_ids: tuple[tuple[int, ...], ...]
    outputs: dict[str, NDArray[np.float32]]


class BgeM3Embedder:
    """BGE-M3, or another checkpoint in its layout.

    A text's vector depends on `batch_size`, since matrices of another shape are multiplied in another order, but on
    no other text: see `even_batches`.
    """

    def __init__(
        self,
        *,
        model: str = MODEL,
        revision: str = "main",
        batch_size: int = 1,
        max_tokens: int = MAX_TOKENS,
        query_instruction: str = "",
        passage_instruction: str = "",
        fp16: bool = False,
        device: Device = "auto",
        threads: int = 1,
    ) -> None:
        """Load the model.

        `model` is a folder, `package:NAME` or a hub id, `revision` the branch, tag or commit of a hub id. The
        instructions are put before each text; BGE-M3 was trained without any. Texts longer than `max_tokens` are cut,
        with a warning. Raises ConfigError for a folder that is not there or not in BGE-M3's layout and for options
        that do not fit, MissingPackageError, BackendError where the weights cannot be loaded.
        """
        checkpoint = find_checkpoint(model, revision=revision)
        _require_heads(checkpoint.folder)
        self._batch_size = require_batch(batch_size)
        self._max_tokens = max_tokens
        self._instructions = {"query": query_instruction, "passage": passage_instruction}
        self._device = prepare_device(device, fp16=fp16, threads=threads, extra=EXTRA)
        self._engine = _load(checkpoint, fp16=fp16, device=self._device)
        _require_positions(self._engine.model.config, max_tokens)
        self.identity = _identity(
            checkpoint, batch_size=batch_size, max_tokens=max_tokens, fp16=fp16, instructions=self._instructions
        )
        self.meter = Meter()
        self.dimensions = int(self._engine.model.config.hidden_size)

    @staticmethod
    def identify(
        *,
        model: str = MODEL,
        revision: str = "main",
        batch_size: int = 1,
        max_tokens: int = MAX_TOKENS,
        query_instruction: str = "",
        passage_instruction: str = "",
        fp16: bool = False,
        **_others: object,
    ) -> ModelIdentity:
        """Return the identity without loading the model; raises as `find_checkpoint` does."""
        instructions = {"query": query_instruction, "passage": passage_instruction}
        checkpoint = find_checkpoint(model, revision=revision)
        return _identity(checkpoint, batch_size=batch_size, max_tokens=max_tokens, fp16=fp16, instructions=instructions)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of texts to be found."""
        return self._dense(texts, instruction=self._instructions["passage"])

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of texts to search with."""
        return self._dense(texts, instruction=self._instructions["query"])

    def document_signals(self, texts: Sequence[str]) -> list[TokenSignals]:
        """Return token weights and token vectors of texts to be found."""
        return self._signals(texts, instruction=self._instructions["passage"])

    def query_signals(self, texts: Sequence[str]) -> list[TokenSignals]:
        """Return token weights and token vectors of texts to search with."""
        return self._signals(texts, instruction=self._instructions["query"])

    def _dense(self, texts: Sequence[str], *, instruction: str) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for batch in self._batches(texts, instruction=instruction, return_dense=True):
            rows[list(batch.positions)] = batch.outputs["dense_vecs"]
        return unit_rows(rows)

    def _signals(self, texts: Sequence[str], *, instruction: str) -> list[TokenSignals]:
        found: dict[int, TokenSignals] = {}
        ask = {"return_dense": False, "return_sparse": True, "return_colbert_vecs": True}
        for batch in self._batches(texts, instruction=instruction, **ask):
            for row, position in enumerate(batch.positions):
                found[position] = TokenSignals(
                    weights=self._weights(batch.token_ids[row], batch.outputs["sparse_vecs"][row, :, 0]),
                    vectors=unit_rows(batch.outputs["colbert_vecs"][row]),
                )
        return [found[position] for position in range(len(texts))]

    def _weights(self, token_ids: Sequence[int], weights: NDArray[np.float32]) -> dict[int, float]:
        """Return the greatest weight of each token, without the tokens that stand for no text (section 3.1)."""
        tokenizer = self._engine.tokenizer
        silent = {tokenizer.cls_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id}
        greatest: dict[int, float] = {}
        for token, weight in zip(token_ids, weights.tolist(), strict=True):
            if token not in silent and weight > greatest.get(token, 0.0):
                greatest[token] = weight
        return greatest

    def _batches(self, texts: Sequence[str], *, instruction: str, **ask: bool) -> Iterator[_Batch]:
        token_ids = self._token_ids([instruction + text for text in texts])
        for positions in even_batches([len(ids) for ids in token_ids], size=self._batch_size):
            inputs = [token_ids[position] for position in positions]
            yield _Batch(positions=positions, token_ids=tuple(inputs), outputs=self._run(inputs, ask))

    def _token_ids(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        if not texts:
            return []
        tokenizer = self._engine.tokenizer
        whole = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        cut = sum(len(ids) > self._max_tokens for ids in whole)
        if cut:
            logger.warning("bge_m3: %d of %d texts were cut to %d tokens", cut, len(texts), self._max_tokens)
            whole = tokenizer(list(texts), truncation=True, max_length=self._max_tokens)["input_ids"]
        return [tuple(ids) for ids in whole]

    def _run(self, inputs: list[tuple[int, ...]], ask: dict[str, bool]) -> dict[str, NDArray[np.float32]]:
        torch = import_package("torch", extra=EXTRA)
        start = time.perf_counter()
        with torch.inference_mode(), memory_explained(batch_size=self._batch_size, extra=EXTRA):
            ids = torch.tensor(inputs, device=self._device)
            outputs = self._engine.model({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, **ask)
            arrays = {name: values.float().cpu().numpy() for name, values in outputs.items()}
        self.meter.add(time.perf_counter() - start)
        return arrays


def _identity(
    checkpoint: Checkpoint, *, batch_size: int, max_tokens: int, fp16: bool, instructions: dict[str, str]
) -> ModelIdentity:
    parts = [f"batch {batch_size}", f"max {max_tokens} tokens", "fp16" if fp16 else "fp32"]
    parts += [f"{kind} instruction {text!r}" for kind, text in instructions.items() if text]
    return ModelIdentity(
        backend="bge_m3", model=checkpoint.name, revision=checkpoint.revision, rendering=", ".join(parts)
    )


def _load(checkpoint: Checkpoint, *, fp16: bool, device: str) -> Any:
    try:
        package = import_package("FlagEmbedding", extra=EXTRA)
    except ImportError as error:
        raise BackendError(
            f"bge_m3: FlagEmbedding cannot be imported ({error}); the versions that fit together come with: "
            f"pip install 'mragaudit[{EXTRA}]'"
        ) from error
    try:
        engine = package.BGEM3FlagModel(
            str(checkpoint.folder), use_fp16=fp16, devices=device, normalize_embeddings=True, trust_remote_code=False
        )
        engine.model.to(device).eval()
    except Exception as error:  # the loaders have no error of their own for damaged or foreign files
        raise BackendError(f"bge_m3: {checkpoint.folder} cannot be loaded: {error}") from error
    return engine


def _require_heads(folder: Path) -> None:
    """FlagEmbedding would make up the weights of a head that is not there."""
    for name in HEADS:
        if not (folder / name).is_file():
            raise ConfigError(
                f"model: {folder} has no {name}; bge_m3 runs checkpoints in BGE-M3's layout, others run under "
                "backend: sentence_transformers"
            )


def _require_positions(config: Any, max_tokens: int) -> None:
    # XLM-RoBERTa counts positions from the padding token's id + 1.
    limit = int(config.max_position_embeddings) - int(config.pad_token_id) - 1
    if not 1 <= max_tokens <= limit:
        raise ConfigError(f'embedder option "max_tokens" is {max_tokens}; this checkpoint allows 1 to {limit}')
