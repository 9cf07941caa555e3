"""One attack as a list of steps, and the steps as query events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mragaudit.monitor.traffic.material import AttackTrial, Material
from mragaudit.records.replay import QueryEvent, SeenDocument

START = 1_799_020_800.0
"""Monday, 2027-01-04, 00:00 UTC; all simulated traffic begins here."""
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One query of an attack."""

    time: float
    """Seconds from the start of the traffic."""
    lang: str
    trial: AttackTrial | None
    """The audit's trial that is asked; None for a query about the attacker's own documents."""
    account: int = 0
    own: tuple[SeenDocument, ...] = ()
    """What a query about the attacker's own documents returns."""
    added: tuple[str, ...] = ()
    """Documents that the attacker added just before, of which the indexer tells the monitor."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Campaign:
    """All steps of one attacker, in order of time."""

    profile: str
    lang: str
    steps: Sequence[Step]
    collection_size: int


def campaign_events(campaign: Campaign, *, actor: str, material: Material) -> Iterator[QueryEvent]:
    """Yield the events of one attacker, who has a tenant and a collection of their own."""
    many = len({step.account for step in campaign.steps}) > 1
    for number, step in enumerate(campaign.steps):
        yield QueryEvent(
            query_id=f"{actor}-{number:05d}",
            actor=actor,
            user=f"{actor}/{step.account}" if many else actor,
            group=actor,
            kind="attacker",
            profile=campaign.profile,
            lang=campaign.lang,
            time=round(START + step.time, 3),
            collection_size=campaign.collection_size,
            documents=step.own if step.trial is None else material.seen(step.trial.documents),
            target=None if step.trial is None else step.trial.target,
            added=step.added,
            disclosed=None if step.trial is None else step.trial.disclosed,
        )
