"""Scores by tokens over the candidates of the dense search: lexical, multi-vector, and a weighted mean of all three.

Chen et al. (2024), arXiv:2402.03216, section 3.1, for BGE-M3. A multi-vector score is too dear for a whole collection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mragaudit.config.settings import HybridWeights, RetrievalMethod
from mragaudit.index.base import RankedDocuments, best_documents
from mragaudit.index.signals import DocumentSignals
from mragaudit.protocols import TokenSignals

Scores = Mapping[str, float]
"""Document id → score."""


def rescored(
    candidates: RankedDocuments,
    query: TokenSignals,
    *,
    documents: DocumentSignals,
    method: RetrievalMethod,
    weights: HybridWeights,
    k: int,
) -> RankedDocuments:
    """Return the k best of the candidates by another score than their own, ties by document id.

    `hybrid` is the mean of dense, sparse and multi-vector score, weighted; a weight of 0 leaves a score out.
    """
    names = candidates.doc_ids
    scores: dict[RetrievalMethod, Callable[[], Sequence[float]]] = {
        "dense": lambda: candidates.scores,
        "sparse": lambda: [lexical_score(query.weights, documents.weights(name)) for name in names],
        "multi_vector": lambda: multi_vector_scores(query.vectors, [documents.vectors(name) for name in names]),
    }
    if method != "hybrid":
        return best_documents(list(zip(names, scores[method](), strict=True)), k=k)
    shares = {name: share for name, share in hybrid_shares(weights).items() if share > 0}
    parts = [share * np.asarray(scores[name](), dtype=np.float64) for name, share in shares.items()]
    return best_documents(list(zip(names, np.sum(parts, axis=0).tolist(), strict=True)), k=k)


def hybrid_shares(weights: HybridWeights) -> dict[RetrievalMethod, float]:
    """Return the weights divided by their sum."""
    given: dict[RetrievalMethod, float] = {
        "dense": weights.dense,
        "sparse": weights.sparse,
        "multi_vector": weights.multi_vector,
    }
    total = sum(given.values())
    return {name: weight / total for name, weight in given.items()}


def lexical_score(query: Mapping[int, float], document: Mapping[int, float]) -> float:
    """Return the sum over shared tokens of the product of their weights; 0 where none is shared."""
    return sum(weight * document[token] for token, weight in sorted(query.items()) if token in document)


def multi_vector_scores(query: NDArray[np.float32], documents: Sequence[NDArray[np.float32]]) -> list[float]:
    """Return, for each document, the mean over the query's tokens of the best inner product with one of its tokens."""
    return [float((query @ document.T).max(axis=1).mean(dtype=np.float64)) for document in documents]
