"""What an administrator is shown of a user: the same counts and rules as at a query, without being one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mragaudit.monitor.calls import Call, Script, as_text, microseconds, read_counts
from mragaudit.monitor.core import MonitorCore
from mragaudit.monitor.keys import UserKeys, decode_document, size_key
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.windows import MICROSECONDS, Throttled, WindowCounts
from mragaudit.records.monitoring import CollectionSize, SignalName, SignalReading

PEEK = Script.read("peek")


class SeenDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that a user retrieved."""

    doc_id: str
    """`(digest …)` in place of an id longer than the store keeps."""
    time: float
    """When it was last retrieved, Unix seconds."""
    sensitive: bool


class AllowEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A user's place on the allow-list; times in Unix seconds."""

    since: float
    until: float
    reason: str


class UserBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """What the user's preceding days without an alert say of sensitive documents."""

    sensitive: int
    returned: int
    days: int


class CollectionState(msgspec.Struct, frozen=True, kw_only=True):
    """One user in one collection, judged as at a query that added nothing."""

    collection: str
    """`(digest …)` in place of a name that the store keeps as a digest alone."""
    last_query: float
    """Unix seconds."""
    composite: float | None
    signals: tuple[SignalReading, ...]
    missing: tuple[SignalName, ...]
    distinct_documents: int
    size: CollectionSize | None
    documents: tuple[SeenDocument, ...]
    """Newest first; with sketches the sensitive ones alone."""
    documents_complete: bool
    """All documents of the window that were not the user's own are named."""


class UserState(msgspec.Struct, frozen=True, kw_only=True):
    """One user at one moment of the store's clock."""

    user_hash: str
    time: float
    throttled: bool
    """Whether a further query would be throttled as things stand."""
    throttled_since: float | None
    composite: float | None
    """Of the collection in which it is highest."""
    throttle_at: float
    signals: tuple[SignalReading, ...]
    """Of that collection; those of no collection for a user who asked none."""
    collections: tuple[CollectionState, ...]
    """Highest composite first."""
    last_query: float | None
    alerts: Mapping[str, float]
    """Kind of alert, or signal → when it was last due to be sent."""
    allowed: AllowEntry | None
    baseline: UserBaseline

    @property
    def riskiest(self) -> CollectionState | None:
        """The collection in which the composite is highest."""
        return self.collections[0] if self.collections else None


class Peek(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the peek script."""

    counts: WindowCounts
    documents: tuple[SeenDocument, ...]
    allowed: AllowEntry | None


def peek_call(
    settings: MonitorSettings,
    keys: UserKeys,
    *,
    collection: str,
    cluster: bool,
    documents: int = 0,
    time: float | None = None,
) -> Call:
    """Return the call that counts a user's windows; `collection` is encoded, `documents` the most to be named."""
    coverage = settings.coverage
    ring = coverage.ring if coverage.mode == "hyperloglog" else 0
    kind = "hll" if ring else "cov"
    named = [keys.key(name) for name in ("vol", "ret", "lev", "sens", "base", "state")]
    named += [keys.of_collection("own", collection), keys.of_collection(kind, collection), keys.key("allow")]
    slots = [keys.of_collection(kind, f"{collection}:{slot}") for slot in range(ring)]
    size = [] if cluster else [size_key(settings.store.prefix, collection)]
    args: list[str | int] = [
        "" if time is None else microseconds(time),
        documents,
        collection,
        microseconds(settings.volume.window_seconds),
        microseconds(coverage.window_seconds),
        microseconds(settings.sensitivity.window_seconds),
        ring,
        microseconds(coverage.sub_window_seconds),
        settings.sensitivity.baseline.weeks * 7,
        *settings.levels,
    ]
    return Call(PEEK, [*named, *slots, *size], args)


def read_peek(reply: Sequence[Any], *, levels: Sequence[str], size: CollectionSize | None) -> Peek:
    """Return what the peek script counted; `size` is used where the script read none."""
    return Peek(
        counts=read_counts([reply[:3]], levels=levels, size=size),
        documents=tuple(
            SeenDocument(
                doc_id=decode_document(as_text(member)), time=int(time) / MICROSECONDS, sensitive=sensitive == 1
            )
            for member, time, sensitive in reply[3]
        ),
        allowed=_allowed(reply[4]),
    )


def _allowed(flat: Sequence[Any]) -> AllowEntry | None:
    fields = {as_text(name): as_text(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}
    if not fields:
        return None
    return AllowEntry(
        since=int(fields["since"]) / MICROSECONDS,
        until=int(fields["until"]) / MICROSECONDS,
        reason=fields["reason"],
    )


def decode_name(name: str) -> str:
    """Return the id of a collection from its encoded form; a digest is marked as one."""
    return name[2:] if name.startswith("n.") else f"(digest {name[2:]})"


def user_state(
    core: MonitorCore, peeks: Mapping[str, Peek], *, user_hash: str, last_queries: Mapping[str, float], role: str | None
) -> UserState:
    """Return a user's state from peeks by encoded collection, of which there is at least one.

    `last_queries` are the collections that the user asked, with the time; others have no entry in the result.
    """
    found = [
        _collection_state(core, peek, name=name, last_queries=last_queries, role=role) for name, peek in peeks.items()
    ]
    ranked = sorted(found, key=lambda one: -1.0 if one.composite is None else one.composite, reverse=True)
    worst = ranked[0]
    counts = next(iter(peeks.values())).counts
    allowed = next(iter(peeks.values())).allowed
    verdict = core.policy.decide(worst.composite, state=counts.state, time=counts.time)
    throttled = verdict.action == "throttle"
    return UserState(
        user_hash=user_hash,
        time=counts.time,
        throttled=throttled,
        throttled_since=counts.state.since if throttled and counts.state.since else None,
        composite=worst.composite,
        throttle_at=core.settings.composite.throttle_at,
        signals=worst.signals,
        collections=tuple(one for one in ranked if one.last_query),
        last_query=max(last_queries.values(), default=None),
        alerts=dict(counts.state.alerted),
        allowed=allowed if _holds(counts.state, counts.time) else None,
        baseline=UserBaseline(
            sensitive=counts.baseline_sensitive, returned=counts.baseline_returned, days=counts.baseline_days
        ),
    )


def _holds(state: Throttled, time: float) -> bool:
    return time < state.allowed_until


def _collection_state(
    core: MonitorCore, peek: Peek, *, name: str, last_queries: Mapping[str, float], role: str | None
) -> CollectionState:
    readings = core.readings(peek.counts, role=role)
    risk = core.risk.of(readings)
    exact = core.settings.coverage.mode == "exact"
    return CollectionState(
        collection=decode_name(name),
        last_query=last_queries.get(name, 0.0),
        composite=risk.composite,
        signals=readings,
        missing=risk.missing,
        distinct_documents=peek.counts.distinct_documents,
        size=peek.counts.size,
        documents=peek.documents,
        documents_complete=exact and len(peek.documents) == peek.counts.distinct_documents,
    )
