"""What the store counted for one user at one query, all windows trimmed, at one moment of the store's clock."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mragaudit.records.monitoring import CollectionSize

MICROSECONDS = 1_000_000


class Throttled(msgspec.Struct, frozen=True, kw_only=True):
    """What the store remembers of earlier decisions about a user; times in Unix seconds, 0 for never."""

    since: float = 0.0
    """Start of the throttling that still holds."""
    last_over: float = 0.0
    """Last noted query at or above the throttling threshold."""
    allowed_until: float = 0.0
    """End of the user's place on the allow-list."""
    alerted: Mapping[str, float] = {}
    """Alert kind → when it last went out."""


class CollectiveCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What all users of a tenant together retrieved of one collection in the collective window."""

    distinct_documents: int
    """HyperLogLog estimate, standard error 0.81 %."""
    alerted: float
    """When the collection's alert last went out, Unix seconds; 0 for never."""


class WindowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The record script's answer."""

    time: float
    """Unix seconds by the store's clock."""
    duplicate: bool
    """The query id was in a window already; nothing was added."""
    queries: int
    """Queries inside the volume window, this one included."""
    distinct_documents: int
    """Distinct documents of this collection inside the coverage window, the user's own left out."""
    own_documents: int
    """Documents of this collection that the user added."""
    returned: Mapping[str, int]
    """Sensitivity level → documents returned inside the sensitivity window, the user's own left out."""
    distinct_sensitive_documents: int
    """Distinct sensitive documents of any collection inside the sensitivity window."""
    baseline_sensitive: int = 0
    """Sensitive documents returned on the user's preceding days without an alert."""
    baseline_returned: int = 0
    baseline_days: int = 0
    size: CollectionSize | None = None
    """None when no indexer has said how large the collection is, or the reading is too old."""
    state: Throttled = Throttled()
    collective: CollectiveCounts | None = None
