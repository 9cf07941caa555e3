"""What every registered embedder must do; a new one is picked up from the registry."""

from __future__ import annotations

import numpy as np
import pytest

from mragaudit.protocols import Embedder
from mragaudit.registry import create, names

EMBEDDERS = [
    pytest.param(name, marks=[] if name == "hashing" else [pytest.mark.embedded]) for name in names("embedder")
]
TEXTS = ["The claim CLAIM-2019 is open.", "Der Antrag ist offen.", "المطالبة مفتوحة", "索赔待处理", "x", "", "a\0b"]


@pytest.fixture(scope="module", params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    made: Embedder = create("embedder", request.param, options={"threads": 1})
    return made


def test_it_fulfils_the_protocol_with_an_identity(embedder: Embedder) -> None:
    assert isinstance(embedder, Embedder)
    assert all([embedder.identity.backend, embedder.identity.model, embedder.identity.revision])


def test_vectors_have_length_one_and_the_stated_dimensions(embedder: Embedder) -> None:
    for vectors in (embedder.embed_documents(TEXTS), embedder.embed_queries(TEXTS)):
        assert vectors.shape == (len(TEXTS), embedder.dimensions)
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


def test_a_vector_has_the_same_bits_in_any_batch_and_order(embedder: Embedder) -> None:
    together = embedder.embed_queries(TEXTS)
    assert np.array_equal(embedder.embed_queries(TEXTS[::-1])[::-1], together)
    assert np.array_equal(np.concatenate([embedder.embed_queries([text]) for text in TEXTS]), together)


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.dimensions)


def test_every_text_is_metered(embedder: Embedder) -> None:
    before = embedder.meter.calls
    embedder.embed_documents(TEXTS)
    assert embedder.meter.calls > before
    assert embedder.meter.seconds > 0
