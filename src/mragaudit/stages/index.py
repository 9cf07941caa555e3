"""Stage `index`: embed the documents and store the vector index."""

from __future__ import annotations

from pathlib import Path

from mragaudit.config import Settings
from mragaudit.index.flat import FlatIndex
from mragaudit.records.base import read_records
from mragaudit.records.documents import Document, document_key
from mragaudit.stages.gates import require_enough_documents
from mragaudit.stages.jobs import ModelJob


def run(*, documents: Path, folder: Path, job: ModelJob, settings: Settings) -> None:
    """Write the index over all documents into `index/`."""
    rows = read_records(documents, Document, key=document_key)
    require_enough_documents(len(rows), k=settings.retrieve.k)
    embedder = job.embedder(settings.roles.embedder)
    vectors = embedder.embed_documents([row.text for row in rows])
    doc_ids = [row.doc_id for row in rows]
    FlatIndex.build(vectors, doc_ids=doc_ids, embedder=embedder.identity).save(folder)
    job.finish(n_expected=len(rows), n_actual=len(rows), n_not_evaluated=0)
