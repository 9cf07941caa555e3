"""Benign users: when they come and what they ask about, by profile and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mragaudit.monitor.traffic.campaigns import DAY_SECONDS, START
from mragaudit.monitor.traffic.material import Material
from mragaudit.monitor.traffic.profiles import WEEKDAYS, BenignProfile, Profiles
from mragaudit.randomness import generator_for
from mragaudit.records.replay import QueryEvent

HOUR_SECONDS = 3_600.0


def benign_events(material: Material, profiles: Profiles, *, seed: int, count: int, days: int) -> Iterator[QueryEvent]:
    """Yield the events of `count` users of every profile, who share a tenant, determined by the seed alone."""
    for name, profile in profiles.benign.items():
        for number in range(1, count + 1):
            actor = f"{name}-s{seed}-{number}"
            generator = generator_for(seed, f"{name} {number}")
            times = arrival_times(profile, generator=generator, days=days)
            topics = _topics(profile, material, count=len(times), generator=generator)
            for position, (time, topic) in enumerate(zip(times, topics, strict=True)):
                yield QueryEvent(
                    query_id=f"{actor}-{position:05d}",
                    actor=actor,
                    user=actor,
                    group=f"benign-s{seed}",
                    kind="benign",
                    profile=name,
                    lang=None,
                    time=round(START + time, 3),
                    collection_size=material.size,
                    documents=material.seen(material.neighbours[topic]),
                )


def arrival_times(profile: BenignProfile, *, generator: np.random.Generator, days: int) -> list[float]:
    """Return the times of all queries in order, seconds from the start, which is a Monday."""
    times: list[float] = []
    for day in range(days):
        if WEEKDAYS[day % len(WEEKDAYS)] in profile.weekdays:
            times += _day_times(profile, day=day, generator=generator)
    return sorted(times)


def _day_times(profile: BenignProfile, *, day: int, generator: np.random.Generator) -> Iterator[float]:
    factor = profile.first_days_factor if day < profile.first_days else 1.0
    mean = profile.sessions * factor
    sessions = round(mean) if profile.fixed else int(generator.poisson(mean))
    first, last = profile.hours
    for _ in range(sessions):
        start = day * DAY_SECONDS + float(generator.uniform(first, last)) * HOUR_SECONDS
        queries = round(profile.queries) if profile.fixed else 1 + int(generator.poisson(profile.queries - 1))
        gaps = generator.exponential(profile.gap_seconds, size=queries)
        yield from (start + float(one) for one in np.cumsum(gaps))


def _topics(profile: BenignProfile, material: Material, *, count: int, generator: np.random.Generator) -> list[str]:
    """Return the document that each query is about."""
    documents = list(material.levels)
    generator.shuffle(documents)
    kept = max(1, round(profile.field_share * len(documents)))
    if profile.fixed:
        asked = _drawn(profile, material, field=documents[:kept], count=round(profile.queries), generator=generator)
        return [asked[position % len(asked)] for position in range(count)]
    return _drawn(profile, material, field=documents[:kept], count=count, generator=generator)


def _drawn(
    profile: BenignProfile,
    material: Material,
    *,
    field: Sequence[str],
    count: int,
    generator: np.random.Generator,
) -> list[str]:
    if profile.sensitive_topics is None:
        return _zipf(field, profile.zipf_exponent, count=count, generator=generator)
    sensitive, plain = material.split(field)
    chosen = generator.random(count) < profile.sensitive_topics
    from_sensitive = _zipf(sensitive or plain, profile.zipf_exponent, count=count, generator=generator)
    from_plain = _zipf(plain or sensitive, profile.zipf_exponent, count=count, generator=generator)
    pairs = zip(chosen, from_sensitive, from_plain, strict=True)
    return [secret if is_secret else other for is_secret, secret, other in pairs]


def _zipf(documents: Sequence[str], exponent: float, *, count: int, generator: np.random.Generator) -> list[str]:
    """Return documents drawn by a Zipf law over their order: the r-th with a weight of 1 / r ** exponent."""
    weights = 1.0 / np.arange(1, len(documents) + 1, dtype=np.float64) ** exponent
    drawn = generator.choice(len(documents), size=count, p=weights / weights.sum())
    return [documents[int(one)] for one in drawn]
