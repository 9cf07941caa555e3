"""Exact inner-product search with FAISS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mragaudit.index.base import Hits, Sidecar, VectorIndex, read_index, require_kind, require_same_embedder
from mragaudit.protocols import ModelIdentity
from mragaudit.registry import import_package


class FlatIndex(VectorIndex):
    """Vectors of all documents, searched exhaustively."""

    @classmethod
    def build(cls, vectors: NDArray[np.float32], *, doc_ids: Sequence[str], embedder: ModelIdentity) -> Self:
        """Return the index of vectors of shape (n_documents, dimensions)."""
        faiss = import_package("faiss", extra="embedded")
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        return cls(index, Sidecar(doc_ids=tuple(doc_ids), dimensions=vectors.shape[1], embedder=embedder))

    @classmethod
    def load(cls, folder: Path, embedder: ModelIdentity) -> Self:
        """Return a saved index; raises DataError when another embedder or kind made it or a file is damaged."""
        index, sidecar = read_index(folder)
        require_same_embedder(sidecar, embedder, folder=folder)
        require_kind(sidecar, "flat", folder=folder)
        return cls(index, sidecar)

    def _near(self, queries: NDArray[np.float32], depth: int, widened: int) -> Hits:  # noqa: ARG002 - nothing to widen
        return self._exact(queries, depth)

    def _exact(self, queries: NDArray[np.float32], depth: int) -> Hits:
        scores, rows = self._index.search(queries, depth)
        return scores, rows
