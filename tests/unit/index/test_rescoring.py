"""Scores by tokens, worked by hand, and their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mragaudit.config.settings import HybridWeights, RetrievalMethod
from mragaudit.errors import DataError
from mragaudit.index.base import RankedDocuments
from mragaudit.index.rescoring import hybrid_shares, lexical_score, multi_vector_scores, rescored
from mragaudit.index.signals import DocumentSignals, write_signals
from mragaudit.protocols import TokenSignals


def signals(weights: dict[int, float], *vectors: tuple[float, float]) -> TokenSignals:
    return TokenSignals(weights=weights, vectors=np.array(vectors, dtype=np.float32))


QUERY = signals({5: 0.5, 7: 0.2}, (1, 0), (0, 1))
DOCUMENTS = {
    "a": signals({5: 0.5, 9: 1.0}, (1, 0)),  # sparse 0.25; multi-vector (1 + 0) / 2
    "b": signals({}, (0.6, 0.8), (0.8, 0.6)),  # sparse 0; multi-vector (0.8 + 0.8) / 2
    "c": signals({5: 0.1, 7: 1.0}, (-1, 0), (0, -1)),  # sparse 0.05 + 0.2; multi-vector (0 + 0) / 2
}
DENSE = RankedDocuments(doc_ids=("c", "b", "a"), scores=(0.9, 0.5, 0.1))


@pytest.fixture
def documents(tmp_path: Path) -> DocumentSignals:
    write_signals(tmp_path, list(DOCUMENTS.values()))
    return DocumentSignals.load(tmp_path, doc_ids=list(DOCUMENTS))


def ranked(documents: DocumentSignals, method: RetrievalMethod, *, k: int = 3, **weights: float) -> RankedDocuments:
    given = HybridWeights(**weights)
    return rescored(DENSE, QUERY, documents=documents, method=method, weights=given, k=k)


def test_the_lexical_score_adds_products_of_shared_tokens_and_ties_go_by_id(documents: DocumentSignals) -> None:
    assert ranked(documents, "sparse") == RankedDocuments(doc_ids=("a", "c", "b"), scores=(0.25, 0.25, 0.0))


def test_the_multi_vector_score_averages_the_best_match_of_each_query_token(documents: DocumentSignals) -> None:
    assert ranked(documents, "multi_vector", k=2) == RankedDocuments(doc_ids=("b", "a"), scores=(0.8, 0.5))


def test_the_hybrid_score_is_the_weighted_mean_of_the_three(documents: DocumentSignals) -> None:
    # a: (2 * 0.1 + 1 * 0.25 + 1 * 0.5) / 4; b: (2 * 0.5 + 0 + 0.8) / 4; c: (2 * 0.9 + 0.25 + 0) / 4
    found = ranked(documents, "hybrid", dense=2.0, sparse=1.0, multi_vector=1.0)
    assert found == RankedDocuments(doc_ids=("c", "b", "a"), scores=(0.5125, 0.45, 0.2375))


def test_a_hybrid_of_one_weight_ranks_as_that_score_alone(documents: DocumentSignals) -> None:
    assert ranked(documents, "hybrid", dense=0.0, sparse=3.0, multi_vector=0.0) == ranked(documents, "sparse")


def test_the_default_weights_are_those_of_the_ensemble_in_flagembedding() -> None:
    assert hybrid_shares(HybridWeights()) == pytest.approx(
        {"dense": 1 / 2.3, "sparse": 0.3 / 2.3, "multi_vector": 1 / 2.3}
    )


def test_no_shared_token_scores_zero() -> None:
    assert lexical_score({1: 0.5}, {2: 0.5}) == 0.0
    assert lexical_score({}, {}) == 0.0


def test_a_negative_best_match_counts_as_it_is() -> None:
    assert multi_vector_scores(QUERY.vectors[:1], [np.array([[-1.0, 0.0]], dtype=np.float32)]) == [-1.0]


def test_signals_come_back_from_their_files_as_they_were(documents: DocumentSignals) -> None:
    for name, given in DOCUMENTS.items():
        assert documents.weights(name) == pytest.approx(given.weights)
        assert np.array_equal(documents.vectors(name), given.vectors)


@pytest.mark.parametrize("damaged", ["weights", "vectors", "vector_ends"])
def test_a_damaged_or_missing_file_of_signals_is_a_data_error(tmp_path: Path, damaged: str) -> None:
    write_signals(tmp_path, list(DOCUMENTS.values()))
    path = tmp_path / "tokens" / f"{damaged}.npy"
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(DataError, match=rf"{damaged}\.npy: no usable token signals"):
        DocumentSignals.load(tmp_path, doc_ids=list(DOCUMENTS))
    path.unlink()
    with pytest.raises(DataError, match=rf"{damaged}\.npy: no usable token signals"):
        DocumentSignals.load(tmp_path, doc_ids=list(DOCUMENTS))


def test_signals_of_another_number_of_documents_are_refused(tmp_path: Path) -> None:
    write_signals(tmp_path, list(DOCUMENTS.values()))
    with pytest.raises(DataError, match="holds tokens of 3 documents, the index 2"):
        DocumentSignals.load(tmp_path, doc_ids=["a", "b"])
