"""IVF and HNSW: what they find, that they are the same each time, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mragaudit.config.settings import Index
from mragaudit.errors import ConfigError, DataError
from mragaudit.index.approximate import list_count
from mragaudit.index.base import VectorIndex
from mragaudit.index.flat import FlatIndex
from mragaudit.index.kinds import build_index, load_index
from mragaudit.index.neighbours import neighbours_of
from mragaudit.index.recall import found_shares, sampled
from mragaudit.protocols import ModelIdentity

MADE_BY = ModelIdentity(backend="hashing", model="trigrams", revision="1", rendering="")
KINDS = ("ivf_flat", "hnsw")
NARROW = {
    "ivf_flat": Index(kind="ivf_flat", nlist=25, nprobe=1),
    "hnsw": Index(kind="hnsw", m=2, ef_construction=2, ef_search=1),
}
"""So little work that much is missed."""


def units(n: int, *, dimensions: int = 16, seed: int = 7) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def names(n: int) -> list[str]:
    return [f"d{place:04}" for place in range(n)]


def built(options: Index, vectors: np.ndarray, *, seed: int = 1) -> VectorIndex:
    return build_index(vectors, doc_ids=names(len(vectors)), embedder=MADE_BY, options=options, seed=seed)


def flat(vectors: np.ndarray) -> FlatIndex:
    return FlatIndex.build(vectors, doc_ids=names(len(vectors)), embedder=MADE_BY)


VECTORS = units(1000)
QUERIES = units(40, seed=8)


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_with_the_defaults_nearly_all_of_the_best_are_found(kind: str) -> None:
    index = built(Index.model_validate({"kind": kind}), VECTORS)
    assert np.mean(found_shares(index, QUERIES, k=5)) >= 0.95


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_with_little_work_some_of_the_best_are_missed_and_the_recall_says_so(kind: str) -> None:
    index = built(NARROW[kind], VECTORS)
    best = [set(ranked.doc_ids) for ranked in flat(VECTORS).search(QUERIES, 5)]
    mine = [set(ranked.doc_ids) for ranked in index.search(QUERIES, 5)]
    expected = [len(one & other) / 5 for one, other in zip(best, mine, strict=True)]
    assert found_shares(index, QUERIES, k=5) == tuple(expected)
    assert 0.05 < np.mean(expected) < 0.9


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_has_its_own_inner_product_and_comes_best_first(kind: str) -> None:
    index = built(NARROW[kind], VECTORS)
    for query, ranked in zip(QUERIES, index.search(QUERIES, 5), strict=True):
        rows = [int(name[1:]) for name in ranked.doc_ids]
        assert ranked.scores == pytest.approx(VECTORS[rows] @ query, abs=1e-6)
        assert list(ranked.scores) == sorted(ranked.scores, reverse=True)


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_the_exact_search_of_an_approximate_index_is_that_of_the_flat_one(kind: str) -> None:
    index = built(NARROW[kind], VECTORS)
    assert [one.doc_ids for one in index.search_exactly(QUERIES, 7)] == [
        one.doc_ids for one in flat(VECTORS).search(QUERIES, 7)
    ]


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_k_documents_come_back_even_where_the_lists_or_links_first_looked_at_hold_fewer(kind: str) -> None:
    index = built(NARROW[kind], VECTORS)
    assert {len(ranked.doc_ids) for ranked in index.search(QUERIES, 200)} == {200}
    assert {len(set(ranked.doc_ids)) for ranked in index.search(QUERIES, 200)} == {200}


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_as_many_as_there_are_gives_all_documents_in_their_exact_order(kind: str) -> None:
    index = built(NARROW[kind], VECTORS)
    exact = flat(VECTORS).search(QUERIES[:3], 1000)
    assert [one.doc_ids for one in index.search(QUERIES[:3], 5000)] == [one.doc_ids for one in exact]


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_equal_documents_are_ordered_by_id_over_the_boundary(kind: str) -> None:
    vectors = np.concatenate([np.tile(VECTORS[:1], (30, 1)), VECTORS[30:]])
    [ranked] = built(Index.model_validate({"kind": kind}), vectors).search(vectors[:1], 3)
    assert ranked.doc_ids == ("d0000", "d0001", "d0002")


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_does_not_depend_on_the_other_queries_of_its_batch(kind: str) -> None:
    index = built(NARROW[kind], VECTORS)
    alone = [index.search(QUERIES[place : place + 1], 5)[0] for place in range(len(QUERIES))]
    assert index.search(QUERIES, 5) == alone
    assert index.search(QUERIES[:0], 5) == []


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_files_and_another_seed_others(kind: str, tmp_path: Path) -> None:
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        built(NARROW[kind], VECTORS, seed=seed).save(tmp_path / folder)
    first, again, other = ((tmp_path / name / "vectors.faiss").read_bytes() for name in "abc")
    assert first == again
    assert first != other


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_index_answers_as_before(kind: str, tmp_path: Path) -> None:
    index = built(NARROW[kind], VECTORS)
    index.save(tmp_path)
    loaded = load_index(tmp_path, embedder=MADE_BY, options=NARROW[kind])
    assert loaded.kind == kind
    assert loaded.search(QUERIES, 5) == index.search(QUERIES, 5)
    assert loaded.search_exactly(QUERIES, 5) == index.search_exactly(QUERIES, 5)


@pytest.mark.embedded
def test_an_index_of_another_kind_than_the_config_names_is_refused(tmp_path: Path) -> None:
    built(NARROW["hnsw"], VECTORS[:50]).save(tmp_path)
    message = r'the index is hnsw, but config key "retrieve.index.kind" is "flat"'
    with pytest.raises(DataError, match=message):
        load_index(tmp_path, embedder=MADE_BY, options=Index())
    with pytest.raises(DataError, match=message):
        FlatIndex.load(tmp_path, MADE_BY)


@pytest.mark.embedded
@pytest.mark.parametrize("kind", KINDS)
def test_the_neighbours_of_a_document_are_the_exact_ones(kind: str, tmp_path: Path) -> None:
    built(NARROW[kind], VECTORS).save(tmp_path / "near")
    flat(VECTORS).save(tmp_path / "exact")
    assert neighbours_of(tmp_path / "near", k=3) == neighbours_of(tmp_path / "exact", k=3)


@pytest.mark.embedded
def test_a_flat_index_writes_nothing_about_kinds_into_its_sidecar(tmp_path: Path) -> None:
    flat(VECTORS[:2]).save(tmp_path)
    assert b"kind" not in (tmp_path / "documents.json").read_bytes()


@pytest.mark.parametrize(
    ("n_documents", "nlist", "expected"),
    [
        (39, None, 1),
        (1000, None, 25),  # 1000 // 39, fewer than 4 * sqrt(1000) = 126
        (200_000, None, 1789),  # 4 * sqrt(200000) = 1788.85
        (1000, 25, 25),
    ],
)
def test_lists_are_as_many_as_set_or_four_times_the_root(n_documents: int, nlist: int | None, expected: int) -> None:
    assert list_count(n_documents, options=Index(kind="ivf_flat", nlist=nlist)) == expected


@pytest.mark.parametrize(
    ("n_documents", "nlist", "message"),
    [
        (38, None, "the corpus has 38 documents; its lists are trained on at least 39 documents each, so use flat"),
        (1000, 26, "nlist may be at most 25"),
    ],
)
def test_too_few_documents_for_the_lists_are_refused(n_documents: int, nlist: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list_count(n_documents, options=Index(kind="ivf_flat", nlist=nlist))


def test_a_sample_depends_on_the_ids_and_not_on_their_order() -> None:
    ids = [f"q{number}-sw" for number in range(50)]
    chosen = {ids[place] for place in sampled(ids, 10)}
    assert len(chosen) == 10
    assert {ids[::-1][place] for place in sampled(ids[::-1], 10)} == chosen
    assert sampled(ids[:3], 10) == [0, 1, 2]
    assert sampled([], 10) == []
