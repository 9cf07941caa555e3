"""BGE-M3's layout on a tiny random checkpoint, held against what FlagEmbedding computes by itself."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_embedders import HIDDEN, as_hub_snapshot, make_bge_m3, make_xlm_roberta, put_code_into

from mragaudit.embed.bge_m3 import BgeM3Embedder
from mragaudit.embed.torch_device import memory_explained
from mragaudit.errors import BackendError, ConfigError
from mragaudit.index.rescoring import lexical_score, multi_vector_scores
from mragaudit.protocols import TokenSignals

pytestmark = pytest.mark.torch_embedders

TEXTS = ["The claim is open: CLAIM-2019.", "der Antrag ist offen", "索赔待处理", "the claim", ""]
COMMIT = "5617a9f61b028005a4858fdac845db406aefb181"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bge_m3(tmp_path_factory.mktemp("models") / "tiny-m3")


@pytest.fixture(scope="module")
def embedder(folder: Path) -> BgeM3Embedder:
    return BgeM3Embedder(model=str(folder), batch_size=2, threads=1)


@pytest.fixture(scope="module")
def reference(folder: Path) -> dict[str, Any]:
    """Return what the package's own call gives for the texts, one at a time."""
    from FlagEmbedding import BGEM3FlagModel  # noqa: PLC0415 - optional

    engine = BGEM3FlagModel(str(folder), use_fp16=False, devices="cpu")
    ask = {"return_dense": True, "return_sparse": True, "return_colbert_vecs": True}
    found = [engine.encode([text], batch_size=1, max_length=8192, **ask) for text in TEXTS]
    pairs = [(TEXTS[3], text) for text in TEXTS]
    scores = [engine.compute_score([pair], batch_size=1, weights_for_different_modes=[1.0, 0.3, 1.0]) for pair in pairs]
    return {
        "dense": np.concatenate([one["dense_vecs"] for one in found]),
        "sparse": [{int(token): float(w) for token, w in one["lexical_weights"][0].items()} for one in found],
        "vectors": [one["colbert_vecs"][0] for one in found],
        "scores": scores,
    }


def test_dense_vectors_are_those_of_the_package(embedder: BgeM3Embedder, reference: dict[str, Any]) -> None:
    assert embedder.dimensions == HIDDEN
    assert embedder.embed_documents(TEXTS) == pytest.approx(reference["dense"], abs=1e-5)
    assert np.array_equal(embedder.embed_queries(TEXTS), embedder.embed_documents(TEXTS))


def test_token_signals_are_those_of_the_package(embedder: BgeM3Embedder, reference: dict[str, Any]) -> None:
    signals = embedder.document_signals(TEXTS)
    for mine, sparse, vectors in zip(signals, reference["sparse"], reference["vectors"], strict=True):
        assert dict(mine.weights) == pytest.approx(sparse, abs=1e-5)
        assert mine.vectors == pytest.approx(vectors, abs=1e-5)
    assert any(mine.weights for mine in signals)
    assert len(signals[TEXTS.index("")].vectors) == 1


def test_scores_by_tokens_are_those_of_the_package(embedder: BgeM3Embedder, reference: dict[str, Any]) -> None:
    query: TokenSignals = embedder.query_signals([TEXTS[3]])[0]
    documents = embedder.document_signals(TEXTS)
    multi = multi_vector_scores(query.vectors, [one.vectors for one in documents])
    for mine, document, score in zip(multi, documents, reference["scores"], strict=True):
        assert mine == pytest.approx(score["colbert"][0], abs=1e-5)
        assert lexical_score(query.weights, document.weights) == pytest.approx(score["sparse"][0], abs=1e-5)


def test_signals_have_the_same_bits_in_any_batch_and_order(embedder: BgeM3Embedder) -> None:
    together, turned = embedder.query_signals(TEXTS), embedder.query_signals(TEXTS[::-1])[::-1]
    for one, other in zip(together, turned, strict=True):
        assert one.weights == other.weights
        assert np.array_equal(one.vectors, other.vectors)


