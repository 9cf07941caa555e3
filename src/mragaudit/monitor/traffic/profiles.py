"""Profiles of users and attackers, from `resources/monitor/traffic.yaml`: rates as data, each with its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mragaudit.config.load import read_yaml, validated
from mragaudit.config.section import WEIGHT_TOLERANCE, Name, Section
from mragaudit.errors import ConfigError
from mragaudit.monitor.settings import RoleLimits
from mragaudit.records.documents import Level

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS_A_DAY = 24
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class BenignProfile(Section):
    """How often users of one kind come, and what they ask about."""

    reason: str = Field(min_length=1, description="why these rates")
    weekdays: tuple[Weekday, ...] = Field(WEEKDAYS, min_length=1, description="days on which they come")
    hours: tuple[int, int] = Field((0, 24), description="sessions begin between these hours, UTC")
    sessions: Positive = Field(description="sessions a day, mean of a Poisson law")
    queries: Annotated[float, Field(ge=1)] = Field(description="queries a session, 1 + Poisson")
    gap_seconds: Positive = Field(description="between the queries of a session, mean of an exponential law")
    field_share: Part = Field(1.0, description="share of the collection in which their topics lie")
    zipf_exponent: Annotated[float, Field(ge=0, le=5)] = Field(1.0, description="of the law of topics; 0: all alike")
    sensitive_topics: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="share of queries about sensitive documents; null: as the field has them"
    )
    first_days: int = Field(0, ge=0, description="days at the start with more sessions")
    first_days_factor: Positive = Field(1.0, description="so many times as many")
    fixed: bool = Field(False, description="an automated job: exactly so many sessions and the same queries each time")
    role: RoleLimits | None = Field(None, description="limits that an operator would grant")

    @model_validator(mode="after")
    def _hours(self) -> Self:
        if not 0 <= self.hours[0] < self.hours[1] <= HOURS_A_DAY:
            raise ValueError(f"hours are {list(self.hours)}; the first must lie before the second, both from 0 to 24")
        return self


class Paced(Section):
    """An attack at a fixed mean gap."""

    reason: str = Field(min_length=1, description="why these rates")
    gap_seconds: Positive = Field(description="between queries, mean of an exponential law")


class Counted(Paced):
    """An attack of so many queries."""

    queries: int = Field(ge=1, description="queries in all")


class Spread(Section):
    """An attack spread over days, one pass over all documents."""

    reason: str = Field(min_length=1, description="why these rates")
    days: Positive = Field(description="length of the pass")


class Shared(Spread):
    """The same over several accounts."""

    accounts: tuple[int, ...] = Field(min_length=1, description="numbers of accounts to try, one attacker each")


class Disguised(Section):
    """An attack at the hours and pace of a benign profile."""

    reason: str = Field(min_length=1, description="why this profile")
    profile: Name = Field(description="a benign profile")


class Reasoned(Section):
    """An attack whose pace follows from the monitor's thresholds."""

    reason: str = Field(min_length=1, description="what it tries")


class AttackProfiles(Section):
    """All attackers."""

    hammering: Counted = Field(description="as fast as it can")
    low_and_slow: Spread = Field(description="a sweep within the coverage window, once in every language")
    patient_sweep: Spread = Field(description="a sweep slower than the coverage window")
    confidential_pulls: Paced = Field(description="sensitive documents only")
    one_shot_pull: Counted = Field(description="a few sensitive documents")
    language_sweep: Spread = Field(description="a sweep that changes its language with every query")
    sybils: Shared = Field(description="a sweep over several accounts")
    mimicry: Disguised = Field(description="a sweep at a benign pace")
    under_volume: Reasoned = Field(description="just under the volume threshold")
    under_coverage: Spread = Field(description="just under the coverage threshold")
    under_sensitivity: Paced = Field(description="just under the sensitivity threshold")
    dilution: Spread = Field(description="a sweep after seeding documents")


class Profiles(Section):
    """Who asks."""

    levels: dict[str, dict[Level, float]] = Field(
        default_factory=dict, description="topic → shares of sensitivity levels; a topic not named keeps its own"
    )
    benign: dict[Name, BenignProfile] = Field(min_length=1, description="benign users")
    attackers: AttackProfiles = Field(description="attackers")

    @model_validator(mode="after")
    def _whole_shares(self) -> Self:
        for topic, shares in self.levels.items():
            if not shares or min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > WEIGHT_TOLERANCE:
                raise ValueError(f"levels.{topic} add up to {sum(shares.values()):g}; they must add up to 1")
        return self

    @model_validator(mode="after")
    def _known_disguise(self) -> Self:
        if self.attackers.mimicry.profile not in self.benign:
            raise ValueError(
                f'attackers.mimicry.profile is "{self.attackers.mimicry.profile}"; '
                f"benign profiles are: {', '.join(self.benign)}"
            )
        return self


def read_profiles(path: Path) -> Profiles:
    """Return the profiles of a file; raises ConfigError, one line a fault, when it is missing or wrong."""
    values = read_yaml(path)
    try:
        return validated(Profiles, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
