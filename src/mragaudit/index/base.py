"""What all kinds of index share: their two files, and ranking with ties broken by document id."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

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

Kind = Literal["flat", "ivf_flat", "hnsw"]
Hits = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Scores and rows, both of shape (n_queries, depth), best first; row -1 pads where nothing more was found."""


class RankedDocuments(msgspec.Struct, frozen=True, kw_only=True):
    """The best documents for one query, best first."""

    doc_ids: tuple[str, ...]
    scores: tuple[float, ...]


class Sidecar(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the vectors alone do not say."""

    doc_ids: tuple[str, ...]
    """In the order of the vectors."""
    dimensions: int
    embedder: ModelIdentity
    kind: Kind = "flat"
    built_with: dict[str, int] = {}
    """Parameters and seed of the building; empty for `flat`, which has none."""


class VectorIndex(ABC):
    """Vectors of all documents, in a FAISS index of some kind."""

    def __init__(self, index: Any, sidecar: Sidecar) -> None:
        """Take a FAISS index that holds the vectors of the sidecar's documents, in their order."""
        self._index = index
        self._sidecar = sidecar

    def __len__(self) -> int:
        return len(self._sidecar.doc_ids)

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """Documents in the order of their vectors."""
        return self._sidecar.doc_ids

    @property
    def kind(self) -> Kind:
        """How the vectors are searched."""
        return self._sidecar.kind

    def save(self, folder: Path) -> None:
        """Write the index into a folder."""
        faiss = import_package("faiss", extra="embedded")
        write_bytes(folder / VECTORS_FILE, faiss.serialize_index(self._index).tobytes())
        write_bytes(folder / SIDECAR_FILE, msgspec.json.format(msgspec.json.encode(self._sidecar), indent=1))

    def search(self, queries: NDArray[np.float32], k: int) -> list[RankedDocuments]:
        """Return the k best documents for each query vector, fewer only when the index holds fewer.

        An approximate kind may miss some of the best, but never returns fewer than k; a query whose k-th place is
        tied or not filled is searched again, deeper and wider, in the end exactly.
        """
        return self._ranked(queries, k, find=self._near)

    def search_exactly(self, queries: NDArray[np.float32], k: int) -> list[RankedDocuments]:
        """Return the k best documents for each query vector, all vectors compared."""
        return self._ranked(queries, k, find=lambda given, depth, _: self._exact(given, depth))

    @abstractmethod
    def _near(self, queries: NDArray[np.float32], depth: int, widened: int) -> Hits:
        """Search as the kind does, `widened` times as wide as set."""

    @abstractmethod
    def _exact(self, queries: NDArray[np.float32], depth: int) -> Hits:
        """Compare all vectors."""

    def _ranked(
        self, queries: NDArray[np.float32], k: int, *, find: Callable[[NDArray[np.float32], int, int], Hits]
    ) -> list[RankedDocuments]:
        """Search each query deep enough that no document tied with the k-th stays outside."""
        total, given = len(self), np.ascontiguousarray(queries, dtype=np.float32)
        k = min(k, total)
        first = depth = min(total, k + 1)
        found: dict[int, RankedDocuments] = {}
        waiting = np.arange(len(given))
        while waiting.size:
            part = given[waiting]
            scores, rows = self._exact(part, depth) if depth == total else find(part, depth, depth // first)
            settled = np.full(len(part), depth == total) | _cut_is_clear(scores, rows, k)
            for place in np.flatnonzero(settled):
                doc_ids = self._sidecar.doc_ids
                found[int(waiting[place])] = rank_documents(scores[place], rows[place], doc_ids=doc_ids, k=k)
            waiting, depth = waiting[~settled], min(total, depth * 2)
        return [found[place] for place in range(len(given))]


def _cut_is_clear(scores: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
    """Return, for each query, whether k documents were found and the last found is worse than the k-th."""
    # FAISS scores a pad with the least float, which overflows when it is rounded.
    rounded = np.round(np.where(rows < 0, -np.inf, scores), DECIMALS)
    return np.asarray(rounded[:, k - 1] > rounded[:, -1])


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
    return best_documents(
        [(doc_ids[int(row)], float(score)) for score, row in zip(scores, rows, strict=True) if row >= 0], k=k
    )


def best_documents(scored: Sequence[tuple[str, float]], *, k: int) -> RankedDocuments:
    """Return the k documents with the highest scores, best first, ties at `DECIMALS` by document id."""
    best = sorted((-round(score, DECIMALS), name) for name, score in scored)[:k]
    return RankedDocuments(doc_ids=tuple(name for _, name in best), scores=tuple(-score for score, _ in best))


def read_index(folder: Path) -> tuple[Any, Sidecar]:
    """Return a saved FAISS index and its sidecar; raises DataError when a file is missing or damaged."""
    faiss = import_package("faiss", extra="embedded")
    try:
        sidecar = msgspec.json.decode((folder / SIDECAR_FILE).read_bytes(), type=Sidecar)
        index = faiss.deserialize_index(np.frombuffer((folder / VECTORS_FILE).read_bytes(), dtype=np.uint8))
    except (OSError, msgspec.DecodeError, RuntimeError) as error:
        raise DataError(f"{folder}: no usable index ({error}); run the stage `index` again") from error
    return index, sidecar


def require_same_embedder(sidecar: Sidecar, embedder: ModelIdentity, *, folder: Path) -> None:
    """Raise DataError when another embedder made the index, or the same one with other options."""
    if sidecar.embedder != embedder:
        raise DataError(
            f"{folder}: the index was made by {_described(sidecar.embedder)}, the queries would be embedded by "
            f"{_described(embedder)}; run the stage `index` again"
        )


def require_kind(sidecar: Sidecar, kind: Kind, *, folder: Path) -> None:
    """Raise DataError when the index is of another kind than asked for."""
    if sidecar.kind != kind:
        raise DataError(
            f'{folder}: the index is {sidecar.kind}, but config key "retrieve.index.kind" is "{kind}"; '
            "run the stage `index` again"
        )


def _described(identity: ModelIdentity) -> str:
    return f"{identity.model} ({', '.join(part for part in (identity.revision, identity.rendering) if part)})"
