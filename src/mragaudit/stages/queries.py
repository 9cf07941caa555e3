"""Stage `queries`: attacks, benign questions and judge controls, dealt into shards."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.corpus.controls import load_controls
from mragaudit.corpus.human_queries import import_queries
from mragaudit.corpus.queries import attack_queries, benign_queries
from mragaudit.corpus.sharding import deal, shard_name
from mragaudit.corpus.templates import load_query_templates
from mragaudit.errors import ConfigError
from mragaudit.records.base import read_records, write_records
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import Query, query_key
from mragaudit.resources import resource_folder

logger = logging.getLogger(__name__)


def run(*, documents: Path, shards: Mapping[str, Path], settings: Settings) -> None:
    """Write `queries/{shard}.jsonl` for every shard; a shard carries all queries of its documents."""
    rows = read_records(documents, Document, key=document_key)
    queries = [*_document_queries(rows, settings), *_controls(settings)]
    dealt = _deal(queries, settings.shards)
    for name, path in shards.items():
        write_records(path, [query for query in queries if dealt[query.query_id] == name], key=query_key)
    logger.info("queries: %d in %d shards", len(queries), settings.shards)


def _document_queries(documents: list[Document], settings: Settings) -> list[Query]:
    templates = load_query_templates(resource_folder(settings.resources) / "corpus")
    wanted = settings.queries
    _require_facts(documents, wanted.benign_per_document)
    rows = attack_queries(documents, templates, paraphrases=wanted.paraphrases)
    rows += benign_queries(documents, n_per_document=wanted.benign_per_document)
    if wanted.source is not None:
        rows += import_queries(Path(wanted.source), documents, languages=settings.languages)
    return rows


def _require_facts(documents: list[Document], n_benign: int) -> None:
    """An imported corpus may come without facts altogether, but not with too few for some documents."""
    counts = {len(document.facts) for document in documents}
    short = [document.doc_id for document in documents if len(document.facts) < n_benign]
    if short and counts != {0}:
        raise ConfigError(
            f"queries.benign_per_document is {n_benign}, but document {short[0]} has fewer facts; "
            "lower it or add facts to the corpus"
        )


def _controls(settings: Settings) -> list[Query]:
    if not settings.judge.variants:
        return []
    folder = resource_folder(settings.resources) / "controls"
    others = tuple(lang for lang in settings.languages if lang != "en")
    return [
        *load_controls(folder, languages=("en",), per_class=settings.judge.english_controls_per_class),
        *load_controls(folder, languages=others, per_class=settings.judge.controls_per_class),
    ]


def _deal(queries: list[Query], n_shards: int) -> dict[str, str]:
    """Return each query's shard: that of its document, or of its control in all languages."""
    by_document = deal([query.doc_id for query in queries if query.doc_id is not None], n_shards)
    by_control = deal([query.control_id for query in queries if query.control_id is not None], n_shards)
    dealt: dict[str, str] = {}
    for query in queries:
        number = by_document[query.doc_id] if query.doc_id is not None else by_control[str(query.control_id)]
        dealt[query.query_id] = shard_name(number, n_shards)
    return dealt
