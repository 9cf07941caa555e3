"""The documents nearest to each document of a saved index; no model is needed, since their vectors are there."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from mragaudit.errors import DataError
from mragaudit.index.flat import SIDECAR_FILE, VECTORS_FILE, FlatIndex, Sidecar
from mragaudit.registry import import_package


def neighbours_of(folder: Path, *, k: int) -> dict[str, tuple[str, ...]]:
    """Return document id → its k nearest documents, best first, itself among them; fewer in a smaller index.

    Raises DataError when there is no usable index.
    """
    faiss = import_package("faiss", extra="embedded")
    try:
        sidecar = msgspec.json.decode((folder / SIDECAR_FILE).read_bytes(), type=Sidecar)
        index = faiss.deserialize_index(np.frombuffer((folder / VECTORS_FILE).read_bytes(), dtype=np.uint8))
    except (OSError, msgspec.DecodeError, RuntimeError) as error:
        raise DataError(f"{folder}: no usable index ({error}); run the stage `index` again") from error
    vectors = index.reconstruct_n(0, len(sidecar.doc_ids))
    ranked = FlatIndex(index, sidecar).search(vectors, min(k, len(sidecar.doc_ids)))
    return {name: found.doc_ids for name, found in zip(sidecar.doc_ids, ranked, strict=True)}
