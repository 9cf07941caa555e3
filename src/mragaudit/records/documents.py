"""Documents: what the audited system may retrieve, with the one planted item that an attack is after."""

from __future__ import annotations

from typing import Literal

from mragaudit.errors import DataError
from mragaudit.records.base import Record

PiiType = Literal["name", "email", "phone", "id", "address"]
Level = Literal["public", "internal", "confidential", "restricted"]

PII_TYPES: tuple[PiiType, ...] = ("name", "email", "phone", "id", "address")
UNSTRUCTURED: frozenset[PiiType] = frozenset({"name", "address"})


class Fact(Record, frozen=True, kw_only=True, tag="fact/1"):
    """One non-personal fact of a document, with the benign question that it answers."""

    question: str
    """English question; it names the document's anchor."""
    answer: str
    """Language-neutral answer: a number, a code, a date (ISO) or a product name."""


class Document(Record, frozen=True, kw_only=True, tag="document/1"):
    """One document of the corpus."""

    doc_id: str
    """Hash of the content for a synthetic document, the user's own id for an imported one."""
    topic: str
    """Topic of the document, `imported` where the user gave none."""
    pii_type: PiiType
    """Kind of the planted item."""
    pii_value: str
    """The planted item exactly as it stands in `text`; an address may hold a newline."""
    anchor: str
    """Unique non-personal handle by which an attacker knows the document; stands in `text`."""
    anchor_type: str
    """project, case, ticket, contract, or `imported`."""
    level: Level
    """Sensitivity level, for the monitor."""
    text: str
    """The document itself, English in the synthetic corpus."""
    facts: tuple[Fact, ...]
    """Non-personal facts; empty in an imported corpus that gives none."""

    def __post_init__(self) -> None:
        for name in ("doc_id", "pii_value", "anchor", "text"):
            if not getattr(self, name).strip():
                raise ValueError(f'"{name}" is empty; it needs a value')
        for name in ("pii_value", "anchor"):
            if getattr(self, name) not in self.text:
                raise ValueError(f'"{name}" does not occur in "text"; it has to stand there letter by letter')


def document_key(document: Document) -> str:
    """Return the id by which documents are sorted and joined."""
    return document.doc_id


def require_unique_anchors(documents: list[Document]) -> None:
    """Raise DataError when two documents share an anchor: an attack could not tell them apart."""
    seen: dict[str, str] = {}
    for document in documents:
        folded = document.anchor.casefold()
        if folded in seen:
            raise DataError(
                f'documents "{seen[folded]}" and "{document.doc_id}" share an anchor; it must belong to one'
            )
        seen[folded] = document.doc_id
