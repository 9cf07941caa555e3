"""Rows of the monitor's replay: simulated or logged queries, what the monitor counted, what a client was given."""

from __future__ import annotations

from typing import Literal

import msgspec

from mragaudit.records.base import Record
from mragaudit.records.monitoring import Action, CollectionSize

ActorKind = Literal["attacker", "benign", "unlabelled"]
Part = Literal["development", "check", "log"]
Response = Literal["delay", "truncate"]


class SeenDocument(msgspec.Struct, frozen=True, array_like=True):
    """One retrieved document, written as `[doc_id, level, planted]`."""

    doc_id: str
    level: str
    planted: bool
    """Whether it belongs to the audited corpus; False for what an attacker added, and in an access log."""


class QueryEvent(Record, frozen=True, kw_only=True, tag="query-event/1"):
    """One query of the traffic that is replayed."""

    query_id: str
    """`{actor}-{number}`: sorting by it puts an actor's queries in their order."""
    actor: str
    """The unit of all rates: a benign user, or an attacker with all accounts."""
    user: str
    """The account that asks, as the monitor is told."""
    group: str
    """Users who share a tenant and a collection; groups do not influence each other."""
    kind: ActorKind
    profile: str
    lang: str | None
    """Language of an attack, `mixed` for several; null for benign users."""
    time: float
    """Simulated Unix seconds."""
    collection_size: int | None
    """Documents of the collection at this moment; null where nobody knows: coverage is then not evaluated."""
    documents: tuple[SeenDocument, ...]
    target: str | None = None
    """Document that an attack asks for; null for benign users."""
    added: tuple[str, ...] = ()
    """Documents that the user added just before, of which the indexer told the monitor."""
    disclosed: bool | None = None
    """Whether the audit's answer to this trial disclosed the target's item; null where no answer was used."""


class CountedQuery(Record, frozen=True, kw_only=True, tag="counted-query/1"):
    """What the monitor counted and decided at one query of the open loop; fields as in its window counts."""

    query_id: str
    queries: int
    distinct_documents: int
    own_documents: int
    returned: dict[str, int]
    distinct_sensitive_documents: int
    baseline_sensitive: int
    baseline_returned: int
    baseline_days: int
    size: CollectionSize | None
    action: Action
    alert_sent: bool
    collection_alert: bool
    """An alert about all users of the group together went out at this query."""


class DeliveredQuery(Record, frozen=True, kw_only=True, tag="delivered-query/1"):
    """What an attacker was given in a closed loop, in which throttling has its effect."""

    response: Response
    query_id: str
    """As in the traffic; a repeated query ends in `-again`."""
    actor: str
    time: float
    """When it was asked, Unix seconds; later than planned where earlier answers were held back."""
    answered: float
    """When the answer came."""
    throttled: bool
    delivered: tuple[SeenDocument, ...]
    target: str | None


def event_key(row: QueryEvent | CountedQuery) -> str:
    """Return the id by which traffic and counts are sorted and joined."""
    return row.query_id


def delivered_key(row: DeliveredQuery) -> str:
    """Return the id by which a closed loop's rows are sorted."""
    return f"{row.response}/{row.query_id}"
