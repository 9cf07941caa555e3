"""Neighbours of documents come from the saved vectors alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mragaudit.errors import DataError
from mragaudit.index.flat import FlatIndex
from mragaudit.index.neighbours import neighbours_of
from mragaudit.protocols import ModelIdentity

pytestmark = pytest.mark.embedded  # faiss

EMBEDDER = ModelIdentity(backend="hashing", model="trigrams", revision="1", rendering="none")


def _saved(folder: Path) -> Path:
    angles = np.array([0.0, 0.1, 1.4])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    FlatIndex.build(vectors, doc_ids=["a", "b", "c"], embedder=EMBEDDER).save(folder)
    return folder


def test_a_document_is_its_own_nearest_and_then_by_angle(tmp_path: Path) -> None:
    assert neighbours_of(_saved(tmp_path), k=2) == {"a": ("a", "b"), "b": ("b", "a"), "c": ("c", "b")}


def test_a_small_index_gives_fewer(tmp_path: Path) -> None:
    assert neighbours_of(_saved(tmp_path), k=9)["a"] == ("a", "b", "c")


def test_a_missing_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no usable index"):
        neighbours_of(tmp_path / "none", k=1)
