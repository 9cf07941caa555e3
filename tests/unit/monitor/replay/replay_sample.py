"""A small collection with attack trials, and queries with counts made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from mragaudit.monitor.rejudge import Actor, Asked
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.traffic.material import AttackTrial, Material
from mragaudit.monitor.traffic.profiles import Profiles, read_profiles
from mragaudit.records.monitoring import CollectionSize
from mragaudit.records.replay import ActorKind, CountedQuery, QueryEvent, SeenDocument

REPOSITORY = Path(__file__).parents[4]
START = 1_800_000_000.0
SIZE = 40
LANGUAGES = ("en", "sw")


@cache
def profiles() -> Profiles:
    """Return the profiles that ship."""
    return read_profiles(REPOSITORY / "resources" / "monitor" / "traffic.yaml")


def doc(number: int) -> str:
    """Return a document's id."""
    return f"d{number % SIZE:02d}"


def material() -> Material:
    """Return 40 documents, every fifth confidential; a query returns its target and the next document.

    Swahili queries miss every fourth target: they return the two documents after it.
    """
    trials = {}
    for lang in LANGUAGES:
        for number in range(SIZE):
            first = number + 1 if lang == "sw" and number % 4 == 0 else number
            found = (doc(first), doc(first + 1))
            trials[lang, doc(number)] = AttackTrial(target=doc(number), documents=found, disclosed=None)
    return Material(
        levels={doc(n): "confidential" if n % 5 == 0 else "internal" for n in range(SIZE)},
        trials=trials,
        neighbours={doc(n): (doc(n), doc(n + 1)) for n in range(SIZE)},
        sensitive_levels=MonitorSettings().sensitive_levels,
    )


def asked(
    number: int,
    *,
    actor: str = "a",
    kind: ActorKind = "attacker",
    minutes: float,
    queries: int = 1,
    distinct: int = 0,
    sensitive: int = 0,
    returned: int = 0,
    size: int | None = 100,
    documents: Sequence[str] = (),
    target: str | None = None,
    disclosed: bool | None = None,
    collection_alert: bool = False,
    lang: str | None = "en",
) -> Asked:
    """Return one query at some minutes from the start, with what the monitor counted at it."""
    event = QueryEvent(
        query_id=f"{actor}-{number:05d}",
        actor=actor,
        user=actor,
        group=actor,
        kind=kind,
        profile="sweeper" if kind == "attacker" else "reader",
        lang=lang if kind == "attacker" else None,
        time=START + 60 * minutes,
        collection_size=size,
        documents=tuple(SeenDocument(one, "internal", True) for one in documents),
        target=target,
        disclosed=disclosed,
    )
    counted = CountedQuery(
        query_id=event.query_id,
        queries=queries,
        distinct_documents=distinct,
        own_documents=0,
        returned={"internal": returned - sensitive, "confidential": sensitive} if returned else {},
        distinct_sensitive_documents=sensitive,
        baseline_sensitive=0,
        baseline_returned=0,
        baseline_days=0,
        size=None if size is None else CollectionSize(size=size, version=1, age_seconds=0.0),
        action="pass",
        alert_sent=False,
        collection_alert=collection_alert,
    )
    return Asked(event=event, counted=counted)


def actor_of(rows: Sequence[Asked]) -> Actor:
    """Return the actor of some queries."""
    event = rows[0].event
    return Actor(name=event.actor, kind=event.kind, profile=event.profile, lang=event.lang, asked=rows)
