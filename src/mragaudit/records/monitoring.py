"""Rows of the exfiltration monitor: what a signal read, what was decided, what a person is told."""

from __future__ import annotations

from typing import Literal

import msgspec

from mragaudit.records.base import Record

SignalName = Literal["volume", "coverage", "sensitivity"]
Action = Literal["pass", "throttle"]
AlertKind = Literal["throttle", "signal", "composite", "collection", "store", "input"]


class SignalReading(msgspec.Struct, frozen=True, kw_only=True):
    """One signal of one user at one query."""

    signal: SignalName
    value: float | None
    """Queries (volume) or a share from 0 to 1; null where `not_evaluated` says why."""
    threshold: float
    """The value above which, strictly, the signal alerts."""
    score: float | None
    """min(1, value / threshold), or 1 above the cap; null when neither is known."""
    alerting: bool
    """Strictly above its threshold, or strictly above its cap."""
    count: int
    """Queries, distinct documents of the collection, or sensitive documents returned, inside the window."""
    total: int | None
    """What `count` is a share of: documents of the collection that the user did not add, or documents returned."""
    capped_count: int | None
    """What the cap is held against: distinct documents, distinct sensitive documents; null where there is no cap."""
    cap: int | None
    """Most distinct documents a window, whatever the share."""
    window_seconds: float
    not_evaluated: str | None
    """Why there is no value."""


class CollectionSize(msgspec.Struct, frozen=True, kw_only=True):
    """How many documents a collection holds, as its indexer last said."""

    size: int
    version: int
    """Grows by one with every write of the entry."""
    age_seconds: float
    """How old the reading was when it was used; 0 where the script itself read the entry."""


class Alert(Record, frozen=True, kw_only=True, tag="alert/1"):
    """What a person is told; it explains itself without the configuration at hand."""

    alert_id: str
    kind: AlertKind
    time: float
    """Unix seconds by the store's clock; the machine's own where the store is away."""
    user: str
    """User id; sinks replace it by `user_hash` unless plain ids are configured. Empty for a whole collection."""
    user_hash: str
    tenant: str
    collection: str
    query_id: str
    action: Action
    composite: float | None
    throttle_at: float
    """Composite risk from which queries are throttled."""
    signals: tuple[SignalReading, ...]
    reasons: tuple[str, ...]
    """Sentences: observed value, threshold crossed, window."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with one query; never shown to the client."""

    action: Action
    delay_seconds: float
    """How long to hold the answer back; 0 for none."""
    max_results: int | None
    """How many retrieved documents may be used; null for all."""
    composite: float | None
    """Risk from 0 to 1; null when no signal could be evaluated."""
    throttle_at: float
    signals: tuple[SignalReading, ...]
    """Volume, coverage, sensitivity; empty when the store was away or the query was refused."""
    missing: tuple[SignalName, ...]
    """Signals without a score, which the composite leaves out."""
    reasons: tuple[str, ...]
    alert: Alert | None
    """Always there with a throttle."""
    alert_sent: bool
    """False when the same alert went out already inside its window."""
    problem: str | None
    """Why the query could not be judged: store away, or bad input; null normally."""
    collection_size: CollectionSize | None
    duplicate: bool
    """The query id was known: nothing was counted again."""
    time: float
    """Unix seconds by the store's clock."""

    @property
    def throttled(self) -> bool:
        """Whether the query is to be slowed or cut."""
        return self.action == "throttle"

    def signal(self, name: SignalName) -> SignalReading | None:
        """Return the reading of one signal, None when the query was not judged."""
        return next((one for one in self.signals if one.signal == name), None)
