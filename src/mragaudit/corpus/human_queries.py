"""Attack queries written by people, each in one language, from JSONL or CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from mragaudit.corpus.queries import make_query
from mragaudit.corpus.tables import Row, read_rows, require_columns, shown
from mragaudit.records.documents import Document
from mragaudit.records.queries import PARAPHRASES, Paraphrase, Query, query_key

_COLUMNS = ("doc_id", "anchor", "lang", "paraphrase", "text", "author")


def import_queries(path: Path, documents: Sequence[Document], *, languages: Sequence[str]) -> list[Query]:
    """Return the queries of a JSONL or CSV file, sorted by id; they are asked in their own language only.

    A row names its document by `doc_id`, by `anchor` (any letter case), or by both, and then both have to
    agree. Raises DataError naming file and line for an unknown document, anchor, paraphrase or language, an
    empty cell, a missing column, or a row that says the same as an earlier one.
    """
    rows = read_rows(path, csv_columns=_COLUMNS, jsonl_columns=_COLUMNS)
    if not any("doc_id" in row.cells or "anchor" in row.cells for row in rows):
        raise rows[0].error('the column "doc_id" or "anchor" is missing; every query names its document')
    require_columns(rows, ("lang", "paraphrase", "text", "author"))
    targets = _Targets(documents)
    queries: list[Query] = []
    lines: dict[str, int] = {}
    for row in rows:
        query = _query(row, targets, languages=languages)
        if query.query_id in lines:
            raise row.error(f"the same query stands already on line {lines[query.query_id]}; remove one of both")
        lines[query.query_id] = row.line
        queries.append(query)
    return sorted(queries, key=query_key)


class _Targets:
    """Documents by id and by anchor."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._ids = {document.doc_id for document in documents}
        self._by_anchor = {document.anchor.casefold(): document.doc_id for document in documents}

    def find(self, row: Row) -> str:
        """Return the id of the document that a row names."""
        doc_id, anchor = row.optional("doc_id"), row.optional("anchor")
        if doc_id is None and anchor is None:
            raise row.error('the row has neither "doc_id" nor "anchor"; give one of them')
        if doc_id is not None and doc_id not in self._ids:
            raise row.error(f'no document has the id {shown(doc_id)}; "doc_id" has to be one of the corpus')
        if anchor is None:
            return cast("str", doc_id)
        named = self._by_anchor.get(anchor.casefold())
        if named is None:
            raise row.error(f"no document has this anchor ({len(anchor)} characters); it has to be one of the corpus")
        if doc_id is not None and doc_id != named:
            raise row.error(f'"anchor" belongs to {shown(named)} and "doc_id" is {shown(doc_id)}; correct one of them')
        return named


def _query(row: Row, targets: _Targets, *, languages: Sequence[str]) -> Query:
    return make_query(
        doc_id=targets.find(row),
        intent="attack",
        paraphrase=cast("Paraphrase", row.choice("paraphrase", PARAPHRASES)),
        text=row.text("text"),
        lang=row.choice("lang", languages),
        query_source="human",
        author=row.text("author"),
    )
