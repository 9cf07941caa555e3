"""Stage `index`: embed the documents and store the vector index, with token signals where a method asks for them."""

from __future__ import annotations

from pathlib import Path

from mragaudit.config import Settings
from mragaudit.index.kinds import build_index
from mragaudit.index.signals import write_signals
from mragaudit.records.base import read_records
from mragaudit.records.documents import Document, document_key
from mragaudit.stages.gates import require_enough_documents
from mragaudit.stages.jobs import ModelJob
from mragaudit.stages.models import as_token_embedder


def run(*, documents: Path, folder: Path, job: ModelJob, settings: Settings) -> None:
    """Write the index over all documents into `index/`."""
    rows = read_records(documents, Document, key=document_key)
    require_enough_documents(len(rows), k=settings.retrieve.k)
    embedder = job.embedder(settings.roles.embedder)
    texts = [row.text for row in rows]
    index = build_index(
        embedder.embed_documents(texts),
        doc_ids=[row.doc_id for row in rows],
        embedder=embedder.identity,
        options=settings.retrieve.index,
        seed=settings.seed,
    )
    index.save(folder)
    if settings.retrieve.method != "dense":
        write_signals(folder, as_token_embedder(embedder).document_signals(texts))
    job.finish(n_expected=len(rows), n_actual=len(rows), n_not_evaluated=0)
