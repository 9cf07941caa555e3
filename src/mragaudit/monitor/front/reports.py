"""How a service behind the reverse proxy says what it retrieved: a header, or a field of its JSON answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from mragaudit.errors import DataError
from mragaudit.monitor.front.guard import Retrieval

HEADER = "X-RAG-Retrieved"
FIELD = "rag_retrieved"


class ReportedDocument(msgspec.Struct, frozen=True):
    """One retrieved document."""

    id: str | int
    level: str = ""
    """Absent, it is an unknown level, which counts as the highest."""


class RetrievalReport(msgspec.Struct, frozen=True, kw_only=True):
    """JSON of the header or the field; one answer may bring several, one a collection."""

    documents: tuple[ReportedDocument, ...]
    collection: str | None = None
    query_id: str | None = None
    """The service's own id of the query, the same for a retry; absent, every answer counts as a new query."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stripped:
    """A JSON body without the field, and what the field held."""

    body: bytes
    report: bytes | None


def strip_field(body: bytes, name: str) -> Stripped:
    """Take the field out of a JSON object, every other byte of whose values stays; other bodies come back as given."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return Stripped(body=body, report=None)
    if name not in fields:
        return Stripped(body=body, report=None)
    report = bytes(fields.pop(name))
    return Stripped(body=msgspec.json.encode(fields), report=None if report == b"null" else report)


def read_reports(texts: Iterable[bytes], *, collection: str | None) -> list[Retrieval]:
    """Return what an upstream reported; `collection` is used where a report names none.

    Raises DataError for text that is no report, without quoting it.
    """
    return [_retrieval(report, collection) for text in texts for report in _decoded(text)]


def _decoded(text: bytes) -> tuple[RetrievalReport, ...]:
    try:
        found = msgspec.json.decode(text, type=RetrievalReport | tuple[RetrievalReport, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"the upstream's report of retrieved documents is not readable: {error}") from error
    return found if isinstance(found, tuple) else (found,)


def _retrieval(report: RetrievalReport, collection: str | None) -> Retrieval:
    name = report.collection or collection
    if not name:
        raise DataError("the upstream's report names no collection, and the proxy was given none")
    documents = tuple((str(one.id), one.level) for one in report.documents)
    if report.query_id is None:
        return Retrieval(collection=name, documents=documents)
    return Retrieval(collection=name, documents=documents, query_id=report.query_id)
