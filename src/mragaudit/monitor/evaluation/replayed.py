"""A replayed part of the traffic and what the tables have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from mragaudit.monitor.rejudge import Actor
from mragaudit.monitor.risk import SIGNALS
from mragaudit.monitor.settings import MonitorSettings, RoleLimits
from mragaudit.records.replay import Part
from mragaudit.stats.intervals import Interval
from mragaudit.stats.medians import MedianInterval

MONTH_DAYS = 30
MONTH_SECONDS = MONTH_DAYS * 86_400.0
HOUR_SECONDS = 3_600.0
COMPOSITE = "composite"
SIGNAL_CHOICES: tuple[str, ...] = (COMPOSITE, *SIGNALS)
Row = dict[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """One part of the traffic with what the monitor counted."""

    part: Part
    actors: Sequence[Actor]
    months_per_user: float
    """Months, of 30 days, for which each user was watched."""

    @property
    def attackers(self) -> list[Actor]:
        """Attackers, a unit each whatever the number of accounts."""
        return [one for one in self.actors if one.kind == "attacker"]

    @property
    def users(self) -> list[Actor]:
        """Users who count as benign: simulated, or of an access log without a label."""
        return [one for one in self.actors if one.kind != "attacker"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What is evaluated, and how sure one wants to be."""

    settings: MonitorSettings
    roles: Mapping[str, RoleLimits]
    """Profile → limits that an operator would grant."""
    confidence: float


def by_profile(actors: Iterable[Actor]) -> Iterator[tuple[str, str | None, list[Actor]]]:
    """Yield profile, language and actors, in order of the names."""
    ordered = sorted(actors, key=_profile)
    for (profile, lang), members in groupby(ordered, key=_profile):
        yield profile, lang or None, list(members)


def _profile(actor: Actor) -> tuple[str, str]:
    return actor.profile, actor.lang or ""


def interval_cells(interval: Interval, *, prefix: str = "") -> Row:
    """Return the four cells of a share: rate, ci_low, ci_high, ci_method."""
    return {
        f"{prefix}rate": interval.rate,
        f"{prefix}ci_low": interval.low,
        f"{prefix}ci_high": interval.high,
        f"{prefix}ci_method": interval.method,
    }


def median_cells(interval: MedianInterval, *, name: str) -> Row:
    """Return the four cells of a median; infinity means that it was not reached."""
    return {
        f"{name}_median": interval.median,
        f"{name}_ci_low": interval.low,
        f"{name}_ci_high": interval.high,
        f"{name}_ci_method": interval.method,
    }
