from __future__ import annotations

from mragaudit.config.settings import Retrieve
from mragaudit.stages.manifest import RecallSummary
from mragaudit.stages.report import retrieval_words

RECALL = RecallSummary(
    kind="hnsw",
    k=5,
    n_queries=200,
    recall=0.9871,
    low=0.9552,
    high=0.9963,
    interval="wilson_two_sided",
    not_evaluated=None,
)
NONE = RecallSummary(
    kind="hnsw", k=5, n_queries=0, recall=None, low=None, high=None, interval="", not_evaluated="no query was compared"
)


def test_the_default_is_told_by_k_alone() -> None:
    assert retrieval_words(Retrieve(k=5), None) == "k = 5"


def test_another_method_and_an_approximate_index_are_told_with_their_numbers() -> None:
    retrieve = Retrieve(k=5, method="hybrid", candidates=50)
    assert retrieval_words(retrieve, RECALL) == (
        "k = 5; ranked by the score hybrid among 50 dense candidates; index hnsw, recall: 0.987 [0.955, 0.996] of the "
        "exact 5 best on 200 queries (wilson_two_sided)"
    )


def test_a_recall_that_was_not_measured_says_so() -> None:
    retrieve = Retrieve(method="sparse", candidates=None)
    assert retrieval_words(retrieve, NONE) == (
        "k = 2; ranked by the score sparse among all documents; index hnsw, recall: no query was compared"
    )
