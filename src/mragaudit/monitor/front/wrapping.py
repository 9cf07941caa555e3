"""What the wrappers of retrievers share: documents of a framework as ids with levels, and one retrieval judged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from mragaudit.monitor.front.guard import Guard, Refusal, RequestRefusedError, Retrieval
from mragaudit.monitor.front.identity import Identified, Identity, identity_of
from mragaudit.monitor.keys import digest

logger = logging.getLogger(__name__)
T = TypeVar("T")


def described(
    own_id: str | None, content: str, *, metadata: Mapping[str, Any], id_key: str | None, level_key: str
) -> tuple[str, str]:
    """Return id and level of a document.

    The id is the metadata's `id_key`, else the document's own, else a digest of its content: uncounted it never goes.
    A level that is absent is an unknown one, which counts as the highest.
    """
    found = metadata.get(id_key) if id_key is not None else own_id
    doc_id = str(found) if found not in (None, "") else f"content:{digest(content)}"
    return doc_id, str(metadata.get(level_key, ""))


class RetrieverGuard:
    """Judges what a wrapped retriever found."""

    def __init__(self, guard: Guard, *, collection: str) -> None:
        self.guard = guard
        self.collection = collection

    def _identity(self, found: Identified) -> Identity:
        identity = identity_of(found)
        if identity is None:
            raise RequestRefusedError(self.guard.unidentified())
        return identity

    def check(
        self, documents: Sequence[T], *, identified: Identified, describe: Callable[[T], tuple[str, str]]
    ) -> list[T]:
        """Return the documents that may be used, after the delay; raises RequestRefusedError."""
        identity = self._identity(identified)
        decision = self.guard.record_blocking(identity, self._retrieval(documents, describe))
        seconds = self.guard.seconds_of(decision, documents=len(documents), can_cut=True)
        _raise(self.guard.hold_back_blocking(decision, identity=identity, seconds=seconds))
        return self.guard.cut(decision, documents)

    async def acheck(
        self, documents: Sequence[T], *, identified: Identified, describe: Callable[[T], tuple[str, str]]
    ) -> list[T]:
        """Do what `check` does, in asyncio code."""
        identity = self._identity(identified)
        decision = await self.guard.record(identity, self._retrieval(documents, describe))
        seconds = self.guard.seconds_of(decision, documents=len(documents), can_cut=True)
        _raise(await self.guard.hold_back(decision, identity=identity, seconds=seconds))
        return self.guard.cut(decision, documents)

    def _retrieval(self, documents: Sequence[T], describe: Callable[[T], tuple[str, str]]) -> Retrieval:
        return Retrieval(collection=self.collection, documents=tuple(describe(one) for one in documents))


def _raise(refusal: Refusal | None) -> None:
    if refusal is not None:
        raise RequestRefusedError(refusal)
