"""Any sentence-transformers model from a folder, a package or the hub's cache."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mragaudit.embed.base import unit_rows
from mragaudit.embed.batches import even_batches
from mragaudit.embed.checkpoints import Checkpoint, find_checkpoint
from mragaudit.embed.torch_device import Device, memory_explained, prepare_device, require_batch
from mragaudit.errors import BackendError, ConfigError
from mragaudit.protocols import Meter, ModelIdentity
from mragaudit.registry import import_package

logger = logging.getLogger(__name__)

EXTRA = "sentence_transformers"
QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""Names under which a model keeps its own prompts, the first that it has counts."""


class SentenceTransformersEmbedder:
    """A model of the package sentence-transformers.

    A text's vector depends on `batch_size` but on no other text: see `even_batches`.
    """

    def __init__(
        self,
        *,
        model: str,
        revision: str = "main",
        batch_size: int = 1,
        max_tokens: int | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        fp16: bool = False,
        device: Device = "auto",
        threads: int = 1,
    ) -> None:
        """Load the model.

        `model` is a folder, `package:NAME` or a hub id, `revision` the branch, tag or commit of a hub id. A prompt is
        put before each text ("query: "); null takes the model's own, "" none. `max_tokens` null takes the model's
        own length; longer texts are cut, with a warning. Raises ConfigError for a folder that is not there and
        options that do not fit, MissingPackageError, BackendError where the weights cannot be loaded.
        """
        checkpoint = find_checkpoint(model, revision=revision)
        self._batch_size = require_batch(batch_size)
        chosen = prepare_device(device, fp16=fp16, threads=threads, extra=EXTRA)
        self._engine = _load(checkpoint, fp16=fp16, device=chosen)
        self._max_tokens = _limited(self._engine, max_tokens)
        self._query_prompt = _own_prompt(self._engine, QUERY_PROMPTS) if query_prompt is None else query_prompt
        self._document_prompt = (
            _own_prompt(self._engine, DOCUMENT_PROMPTS) if document_prompt is None else document_prompt
        )
        self.identity = _identity(
            checkpoint,
            batch_size=batch_size,
            max_tokens=max_tokens,
            prompts={"query": query_prompt, "document": document_prompt},
            fp16=fp16,
        )
        self.meter = Meter()
        self.dimensions = int(self._engine.get_embedding_dimension())

    @staticmethod
    def identify(
        *,
        model: str,
        revision: str = "main",
        batch_size: int = 1,
        max_tokens: int | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        fp16: bool = False,
        **_others: object,
    ) -> ModelIdentity:
        """Return the identity without loading the model; raises as `find_checkpoint` does."""
        prompts = {"query": query_prompt, "document": document_prompt}
        checkpoint = find_checkpoint(model, revision=revision)
        return _identity(checkpoint, batch_size=batch_size, max_tokens=max_tokens, prompts=prompts, fp16=fp16)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of texts to be found."""
        return self._embed(texts, prompt=self._document_prompt)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of texts to search with."""
        return self._embed(texts, prompt=self._query_prompt)

    def _embed(self, texts: Sequence[str], *, prompt: str) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for positions in even_batches(self._token_counts(texts, prompt=prompt), size=self._batch_size):
            start = time.perf_counter()
            with memory_explained(batch_size=self._batch_size, extra=EXTRA):
                rows[list(positions)] = self._engine.encode(
                    [texts[position] for position in positions],
                    prompt=prompt,
                    batch_size=self._batch_size,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
            self.meter.add(time.perf_counter() - start)
        return unit_rows(rows)

    def _token_counts(self, texts: Sequence[str], *, prompt: str) -> list[int]:
        """Return the tokens that the model will see of each text, prompt included."""
        counts = [int(self._engine.preprocess([text], prompt=prompt)["input_ids"].shape[-1]) for text in texts]
        full = sum(count == self._max_tokens for count in counts)
        if full:
            logger.warning(
                "sentence_transformers: %d of %d texts fill %d tokens, so they were cut or just fit",
                full,
                len(texts),
                self._max_tokens,
            )
        return counts


def _identity(
    checkpoint: Checkpoint, *, batch_size: int, max_tokens: int | None, prompts: dict[str, str | None], fp16: bool
) -> ModelIdentity:
    parts = [f"batch {batch_size}", "fp16" if fp16 else "fp32"]
    parts += [f"max {max_tokens} tokens"] if max_tokens is not None else []
    # The model's own prompts and length stand in its folder, so the revision speaks for them.
    parts += [f"{kind} prompt {text!r}" for kind, text in prompts.items() if text is not None]
    return ModelIdentity(
        backend="sentence_transformers",
        model=checkpoint.name,
        revision=checkpoint.revision,
        rendering=", ".join(parts),
    )


def _load(checkpoint: Checkpoint, *, fp16: bool, device: str) -> Any:
    package = import_package("sentence_transformers", extra=EXTRA)
    try:
        engine = package.SentenceTransformer(
            str(checkpoint.folder), device=device, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # the loaders have no error of their own for damaged or foreign files
        raise BackendError(f"sentence_transformers: {checkpoint.folder} cannot be loaded: {error}") from error
    return engine.half() if fp16 else engine.float()


def _limited(engine: Any, max_tokens: int | None) -> int | None:
    """Set a shorter limit on a text's tokens and return the limit that holds; None where the model has none."""
    own = engine.max_seq_length
    if max_tokens is None:
        return None if own is None else int(own)
    if max_tokens < 1 or (own is not None and max_tokens > own):
        raise ConfigError(f'embedder option "max_tokens" is {max_tokens}; this model allows 1 to {own or "any number"}')
    engine.max_seq_length = max_tokens
    return max_tokens


def _own_prompt(engine: Any, names: Sequence[str]) -> str:
    """Return the model's prompt of the first name that it knows, else its default prompt, else none."""
    for name in (*names, engine.default_prompt_name):
        if engine.prompts.get(name):
            return str(engine.prompts[name])
    return ""
