"""Stage `retrieve`: the top k documents for every trial."""

from __future__ import annotations

from pathlib import Path

from mragaudit.config import Settings
from mragaudit.index.flat import FlatIndex, RankedDocuments
from mragaudit.records.base import read_records, write_records
from mragaudit.records.queries import Translation, translation_key
from mragaudit.records.results import Retrieval, trial_key
from mragaudit.stages.jobs import ModelJob


def run(*, translations: Path, index_folder: Path, retrieval: Path, job: ModelJob, settings: Settings) -> None:
    """Write `retrieval/{shard}.jsonl`: a row for each trial that targets a document."""
    trials = asked_trials(read_records(translations, Translation, key=translation_key))
    arrived = [row for row in trials if row.not_evaluated is None]
    embedder = job.embedder(settings.roles.embedder)
    index = FlatIndex.load(index_folder, embedder.identity)
    ranked = index.search(embedder.embed_queries([row.text for row in arrived]), settings.retrieve.k)
    rows = [_row(row, documents) for row, documents in zip(arrived, ranked, strict=True)]
    rows += [_lost(row) for row in trials if row.not_evaluated is not None]
    write_records(retrieval, rows, key=trial_key)
    job.finish(n_expected=len(trials), n_actual=len(rows), n_not_evaluated=len(trials) - len(arrived))


def asked_trials(translations: list[Translation]) -> list[Translation]:
    """Return the trials that go through retrieval and generation: all but judge controls."""
    return [row for row in translations if row.intent != "control"]


def _row(trial: Translation, ranked: RankedDocuments) -> Retrieval:
    ids = ranked.doc_ids
    rank = ids.index(trial.doc_id) + 1 if trial.doc_id in ids else None
    return Retrieval(trial_id=trial.trial_id, doc_ids=ids, scores=ranked.scores, gold_rank=rank)


def _lost(trial: Translation) -> Retrieval:
    return Retrieval(trial_id=trial.trial_id, doc_ids=(), scores=(), gold_rank=None)
