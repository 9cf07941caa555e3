"""The documents nearest to each document of a saved index; no model is needed, since their vectors are there."""

from __future__ import annotations

from pathlib import Path

from mragaudit.index.base import read_index
from mragaudit.index.flat import FlatIndex


def neighbours_of(folder: Path, *, k: int) -> dict[str, tuple[str, ...]]:
    """Return document id → its k nearest documents, best first, itself among them; fewer in a smaller index.

    They are the exact ones for every kind of index. Raises DataError when there is no usable index.
    """
    index, sidecar = read_index(folder)
    if sidecar.kind == "ivf_flat":
        index.make_direct_map()
    vectors = index.reconstruct_n(0, len(sidecar.doc_ids))
    exact = FlatIndex.build(vectors, doc_ids=sidecar.doc_ids, embedder=sidecar.embedder)
    ranked = exact.search(vectors, min(k, len(sidecar.doc_ids)))
    return {name: found.doc_ids for name, found in zip(sidecar.doc_ids, ranked, strict=True)}
