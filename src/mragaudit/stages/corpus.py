"""Stage `corpus`: plant documents, or take the user's own."""

from __future__ import annotations

import logging
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.corpus.importing import import_corpus
from mragaudit.corpus.synthesis import synthesise
from mragaudit.corpus.templates import load_corpus_templates
from mragaudit.randomness import generator_for
from mragaudit.records.base import write_records
from mragaudit.records.documents import Document, document_key, require_unique_anchors
from mragaudit.resources import resource_folder

logger = logging.getLogger(__name__)


def run(*, documents: Path, run_folder: Path, settings: Settings) -> None:
    """Write `corpus/documents.jsonl`; a run over real personal data is closed to other users first (mode 0700)."""
    if settings.real_data:
        run_folder.chmod(0o700)
    rows = _documents(settings)
    require_unique_anchors(rows)
    write_records(documents, rows, key=document_key)
    logger.info("corpus: %d documents", len(rows))


def _documents(settings: Settings) -> list[Document]:
    corpus = settings.corpus
    if corpus.source != "synthetic":
        return import_corpus(Path(corpus.source))
    return synthesise(
        n_documents=corpus.n_documents,
        min_words=corpus.min_words,
        max_words=corpus.max_words,
        n_facts=corpus.n_facts,
        templates=load_corpus_templates(resource_folder(settings.resources) / "corpus"),
        rng=generator_for(settings.seed, "corpus"),
        seed=settings.seed,
    )