def test_the_identity_is_known_without_loading_and_holds_what_changes_vectors(
    folder: Path, embedder: BgeM3Embedder
) -> None:
    known = BgeM3Embedder.identify(model=str(folder), batch_size=2, threads=1)
    assert known == embedder.identity
    assert (known.model, known.rendering) == ("tiny-m3", "batch 2, max 8192 tokens, fp32")
    others: list[dict[str, Any]] = [
        {"batch_size": 3},
        {"batch_size": 2, "max_tokens": 512},
        {"batch_size": 2, "fp16": True},
        {"batch_size": 2, "query_instruction": "find: "},
    ]
    assert all(BgeM3Embedder.identify(model=str(folder), **options) != known for options in others)


def test_an_instruction_stands_before_its_own_kind_of_text(folder: Path, embedder: BgeM3Embedder) -> None:
    given = BgeM3Embedder(model=str(folder), batch_size=2, query_instruction="find: ")
    assert np.array_equal(given.embed_queries(["a"]), embedder.embed_queries(["find: a"]))
    assert np.array_equal(given.embed_documents(["a"]), embedder.embed_documents(["a"]))


def test_a_text_that_is_too_long_is_cut_with_a_warning(
    folder: Path, embedder: BgeM3Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    short = BgeM3Embedder(model=str(folder), batch_size=2, max_tokens=4)
    with caplog.at_level(logging.WARNING):
        cut = short.embed_documents(["xyz xyz", "x"])  # <s> ▁ x y … </s>: two tokens of text are kept
    assert "bge_m3: 1 of 2 texts were cut to 4 tokens" in caplog.text
    assert np.array_equal(cut, embedder.embed_documents(["x", "x"]))


def test_a_hub_id_is_found_in_the_cache_and_its_commit_is_the_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    as_hub_snapshot(tmp_path / "hub", "BAAI/bge-m3", make_bge_m3(tmp_path / "m3"), commit=COMMIT)
    embedder = BgeM3Embedder()
    assert (embedder.identity.model, embedder.identity.revision) == ("BAAI/bge-m3", COMMIT)
    assert embedder.embed_queries(["a"]).shape == (1, HIDDEN)


def test_a_checkpoint_without_the_two_heads_is_refused(tmp_path: Path) -> None:
    plain = make_xlm_roberta(tmp_path / "plain")
    with pytest.raises(ConfigError, match=r"has no colbert_linear\.pt.*sentence_transformers"):
        BgeM3Embedder(model=str(plain))


def test_damaged_weights_are_a_backend_error_that_names_the_folder(tmp_path: Path) -> None:
    damaged = make_bge_m3(tmp_path / "damaged")
    (damaged / "pytorch_model.bin").write_bytes(b"no weights")
    with pytest.raises(BackendError, match=f"{damaged} cannot be loaded"):
        BgeM3Embedder(model=str(damaged))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, '"batch_size" is 0; it must be at least 1'),
        ({"max_tokens": 9000}, '"max_tokens" is 9000; this checkpoint allows 1 to 8192'),
        ({"fp16": True, "device": "cpu"}, '"fp16" needs a GPU'),
    ],
)
def test_options_that_do_not_fit_are_refused(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BgeM3Embedder(model=str(folder), **options)
    assert message in str(caught.value)


def test_a_full_gpu_says_what_would_help() -> None:
    import torch  # noqa: PLC0415 - optional

    message = 'batches of 8; lower the embedder option "batch_size"'
    with pytest.raises(BackendError, match=message), memory_explained(batch_size=8, extra="bge_m3"):
        raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "colbert_linear.pt", "sparse_linear.pt"])
def test_code_inside_weights_is_not_run(tmp_path: Path, name: str) -> None:
    hostile = make_bge_m3(tmp_path / "hostile")
    put_code_into(hostile / name, tmp_path / "ran")
    with pytest.raises(BackendError, match="cannot be loaded"):
        BgeM3Embedder(model=str(hostile))
    assert not (tmp_path / "ran").exists()
