from __future__ import annotations

import zlib

import numpy as np
import pytest

from mragaudit.embed.hashing import HashingEmbedder
from mragaudit.errors import ConfigError


def test_a_text_of_one_letter_has_weight_in_the_cells_of_its_two_trigrams() -> None:
    [vector] = HashingEmbedder().embed_documents(["A"])
    cells = {zlib.crc32(gram) % 256 for gram in (b"  a", b" a ")}
    assert set(np.flatnonzero(vector).tolist()) == cells
    assert float(vector @ vector) == pytest.approx(1, abs=1e-6)


def test_a_shared_anchor_makes_texts_of_two_languages_similar() -> None:
    embedder = HashingEmbedder()
    near, far = embedder.embed_documents(["Was steht in CLAIM-2019-4471?", "Was steht in der Akte des Hauses?"])
    [query] = embedder.embed_queries(["CLAIM-2019-4471"])
    assert float(query @ near) > 2 * float(query @ far)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ConfigError, match='"trigrams" alone'):
        HashingEmbedder(model="words")


def test_token_signals_are_the_shares_of_the_trigrams_and_their_axes() -> None:
    [signals] = HashingEmbedder().document_signals(["aaa"])  # "  a", " aa", "aaa", "aa "
    assert list(signals.weights.values()) == [0.25] * 4
    assert signals.vectors.shape == (4, 256)
    assert signals.vectors.sum(axis=1).tolist() == [1.0] * 4
    assert len(HashingEmbedder().query_signals([""])[0].vectors) == 1
