"""How large a collection is, and which documents a user added: told by the indexer, read by the monitor.

Coverage is held against the documents by others that a collection holds now. A stale total would flag honest users
as the collection grows, so a size that is too old is unknown.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from mragaudit.errors import DataError
from mragaudit.monitor.calls import Call, Script, microseconds
from mragaudit.monitor.keys import UserKeys, encode_document, encode_name, size_key
from mragaudit.monitor.queries import check_id
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.records.monitoring import CollectionSize

SIZE = Script.read("size")
OWN = Script.read("own")
DAY_SECONDS = 86_400
CACHED_COLLECTIONS = 1_024


def size_call(settings: MonitorSettings, collection: str, *, size: int | None) -> Call:
    """Return the call that sets a collection's size, or with None reads it and keeps it alive."""
    check_id("collection", collection, settings)
    if size is not None and size < 0:
        raise DataError(f'collection "{collection}": the size is {size}; it must be at least 0')
    lifetime = microseconds(settings.limits.size_days * DAY_SECONDS)
    key = size_key(settings.store.prefix, encode_name(collection))
    return Call(SIZE, [key], [lifetime, "" if size is None else size])


def size_of(reply: Sequence[int], *, age_seconds: float) -> CollectionSize | None:
    """Return the size that a call read, None where no indexer has said it."""
    size, version = reply
    return None if size < 0 else CollectionSize(size=size, version=version, age_seconds=age_seconds)


def own_call(
    settings: MonitorSettings, *, user_hash: str, collection: str, doc_ids: Sequence[str], added: bool
) -> Call:
    """Return the call that notes documents which a user added to a collection, or took out again."""
    check_id("collection", collection, settings)
    for one in doc_ids:
        check_id("a document id", one, settings)
    key = UserKeys(settings.store.prefix, user_hash).of_collection("own", encode_name(collection))
    lifetime = microseconds(settings.limits.own_days * DAY_SECONDS)
    ids = [encode_document(one) for one in doc_ids]
    return Call(OWN, [key], [lifetime, settings.limits.own_documents, "add" if added else "remove", *ids])


class SizeCache:
    """Copies of collection sizes for a cluster, where the script cannot read them itself."""

    def __init__(self, *, max_age_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_age = max_age_seconds
        self._clock = clock
        self._copies: OrderedDict[str, tuple[Sequence[int], float]] = OrderedDict()
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the time by which ages are measured."""
        return self._clock()

    def is_fresh(self, collection: str) -> bool:
        """Return whether there is a copy that is young enough."""
        copy = self._copies.get(collection)
        return copy is not None and self._clock() - copy[1] <= self._max_age

    def copy(self, collection: str) -> CollectionSize | None:
        """Return the size in the copy with its age; None when the copy is absent, empty or too old."""
        copy = self._copies.get(collection)
        if copy is None:
            return None
        age = self._clock() - copy[1]
        return size_of(copy[0], age_seconds=age) if age <= self._max_age else None

    def put(self, collection: str, reply: Sequence[int], *, asked_at: float) -> None:
        """Keep what was read; its age counts from when it was asked for."""
        with self._lock:
            self._copies[collection] = (reply, asked_at)
            self._copies.move_to_end(collection)
            while len(self._copies) > CACHED_COLLECTIONS:
                self._copies.popitem(last=False)
