"""A deterministic embedder without a model: character trigrams hashed into 256 dimensions.

It knows no language, so a translated query finds its document only by what stayed the same, such as the anchor.
For the methods of retrieval that score by tokens, a trigram is a token and its vector the axis of its dimension.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mragaudit.embed.base import unit_rows
from mragaudit.errors import ConfigError
from mragaudit.protocols import Meter, ModelIdentity, TokenSignals

MODEL = "trigrams"
DIMENSIONS = 256
_GRAM = 3
_TOKEN_BITS = 31
"""Token ids are non-negative 32-bit integers, as of tokenizers."""


class HashingEmbedder:
    """Counts of hashed trigrams, at length 1."""

    def __init__(self, *, model: str = MODEL, threads: int = 1) -> None:  # noqa: ARG002  # protocol
        """Raises ConfigError for another model; `threads` is taken for the protocol's sake."""
        if model != MODEL:
            raise ConfigError(f'hashing: the model is "{model}"; this embedder has "{MODEL}" alone')
        self.identity = self.identify()
        self.meter = Meter()
        self.dimensions = DIMENSIONS

    @staticmethod
    def identify(**_options: object) -> ModelIdentity:
        """Return the identity, which no option changes."""
        return ModelIdentity(backend="hashing", model=MODEL, revision="1", rendering="")

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors."""
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors."""
        return self._embed(texts)

    def document_signals(self, texts: Sequence[str]) -> list[TokenSignals]:
        """Return one record a text."""
        return [_signals(text) for text in texts]

    def query_signals(self, texts: Sequence[str]) -> list[TokenSignals]:
        """Return one record a text."""
        return [_signals(text) for text in texts]

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            start = time.perf_counter()
            for gram in _trigrams(text):
                rows[row, zlib.crc32(gram) % DIMENSIONS] += 1
            self.meter.add(time.perf_counter() - start)
        return unit_rows(rows)


def _signals(text: str) -> TokenSignals:
    """Return the shares of the trigrams in the text, and an axis for each."""
    counts = Counter(_trigrams(text))
    weights = {zlib.crc32(gram) % 2**_TOKEN_BITS: count / counts.total() for gram, count in counts.items()}
    axes = [zlib.crc32(gram) % DIMENSIONS for gram in counts]
    return TokenSignals(weights=weights, vectors=np.eye(DIMENSIONS, dtype=np.float32)[axes])


def _trigrams(text: str) -> list[bytes]:
    folded = f"  {text.casefold()} "
    return [folded[at : at + _GRAM].encode("utf-8", "surrogatepass") for at in range(len(folded) - _GRAM + 1)]
