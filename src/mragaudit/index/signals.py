"""Token weights and token vectors of all documents, beside the index of their dense vectors.

Plain NumPy arrays in files, one row a token: `weights.*` 8 bytes a distinct token of a document, `vectors.npy` 4 bytes
a dimension of a token, which is 4 KiB a token for BGE-M3 and read from disk where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mragaudit.errors import DataError, StorageError
from mragaudit.protocols import TokenSignals

FOLDER = "tokens"
"""Below the folder of the index."""
FILES = ("weight_ends", "weight_tokens", "weights", "vector_ends", "vectors")


class DocumentSignals:
    """What the tokens of the documents say, by document id."""

    def __init__(self, arrays: dict[str, NDArray[Any]], *, doc_ids: Sequence[str]) -> None:
        """Take the arrays of `FILES`, documents in the order of `doc_ids`."""
        self._arrays = arrays
        self._weight_slices = _slices(arrays["weight_ends"], doc_ids)
        self._vector_slices = _slices(arrays["vector_ends"], doc_ids)

    @classmethod
    def load(cls, folder: Path, *, doc_ids: Sequence[str]) -> DocumentSignals:
        """Return what `write_signals` wrote; raises DataError when a file is missing or does not fit the documents."""
        arrays: dict[str, NDArray[Any]] = {}
        for name in FILES:
            path = folder / FOLDER / f"{name}.npy"
            try:
                arrays[name] = np.load(path, mmap_mode="r" if name == "vectors" else None, allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                raise DataError(f"{path}: no usable token signals ({error}); run the stage `index` again") from error
        for name in ("weight_ends", "vector_ends"):
            if len(arrays[name]) != len(doc_ids):
                raise DataError(
                    f"{folder / FOLDER}: holds tokens of {len(arrays[name])} documents, the index {len(doc_ids)}; "
                    "run the stage `index` again"
                )
        return cls(arrays, doc_ids=doc_ids)

    def weights(self, doc_id: str) -> dict[int, float]:
        """Return token id → weight of a document."""
        part = self._weight_slices[doc_id]
        tokens, weights = self._arrays["weight_tokens"][part], self._arrays["weights"][part]
        return dict(zip(tokens.tolist(), weights.tolist(), strict=True))

    def vectors(self, doc_id: str) -> NDArray[np.float32]:
        """Return the unit vectors of a document's tokens, shape (n_tokens, dimensions)."""
        return np.asarray(self._arrays["vectors"][self._vector_slices[doc_id]])


def write_signals(folder: Path, signals: Sequence[TokenSignals]) -> None:
    """Write the token signals of all documents, in the order of the index; raises StorageError for a full disk."""
    arrays: dict[str, NDArray[Any]] = {
        "weight_ends": np.cumsum([len(one.weights) for one in signals], dtype=np.int64),
        "weight_tokens": np.array([token for one in signals for token in sorted(one.weights)], dtype=np.int32),
        "weights": np.array([one.weights[token] for one in signals for token in sorted(one.weights)], dtype=np.float32),
        "vector_ends": np.cumsum([len(one.vectors) for one in signals], dtype=np.int64),
        "vectors": np.concatenate([one.vectors for one in signals]).astype(np.float32, copy=False),
    }
    try:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        for name, values in arrays.items():
            np.save(folder / FOLDER / f"{name}.npy", values, allow_pickle=False)
    except OSError as error:
        raise StorageError(f"{folder / FOLDER}: token signals cannot be written there ({error.strerror})") from error


def _slices(ends: Iterable[int], doc_ids: Sequence[str]) -> dict[str, slice]:
    edges = pairwise([0, *(int(end) for end in ends)])
    return {name: slice(start, end) for name, (start, end) in zip(doc_ids, edges, strict=True)}
