"""Drafts: documents before it is known which of them are indexed, and before canaries are planted."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mragaudit.corpus.grid_templates import Room
from mragaudit.errors import DataError
from mragaudit.records.documents import Fact
from mragaudit.records.grid import GridDocument, PlantedItem, Split


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A document in pieces."""

    title: str
    topic: str
    head: str
    """What stands before the body, up to and including its last line end."""
    sentences: tuple[str, ...]
    """The body; pieces are joined by one space."""
    items: tuple[PlantedItem, ...]
    facts: tuple[Fact, ...]

    @property
    def text(self) -> str:
        """The whole document."""
        return self.head + " ".join(self.sentences)

    def planted(self, item: PlantedItem, *, carrier: str, rng: np.random.Generator) -> Draft:
        """Return the draft with a carrier sentence for the item at a random place of its body."""
        place = int(rng.integers(len(self.sentences) + 1))
        sentences = (*self.sentences[:place], carrier.format(value=item.value), *self.sentences[place:])
        return dataclasses.replace(self, sentences=sentences, items=(*self.items, item))


class DraftSource(Protocol):
    """A corpus from which realisations are drawn."""

    @property
    def corpus(self) -> str:
        """Name of the corpus."""
        ...

    @property
    def in_order(self) -> bool:
        """Whether the drafts have a given order, the first of them to be indexed; else the split is drawn."""
        ...

    def drafts(self, n_documents: int, *, rng: np.random.Generator, room: Room) -> list[Draft]:
        """Return new drafts with room for a further sentence; raises ConfigError for too many."""
        ...


def document_of(draft: Draft, *, corpus: str, realisation: str, split: Split) -> GridDocument:
    """Return the draft as a document; its id is a hash of the text."""
    return GridDocument(
        doc_id="g" + hashlib.sha256(draft.text.encode("utf-8")).hexdigest()[:12],
        corpus=corpus,
        realisation=realisation,
        split=split,
        title=draft.title,
        topic=draft.topic,
        text=draft.text,
        items=draft.items,
        facts=draft.facts,
    )


def require_apart(documents: Sequence[GridDocument]) -> None:
    """Raise DataError where an item or a title of one document stands in the text of another.

    The message holds ids, never items.
    """
    whole = "\0".join(document.text for document in documents)
    for document in documents:
        for kind, value in [("title", document.title), *((item.kind, item.value) for item in document.items)]:
            if whole.count(value) != document.text.count(value):
                raise DataError(
                    f"realisation {document.realisation}: the {kind} of document {document.doc_id} stands in another "
                    "document as well; items and titles belong to one document"
                )
