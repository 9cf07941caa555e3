"""One query as the host reports it: checked, because ids come from outside."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from mragaudit.errors import DataError
from mragaudit.monitor.settings import MonitorSettings

DEFAULT_TENANT = "default"
PAIR = 2
LATEST_SECONDS = 2**32
"""The year 2106; microseconds beyond 2**53 are no exact numbers in a script."""


class RetrievedDocument(msgspec.Struct, frozen=True):
    """One document that was retrieved for a query."""

    doc_id: str
    level: str
    """Sensitivity level; one that the settings do not list counts as the highest."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A checked query."""

    user: str
    query_id: str
    collection: str
    tenant: str
    role: str | None
    by_level: Mapping[str, Sequence[str]]
    """Sensitivity level → distinct document ids."""
    unknown_levels: tuple[str, ...]
    time: float | None
    """Unix seconds in a replay; None for the store's clock."""


Documents = Iterable[RetrievedDocument | tuple[str, str]]


def checked_query(
    *,
    user: str,
    query_id: str,
    collection: str,
    documents: Documents,
    settings: MonitorSettings,
    tenant: str = DEFAULT_TENANT,
    role: str | None = None,
    time: float | None = None,
) -> Query:
    """Return the query; raises DataError naming the part that cannot be taken and what would be right."""
    for name, value in (("user", user), ("query_id", query_id), ("collection", collection), ("tenant", tenant)):
        check_id(name, value, settings)
    if time is not None and not is_time(time):
        raise DataError(f"time is {time!r}; it must be Unix seconds, from 0 to {LATEST_SECONDS}")
    if role is not None and role not in settings.roles:
        role = None
    levels, unknown = _by_level(_limited(documents, settings), settings)
    return Query(
        user=user,
        query_id=query_id,
        collection=collection,
        tenant=tenant,
        role=role,
        by_level=levels,
        unknown_levels=unknown,
        time=time,
    )


def is_time(value: object) -> bool:
    """Return whether a value can be Unix seconds: a finite number of at least 0."""
    return isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= LATEST_SECONDS


def check_id(name: str, value: object, settings: MonitorSettings) -> None:
    """Raise DataError for what is no id: not text, empty, too long, or not encodable."""
    if isinstance(value, str) and value.isascii() and 0 < len(value) <= settings.limits.id_bytes:
        return  # nearly every id
    if not isinstance(value, str) or not value:
        raise DataError(f"{name} is {'empty' if value == '' else type(value).__name__}; it must be a non-empty string")
    length = len(value.encode("utf-8", "replace"))
    if length > settings.limits.id_bytes:
        raise DataError(f"{name} is {length} bytes long; {settings.limits.id_bytes} are the most (limits.id_bytes)")
    if not _is_text(value):
        raise DataError(f"{name} is no valid text (a lone surrogate); it must be encodable as UTF-8")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _limited(documents: Documents, settings: MonitorSettings) -> Sequence[tuple[str, str]]:
    """Return (id, level) pairs, reading at most one more than are allowed."""
    most = settings.limits.documents_per_query
    try:
        if isinstance(documents, str | bytes):
            raise TypeError
        given = iter(documents)
    except TypeError:
        raise DataError(f"the documents are {type(documents).__name__}; they must be pairs (id, level)") from None
    pairs = [_pair(one) for one in islice(given, most + 1)]
    if len(pairs) > most:
        found = f"{len(documents):,}" if isinstance(documents, Sequence) else f"more than {most:,}"
        raise DataError(f"{found} retrieved ids in one query; {most:,} are the most (limits.documents_per_query)")
    return pairs


def _pair(document: RetrievedDocument | tuple[str, str]) -> tuple[str, str]:
    if isinstance(document, tuple) and len(document) == PAIR:
        return document
    if isinstance(document, RetrievedDocument):
        return document.doc_id, document.level
    if isinstance(document, list) and len(document) == PAIR:
        return document[0], document[1]
    raise DataError(f"a retrieved document is {type(document).__name__}; it must be a pair (id, level)")


def _by_level(
    pairs: Sequence[tuple[str, str]], settings: MonitorSettings
) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Return ids grouped by known level; the same id at two levels counts once, at the higher one."""
    rank, highest = settings.level_ranks, len(settings.levels) - 1
    found: dict[str, int] = {}
    unknown: dict[str, None] = {}
    for doc_id, level in pairs:
        check_id("a document id", doc_id, settings)
        position = rank.get(level) if isinstance(level, str) else None
        if position is None:
            position = highest
            unknown[str(level)[:64]] = None
        found[doc_id] = max(position, found.get(doc_id, 0))
    levels: dict[str, list[str]] = {}
    for doc_id, position in found.items():
        levels.setdefault(settings.levels[position], []).append(doc_id)
    return levels, tuple(unknown)
