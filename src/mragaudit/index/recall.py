"""How many of the exact best documents an approximate index finds, on a sample of a run's own queries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mragaudit.index.base import VectorIndex


def sampled(ids: Sequence[str], size: int) -> list[int]:
    """Return the positions of at most `size` ids, sorted; the choice depends on the ids alone, not on their order."""
    order = sorted(range(len(ids)), key=lambda position: hashlib.sha256(ids[position].encode()).digest())
    return sorted(order[:size])


def found_shares(index: VectorIndex, queries: NDArray[np.float32], *, k: int) -> tuple[float, ...]:
    """Return, for each query, the share of the exact k best documents that the index's own search finds."""
    near, exact = index.search(queries, k), index.search_exactly(queries, k)
    return tuple(
        len(set(mine.doc_ids) & set(best.doc_ids)) / len(best.doc_ids) for mine, best in zip(near, exact, strict=True)
    )
