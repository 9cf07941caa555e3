"""Search that looks at some of the vectors only: inverted lists and a graph, both with the vectors as they are.

Both are built on one thread from the config's seed, so that equal vectors in equal order give the same index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mragaudit.config.settings import Index
from mragaudit.errors import ConfigError
from mragaudit.index.base import Hits, Sidecar, VectorIndex
from mragaudit.protocols import ModelIdentity
from mragaudit.registry import import_package

DOCUMENTS_PER_LIST = 39
"""Fewest training vectors a centroid for which FAISS does not warn (`ClusteringParameters`)."""
MOST_TRAINED_PER_LIST = 64
"""A quarter of what FAISS takes by default, and of the time; the centroids are a coarse partition only."""


class IvfFlatIndex(VectorIndex):
    """Vectors dealt into lists around centroids; a query is compared with the lists nearest to it."""

    def __init__(self, index: Any, sidecar: Sidecar, *, options: Index) -> None:
        """Take a trained and filled IVF index; `options.nprobe` lists are searched."""
        super().__init__(index, sidecar)
        self._nprobe = options.nprobe

    @classmethod
    def build(
        cls,
        vectors: NDArray[np.float32],
        *,
        doc_ids: Sequence[str],
        embedder: ModelIdentity,
        options: Index,
        seed: int,
    ) -> Self:
        """Return the index; raises ConfigError when there are too few documents to train the lists."""
        faiss = import_package("faiss", extra="embedded")
        n_documents, dimensions = vectors.shape
        nlist = list_count(n_documents, options=options)
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimensions), dimensions, nlist, faiss.METRIC_INNER_PRODUCT)
        index.cp.seed, index.cp.max_points_per_centroid = _short_seed(seed), MOST_TRAINED_PER_LIST
        given = np.ascontiguousarray(vectors, dtype=np.float32)
        with _one_thread(faiss):
            index.train(given)
            index.add(given)
        built_with = {"nlist": nlist, "seed": seed}
        sidecar = Sidecar(
            doc_ids=tuple(doc_ids), dimensions=dimensions, embedder=embedder, kind="ivf_flat", built_with=built_with
        )
        return cls(index, sidecar, options=options)

    def _near(self, queries: NDArray[np.float32], depth: int, widened: int) -> Hits:
        return self._probe(queries, depth, nprobe=min(self._index.nlist, self._nprobe * widened))

    def _exact(self, queries: NDArray[np.float32], depth: int) -> Hits:
        return self._probe(queries, depth, nprobe=self._index.nlist)

    def _probe(self, queries: NDArray[np.float32], depth: int, *, nprobe: int) -> Hits:
        faiss = import_package("faiss", extra="embedded")
        scores, rows = self._index.search(queries, depth, params=faiss.SearchParametersIVF(nprobe=nprobe))
        return scores, rows


class HnswIndex(VectorIndex):
    """Vectors in a navigable graph; a query walks along its links (Malkov and Yashunin 2018, arXiv:1603.09320)."""

    def __init__(self, index: Any, sidecar: Sidecar, *, options: Index) -> None:
        """Take a filled HNSW index; a search keeps `options.ef_search` candidates."""
        super().__init__(index, sidecar)
        self._ef_search = options.ef_search

    @classmethod
    def build(
        cls,
        vectors: NDArray[np.float32],
        *,
        doc_ids: Sequence[str],
        embedder: ModelIdentity,
        options: Index,
        seed: int,
    ) -> Self:
        """Return the index of vectors of shape (n_documents, dimensions)."""
        faiss = import_package("faiss", extra="embedded")
        dimensions = vectors.shape[1]
        index = faiss.IndexHNSWFlat(dimensions, options.m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = options.ef_construction
        index.hnsw.rng = faiss.RandomGenerator(_short_seed(seed))
        with _one_thread(faiss):
            index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        built_with = {"m": options.m, "ef_construction": options.ef_construction, "seed": seed}
        sidecar = Sidecar(
            doc_ids=tuple(doc_ids), dimensions=dimensions, embedder=embedder, kind="hnsw", built_with=built_with
        )
        return cls(index, sidecar, options=options)

    def _near(self, queries: NDArray[np.float32], depth: int, widened: int) -> Hits:
        faiss = import_package("faiss", extra="embedded")
        kept = max(self._ef_search * widened, depth)
        scores, rows = self._index.search(queries, depth, params=faiss.SearchParametersHNSW(efSearch=kept))
        return scores, rows

    def _exact(self, queries: NDArray[np.float32], depth: int) -> Hits:
        scores, rows = self._index.storage.search(queries, depth)
        return scores, rows


def list_count(n_documents: int, *, options: Index) -> int:
    """Return how many lists an IVF index gets: as set, else four times the root of the number of documents.

    FAISS's guidelines name 4 to 16 times the root for up to a million vectors. Raises ConfigError when the documents
    are too few for one list, or for as many as are set.
    """
    most = n_documents // DOCUMENTS_PER_LIST
    if most < 1:
        raise ConfigError(
            f'config key "retrieve.index.kind" is "ivf_flat" and the corpus has {n_documents} documents; its lists are '
            f"trained on at least {DOCUMENTS_PER_LIST} documents each, so use flat"
        )
    if options.nlist is None:
        return max(1, min(most, round(4 * math.sqrt(n_documents))))
    if options.nlist > most:
        raise ConfigError(
            f'config key "retrieve.index.nlist" is {options.nlist} and the corpus has {n_documents} documents; a list '
            f"is trained on at least {DOCUMENTS_PER_LIST}, so nlist may be at most {most} (null chooses)"
        )
    return options.nlist


def _short_seed(seed: int) -> int:
    """FAISS keeps seeds as 32-bit signed integers."""
    return seed % 2**31


@contextmanager
def _one_thread(faiss: Any) -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
