"""False alarms of benign users, and alerts about whole collections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from mragaudit.monitor.evaluation.detection import never_evaluated, was_evaluated
from mragaudit.monitor.evaluation.replayed import (
    COMPOSITE,
    HOUR_SECONDS,
    SIGNAL_CHOICES,
    Replayed,
    Row,
    Rules,
    by_profile,
    interval_cells,
    median_cells,
)
from mragaudit.monitor.rejudge import Actor, Judgement, core_of, judge, with_roles
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.stats.intervals import wilson
from mragaudit.stats.medians import median_interval
from mragaudit.stats.poisson import poisson_rate

ACCEPTED_PER_USER_MONTH = 1.0
CONFIGURED = "configured"
WITHOUT, WITH = "without", "with"
ALL_PROFILES = "all"


def false_alarms_table(
    parts: Sequence[Replayed], *, chosen: Mapping[str, MonitorSettings], rules: Rules
) -> pd.DataFrame:
    """Return a row for each part, settings, signal, with and without roles, and benign profile.

    The configured settings come by composite and by each signal alone, the `chosen` ones, by name, by composite.

    A false alarm is one query of a benign user at which throttling begins or an alert about the user goes out. The
    upper limit is the exact one-sided Poisson limit of alarms a user-month; alarms of one user come in clusters, so
    the share of users with any stands beside it, with its own interval.
    """
    rows = [row for replayed in parts for case in _cases(chosen, rules) for row in _rows(replayed, case, rules=rules)]
    return pd.DataFrame(rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One way to judge."""

    name: str
    settings: MonitorSettings
    signal: str
    roles: str


def _cases(chosen: Mapping[str, MonitorSettings], rules: Rules) -> list[Case]:
    pairs = [(CONFIGURED, rules.settings, signal) for signal in SIGNAL_CHOICES]
    pairs += [(name, settings, COMPOSITE) for name, settings in chosen.items()]
    return [
        Case(name=name, settings=with_roles(settings, rules.roles if roles == WITH else {}), signal=signal, roles=roles)
        for name, settings, signal in pairs
        for roles in (WITHOUT, WITH)
    ]


def _rows(replayed: Replayed, case: Case, *, rules: Rules) -> Iterator[Row]:
    core = core_of(case.settings, signal=case.signal)
    found = {actor.name: judge(actor, core) for actor in replayed.users}
    groups = [(profile, actors) for profile, _, actors in by_profile(replayed.users)]
    for profile, actors in [*groups, (ALL_PROFILES, replayed.users)]:
        if actors:
            yield {
                "part": replayed.part,
                "settings": case.name,
                "signal": case.signal,
                "roles": case.roles,
                "profile": profile,
                **alarm_cells(actors, [found[one.name] for one in actors], replayed=replayed, rules=rules),
            }


def alarm_cells(
    actors: Sequence[Actor], judgements: Sequence[Sequence[Judgement]], *, replayed: Replayed, rules: Rules
) -> Row:
    """Return the false alarms of some users with their limits; users without any evaluated query are left out."""
    known = [found for found in judgements if was_evaluated(found)]
    alarms = [alarms_of(found) for found in known]
    months = len(known) * replayed.months_per_user
    rate = poisson_rate(sum(alarms), months, side="upper", confidence=rules.confidence)
    alarmed = sum(one > 0 for one in alarms)
    return {
        "kind": actors[0].kind if len({one.kind for one in actors}) == 1 else "several",
        "n_users": len(actors),
        "n_not_evaluated": len(actors) - len(known),
        "user_months": months,
        "n_queries": sum(len(one.asked) for one in actors),
        "n_throttled_queries": sum(one.decision.throttled for found in known for one in found),
        "n_spells": sum(one.entered for found in known for one in found),
        "n_alarms": sum(alarms),
        "alarms_per_user_month": rate.rate,
        "upper": rate.high,
        "upper_method": rate.method,
        "upper_below_1": None if rate.high is None else rate.high < ACCEPTED_PER_USER_MONTH,
        "n_users_alarmed": alarmed,
        **interval_cells(wilson(alarmed, len(known), side="two", confidence=rules.confidence), prefix="users_"),
        "signals_never_evaluated": " ".join(never_evaluated(judgements)),
    }


def alarms_of(judgements: Sequence[Judgement]) -> int:
    """Return the queries at which throttling begins or an alert goes out."""
    return sum(one.entered or one.alerted for one in judgements)


def collections_table(parts: Sequence[Replayed], *, rules: Rules) -> pd.DataFrame:
    """Return a row for each part and kind of group: alerts about all users of a tenant together.

    The group is the unit: the benign users of one seed, or one attacker with all accounts.
    """
    rows = [row for replayed in parts for row in _collection_rows(replayed, rules=rules)]
    return pd.DataFrame(rows)


def _collection_rows(replayed: Replayed, *, rules: Rules) -> Iterator[Row]:
    groups: dict[str, list[Actor]] = {}
    for actor in replayed.actors:
        groups.setdefault(actor.asked[0].event.group, []).append(actor)
    kinds: dict[str, list[list[Actor]]] = {}
    for members in groups.values():
        first = members[0]
        name = first.profile if first.kind == "attacker" else f"{first.kind} users together"
        kinds.setdefault(name, []).append(members)
    for name in sorted(kinds):
        yield {"part": replayed.part, "group": name, **_group_cells(kinds[name], replayed=replayed, rules=rules)}


def _group_cells(groups: Sequence[Sequence[Actor]], *, replayed: Replayed, rules: Rules) -> Row:
    known = [group for group in groups if any(one.counted.size for actor in group for one in actor.asked)]
    times = [_alert_times(group) for group in known]
    starts = [min(actor.asked[0].event.time for actor in group) for group in known]
    alerted = sum(bool(one) for one in times)
    first = [
        (found[0] - start) / HOUR_SECONDS if found else float("inf") for found, start in zip(times, starts, strict=True)
    ]
    rate = poisson_rate(
        sum(len(one) for one in times), len(known) * replayed.months_per_user, side="two", confidence=rules.confidence
    )
    return {
        "n_groups": len(groups),
        "n_not_evaluated": len(groups) - len(known),
        "n_alerted": alerted,
        **interval_cells(wilson(alerted, len(known), side="two", confidence=rules.confidence)),
        **median_cells(median_interval(first, confidence=rules.confidence), name="hours"),
        "n_alerts": sum(len(one) for one in times),
        "alerts_per_group_month": rate.rate,
        "alerts_low": rate.low,
        "alerts_high": rate.high,
        "alerts_method": rate.method,
    }


def _alert_times(group: Sequence[Actor]) -> list[float]:
    return sorted(one.event.time for actor in group for one in actor.asked if one.counted.collection_alert)
