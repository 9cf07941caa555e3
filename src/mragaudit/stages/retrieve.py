"""Stage `retrieve`: the top k documents for every trial."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mragaudit.config import Settings
from mragaudit.config.settings import Retrieve
from mragaudit.index.base import RankedDocuments, VectorIndex
from mragaudit.index.kinds import load_index
from mragaudit.index.recall import found_shares, sampled
from mragaudit.index.rescoring import rescored
from mragaudit.index.signals import DocumentSignals
from mragaudit.protocols import TokenSignals
from mragaudit.records.base import read_records, write_records
from mragaudit.records.queries import Translation, translation_key
from mragaudit.records.results import Retrieval, trial_key
from mragaudit.stages.jobs import IndexRecall, ModelJob
from mragaudit.stages.models import as_token_embedder, embedder_identity


def run(*, translations: Path, index_folder: Path, retrieval: Path, job: ModelJob, settings: Settings) -> None:
    """Write `retrieval/{shard}.jsonl`: a row for each trial that targets a document."""
    trials = asked_trials(read_records(translations, Translation, key=translation_key))
    arrived = [row for row in trials if row.not_evaluated is None]
    texts = [row.text for row in arrived]
    # An index that does not fit is refused before the model is loaded.
    identity = embedder_identity(settings.roles.embedder)
    index = load_index(index_folder, embedder=identity, options=settings.retrieve.index)
    embedder = job.embedder(settings.roles.embedder)
    depth = search_depth(settings.retrieve, n_documents=len(index))
    queries = embedder.embed_queries(texts)
    ranked = index.search(queries, depth)
    if settings.retrieve.method != "dense":
        documents = DocumentSignals.load(index_folder, doc_ids=index.doc_ids)
        signals = as_token_embedder(embedder).query_signals(texts)
        ranked = _rescored(ranked, signals, documents=documents, options=settings.retrieve)
    rows = [_row(row, documents) for row, documents in zip(arrived, ranked, strict=True)]
    rows += [_lost(row) for row in trials if row.not_evaluated is not None]
    write_records(retrieval, rows, key=trial_key)
    recall = _recall(
        index, queries, trial_ids=[row.trial_id for row in arrived], depth=depth, options=settings.retrieve
    )
    job.finish(
        n_expected=len(trials),
        n_actual=len(rows),
        n_not_evaluated=len(trials) - len(arrived),
        index_recall=recall,
    )


def search_depth(options: Retrieve, *, n_documents: int) -> int:
    """Return how many documents the dense search finds: k, or the candidates that another score ranks."""
    if options.method == "dense":
        return options.k
    return min(n_documents, options.candidates or n_documents)


def asked_trials(translations: list[Translation]) -> list[Translation]:
    """Return the trials that go through retrieval and generation: all but judge controls."""
    return [row for row in translations if row.intent != "control"]


def _row(trial: Translation, ranked: RankedDocuments) -> Retrieval:
    ids = ranked.doc_ids
    rank = ids.index(trial.doc_id) + 1 if trial.doc_id in ids else None
    return Retrieval(trial_id=trial.trial_id, doc_ids=ids, scores=ranked.scores, gold_rank=rank)


def _lost(trial: Translation) -> Retrieval:
    return Retrieval(trial_id=trial.trial_id, doc_ids=(), scores=(), gold_rank=None)


def _rescored(
    ranked: list[RankedDocuments], queries: list[TokenSignals], *, documents: DocumentSignals, options: Retrieve
) -> list[RankedDocuments]:
    return [
        rescored(candidates, query, documents=documents, method=options.method, weights=options.weights, k=options.k)
        for candidates, query in zip(ranked, queries, strict=True)
    ]


def _recall(
    index: VectorIndex, queries: NDArray[np.float32], *, trial_ids: list[str], depth: int, options: Retrieve
) -> IndexRecall | None:
    """Return what an approximate index finds of the exact best, on a sample of the queries; None for an exact one."""
    if index.kind == "flat":
        return None
    chosen = sampled(trial_ids, options.index.recall_queries)
    return IndexRecall(kind=index.kind, k=depth, found_shares=found_shares(index, queries[chosen], k=depth))
