"""An index of the kind that the config asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mragaudit.config.settings import Index
from mragaudit.index.approximate import HnswIndex, IvfFlatIndex
from mragaudit.index.base import VectorIndex, read_index, require_kind, require_same_embedder
from mragaudit.index.flat import FlatIndex
from mragaudit.protocols import ModelIdentity

APPROXIMATE: dict[str, type[IvfFlatIndex] | type[HnswIndex]] = {"ivf_flat": IvfFlatIndex, "hnsw": HnswIndex}


def build_index(
    vectors: NDArray[np.float32], *, doc_ids: Sequence[str], embedder: ModelIdentity, options: Index, seed: int
) -> VectorIndex:
    """Return the index of vectors of shape (n_documents, dimensions).

    Raises ConfigError when there are too few documents for the kind.
    """
    if options.kind == "flat":
        return FlatIndex.build(vectors, doc_ids=doc_ids, embedder=embedder)
    kind = APPROXIMATE[options.kind]
    return kind.build(vectors, doc_ids=doc_ids, embedder=embedder, options=options, seed=seed)


def load_index(folder: Path, *, embedder: ModelIdentity, options: Index) -> VectorIndex:
    """Return a saved index.

    Raises DataError when a file is missing or damaged, or another embedder or kind of index made it.
    """
    index, sidecar = read_index(folder)
    require_same_embedder(sidecar, embedder, folder=folder)
    require_kind(sidecar, options.kind, folder=folder)
    if sidecar.kind == "flat":
        return FlatIndex(index, sidecar)
    return APPROXIMATE[sidecar.kind](index, sidecar, options=options)
