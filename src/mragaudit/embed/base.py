"""What embedders share: unit vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows at length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
