"""Exact inner-product search with FAISS; ties are broken by document id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from mragaudit.errors import DataError
from mragaudit.protocols import ModelIdentity
from mragaudit.records.base import write_bytes
from mragaudit.registry import import_package

VECTORS_FILE = "vectors.faiss"
SIDECAR_FILE = "documents.json"
DECIMALS = 6
"""Scores are compared and stored at this precision: below it, float32 sums are noise."""


class RankedDocuments(msgspec.Struct, frozen=True, kw_only=True):
    """The best documents for one query, best first."""

    doc_ids: tuple[str, ...]
    scores: tuple[float, ...]


class Sidecar(msgspec.Struct, frozen=True, kw_only=True):
    """What the vectors alone do not say."""

    doc_ids: tuple[str, ...]
    """In the order of the vectors."""
    dimensions: int
    embedder: ModelIdentity


class FlatIndex:
    """Vectors of all documents, searched exhaustively."""

    def __init__(self, index: Any, sidecar: Sidecar) -> None:
        self._index = index
        self._sidecar = sidecar

    @classmethod
    def build(cls, vectors: NDArray[np.float32], *, doc_ids: Sequence[str], embedder: ModelIdentity) -> Self:
        """Return the index of vectors of shape (n_documents, dimensions)."""
        faiss = import_package("faiss", extra="embedded")
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        return cls(index, Sidecar(doc_ids=tuple(doc_ids), dimensions=vectors.shape[1], embedder=embedder))

    def save(self, folder: Path) -> None:
        """Write the index into a folder."""
        faiss = import_package("faiss", extra="embedded")
        write_bytes(folder / VECTORS_FILE, faiss.serialize_index(self._index).tobytes())
        write_bytes(folder / SIDECAR_FILE, msgspec.json.format(msgspec.json.encode(self._sidecar), indent=1))

    @classmethod
    def load(cls, folder: Path, embedder: ModelIdentity) -> Self:
        """Return a saved index; raises DataError when another embedder made it or a file is damaged."""
        faiss = import_package("faiss", extra="embedded")
        try:
            sidecar = msgspec.json.decode((folder / SIDECAR_FILE).read_bytes(), type=Sidecar)
            index = faiss.deserialize_index(np.frombuffer((folder / VECTORS_FILE).read_bytes(), dtype=np.uint8))
        except (OSError, msgspec.DecodeError, RuntimeError) as error:
            raise DataError(f"{folder}: no usable index ({error}); run the stage `index` again") from error
        if sidecar.embedder != embedder:
            raise DataError(
                f"{folder}: the index was made by {sidecar.embedder.model} ({sidecar.embedder.revision}), the queries "
                f"would be embedded by {embedder.model} ({embedder.revision}); run the stage `index` again"
            )
        return cls(index, sidecar)

    def search(self, queries: NDArray[np.float32], k: int) -> list[RankedDocuments]:
        """Return the k best documents for each query vector, fewer when the index holds fewer."""
        if not len(queries):
            return []
        scores, rows = self._search_with_ties(np.ascontiguousarray(queries, dtype=np.float32), k)
        return [
            rank_documents(one_scores, one_rows, doc_ids=self._sidecar.doc_ids, k=k)
            for one_scores, one_rows in zip(scores, rows, strict=True)
        ]

    def _search_with_ties(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Search deep enough that no document tied with the k-th stays outside."""
        total = len(self._sidecar.doc_ids)
        depth = min(total, k + 1)
        while True:
            scores, rows = self._index.search(queries, depth)
            rounded = np.round(scores, DECIMALS)
            if depth == total or bool(np.all(rounded[:, k - 1] > rounded[:, -1])):
                return scores, rows
            depth = min(total, depth * 2)


def rank_documents(
    scores: Sequence[float] | NDArray[np.float32],
    rows: Sequence[int] | NDArray[np.int64],
    *,
    doc_ids: Sequence[str],
    k: int,
) -> RankedDocuments:
    """Return the k best of the found rows, best first, ties by document id.

    FAISS pads with row -1 when it has fewer hits than asked: that is no document, and never the last one.
    """
    found = [
        (-round(float(score), DECIMALS), doc_ids[int(row)]) for score, row in zip(scores, rows, strict=True) if row >= 0
    ]
    best = sorted(found)[:k]
    return RankedDocuments(doc_ids=tuple(name for _, name in best), scores=tuple(-score for score, _ in best))
