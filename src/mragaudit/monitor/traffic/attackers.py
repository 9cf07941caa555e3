"""The attackers: in which order each asks the audit's trials, and when."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.traffic.benign import arrival_times
from mragaudit.monitor.traffic.campaigns import DAY_SECONDS, Campaign, Step, campaign_events
from mragaudit.monitor.traffic.material import AttackTrial, Material
from mragaudit.monitor.traffic.profiles import Profiles
from mragaudit.randomness import generator_for
from mragaudit.records.replay import QueryEvent, SeenDocument

MIXED = "mixed"
ENGLISH = "en"
JUST_UNDER = 1.001
"""Queries spaced by the window over its limit, times this, never number more than the limit inside the window."""
CAUTION = 0.9
"""Share of the sensitivity threshold that the attacker below it uses: older answers leave the window unasked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What one attacker has at hand."""

    material: Material
    profiles: Profiles
    settings: MonitorSettings
    """Thresholds that an attacker may know."""
    languages: Sequence[str]
    order: Sequence[str]
    """All documents in the order in which this attacker goes through them."""
    days: int
    generator: Callable[[str], np.random.Generator]
    """Fresh generator by name: equal names give equal times, so that languages differ in nothing else."""

    def trial(self, lang: str, target: str) -> AttackTrial | None:
        """Return the audit's trial, None where the query was never asked."""
        return self.material.trials.get((lang, target))

    def trials(self, lang: str, targets: Sequence[str]) -> list[tuple[str, AttackTrial]]:
        """Return (language, trial) of the targets that were asked."""
        return [(lang, one) for target in targets if (one := self.trial(lang, target)) is not None]

    def times(self, name: str, *, gap_seconds: float, count: int) -> list[float]:
        """Return times with exponential gaps of this mean."""
        gaps = self.generator(name).exponential(gap_seconds, size=count)
        return [float(one) for one in np.cumsum(gaps)]

    def campaign(self, profile: str, lang: str, steps: Sequence[Step]) -> Campaign:
        """Return a campaign on the collection as it is."""
        return Campaign(profile=profile, lang=lang, steps=steps, collection_size=self.material.size)


def attack_events(
    material: Material,
    profiles: Profiles,
    *,
    settings: MonitorSettings,
    languages: Sequence[str],
    seed: int,
    count: int,
    days: int,
) -> Iterator[QueryEvent]:
    """Yield the events of `count` attackers of every profile, determined by the seed alone."""
    for number in range(1, count + 1):
        name = f"s{seed}-{number}"
        order = list(material.levels)
        generator_for(seed, f"order {number}").shuffle(order)
        situation = Situation(
            material=material,
            profiles=profiles,
            settings=settings,
            languages=languages,
            order=order,
            days=days,
            generator=lambda use, number=number: generator_for(seed, f"{use} {number}"),  # type: ignore[misc]
        )
        for campaign in campaigns(situation):
            actor = f"{campaign.profile}-{campaign.lang}-{name}"
            yield from campaign_events(campaign, actor=actor, material=material)


def campaigns(situation: Situation) -> Iterator[Campaign]:
    """Yield every attack of one attacker's situation that has a step."""
    for attack in ATTACKS:
        for campaign in attack(situation):
            if campaign.steps:
                yield campaign


def _steps(times: Sequence[float], asked: Sequence[tuple[str, AttackTrial]]) -> list[Step]:
    return [Step(time=time, lang=lang, trial=trial) for time, (lang, trial) in zip(times, asked, strict=False)]


def _spread(situation: Situation, name: str, asked: Sequence[tuple[str, AttackTrial]], *, days: float) -> list[Step]:
    gap = days * DAY_SECONDS / max(1, len(situation.order))
    return _steps(situation.times(name, gap_seconds=gap, count=len(asked)), asked)


def hammering(situation: Situation) -> Iterator[Campaign]:
    """Yield random attack trials without a pause."""
    pace = situation.profiles.attackers.hammering
    known = situation.trials(ENGLISH, situation.order)
    if known:
        drawn = situation.generator("hammering").integers(len(known), size=pace.queries)
        times = situation.times("hammering times", gap_seconds=pace.gap_seconds, count=pace.queries)
        yield situation.campaign("hammering", ENGLISH, _steps(times, [known[int(one)] for one in drawn]))


def low_and_slow(situation: Situation) -> Iterator[Campaign]:
    """Yield one sweep a language: the same targets in the same order at the same times."""
    days = situation.profiles.attackers.low_and_slow.days
    for lang in situation.languages:
        asked = situation.trials(lang, situation.order)
        yield situation.campaign("low_and_slow", lang, _spread(situation, "low_and_slow", asked, days=days))


def patient_sweep(situation: Situation) -> Iterator[Campaign]:
    """Yield a sweep that is slower than the coverage window."""
    days = situation.profiles.attackers.patient_sweep.days
    asked = situation.trials(ENGLISH, situation.order)
    yield situation.campaign("patient_sweep", ENGLISH, _spread(situation, "patient_sweep", asked, days=days))


def confidential_pulls(situation: Situation) -> Iterator[Campaign]:
    """Yield every sensitive document, and nothing else, as target."""
    gap = situation.profiles.attackers.confidential_pulls.gap_seconds
    asked = situation.trials(ENGLISH, situation.material.split(situation.order)[0])
    times = situation.times("confidential_pulls", gap_seconds=gap, count=len(asked))
    yield situation.campaign("confidential_pulls", ENGLISH, _steps(times, asked))


def one_shot_pull(situation: Situation) -> Iterator[Campaign]:
    """Yield a few sensitive documents."""
    pace = situation.profiles.attackers.one_shot_pull
    asked = situation.trials(ENGLISH, situation.material.split(situation.order)[0])[: pace.queries]
    times = situation.times("one_shot_pull", gap_seconds=pace.gap_seconds, count=len(asked))
    yield situation.campaign("one_shot_pull", ENGLISH, _steps(times, asked))


def language_sweep(situation: Situation) -> Iterator[Campaign]:
    """Yield a sweep that asks for each document in the next language."""
    if len(situation.languages) < 2:  # noqa: PLR2004 - one language is no change of language
        return
    days = situation.profiles.attackers.language_sweep.days
    pairs = zip(cycle(situation.languages), situation.order, strict=False)
    asked = [(lang, trial) for lang, target in pairs if (trial := situation.trial(lang, target)) is not None]
    yield situation.campaign("language_sweep", MIXED, _spread(situation, "low_and_slow", asked, days=days))


def sybils(situation: Situation) -> Iterator[Campaign]:
    """Yield a sweep dealt to several accounts, once for every number of accounts."""
    pace = situation.profiles.attackers.sybils
    asked = situation.trials(ENGLISH, situation.order)
    plain = _spread(situation, "low_and_slow", asked, days=pace.days)
    for accounts in pace.accounts:
        steps = [
            Step(time=step.time, lang=step.lang, trial=step.trial, account=number % accounts)
            for number, step in enumerate(plain)
        ]
        yield situation.campaign(f"sybils_{accounts}", ENGLISH, steps)


def mimicry(situation: Situation) -> Iterator[Campaign]:
    """Yield a sweep at the hours and the pace of a benign profile."""
    profile = situation.profiles.benign[situation.profiles.attackers.mimicry.profile]
    times = arrival_times(profile, generator=situation.generator("mimicry"), days=situation.days)
    asked = situation.trials(ENGLISH, situation.order)
    yield situation.campaign("mimicry", ENGLISH, _steps(times, asked))


def under_volume(situation: Situation) -> Iterator[Campaign]:
    """Yield a sweep at the most queries a window that do not alert."""
    volume = situation.settings.volume
    asked = situation.trials(ENGLISH, situation.order)
    gap = volume.window_seconds / volume.max_queries * JUST_UNDER
    yield situation.campaign("under_volume", ENGLISH, _steps([gap * n for n in range(len(asked))], asked))


def under_coverage(situation: Situation) -> Iterator[Campaign]:
    """Yield a sweep that stops before the share of documents alerts, and goes on once the window is over."""
    coverage = situation.settings.coverage
    most = coverage.max_share * situation.material.size
    asked = situation.trials(ENGLISH, situation.order)
    plain = _spread(situation, "low_and_slow", asked, days=situation.profiles.attackers.under_coverage.days)
    seen: set[str] = set()
    pause, steps = 0.0, []
    for step in plain:
        found = set() if step.trial is None else set(step.trial.documents)
        if len(seen | found) > most:
            pause, seen = pause + coverage.window_seconds * JUST_UNDER, set()
        seen |= found
        steps.append(Step(time=step.time + pause, lang=step.lang, trial=step.trial))
    yield situation.campaign("under_coverage", ENGLISH, steps)


def under_sensitivity(situation: Situation) -> Iterator[Campaign]:
    """Yield sensitive targets among so many others that the share of sensitive documents never alerts."""
    gap = situation.profiles.attackers.under_sensitivity.gap_seconds
    sensitive, plain = situation.material.split(situation.order)
    wanted, mixed_in = situation.trials(ENGLISH, sensitive), situation.trials(ENGLISH, plain)
    if not mixed_in:
        return
    count = len(wanted) + len(mixed_in)
    times = situation.times("under_sensitivity", gap_seconds=gap, count=count)
    asked = _kept_under(situation, wanted=wanted, mixed_in=mixed_in, times=times)
    yield situation.campaign("under_sensitivity", ENGLISH, _steps(times, asked))


def _kept_under(
    situation: Situation,
    *,
    wanted: Sequence[tuple[str, AttackTrial]],
    mixed_in: Sequence[tuple[str, AttackTrial]],
    times: Sequence[float],
) -> list[tuple[str, AttackTrial]]:
    """Return a wanted trial whenever the window's share allows it, else the next of the others, again and again.

    The others are those that bring up no sensitive document, where there are any.
    """
    sensitivity = situation.settings.sensitivity
    harmless = [one for one in mixed_in if not _sensitive_of(situation, one[1])[0]]
    waiting, others = deque(wanted), cycle(harmless or mixed_in)
    window: deque[tuple[float, int, int]] = deque()
    asked = []
    for time in times:
        while window and time - window[0][0] > sensitivity.window_seconds:
            window.popleft()
        chosen = next(others)
        if waiting and _share_with(situation, window, waiting[0][1]) <= CAUTION * sensitivity.max_share:
            chosen = waiting.popleft()
        window.append((time, *_sensitive_of(situation, chosen[1])))
        asked.append(chosen)
    return asked


def _sensitive_of(situation: Situation, trial: AttackTrial) -> tuple[int, int]:
    return len(situation.material.split(trial.documents)[0]), len(trial.documents)


def _share_with(situation: Situation, window: Sequence[tuple[float, int, int]], trial: AttackTrial) -> float:
    """Return the window's share of sensitive documents were this trial asked now; 1 before the share counts."""
    sensitive, returned = _sensitive_of(situation, trial)
    total = returned + sum(one[2] for one in window)
    if total < situation.settings.min_documents:
        return 1.0
    return (sensitive + sum(one[1] for one in window)) / total


def dilution(situation: Situation) -> Iterator[Campaign]:
    """Yield two sweeps after adding as many documents as the collection holds: the indexer told, or did not tell."""
    days = situation.profiles.attackers.dilution.days
    asked = situation.trials(ENGLISH, situation.order)
    plain = _spread(situation, "low_and_slow", asked, days=days)
    filler = tuple(f"own-{number:05d}" for number in range(situation.material.size))
    for profile, told in (("dilution_told", True), ("dilution_untold", False)):
        steps = _with_own(plain, filler=filler, level=situation.settings.levels[0], told=told)
        yield Campaign(profile=profile, lang=ENGLISH, steps=steps, collection_size=2 * situation.material.size)


def _with_own(plain: Sequence[Step], *, filler: Sequence[str], level: str, told: bool) -> list[Step]:
    """Return the sweep with a query about own documents after each step."""
    steps: list[Step] = []
    for number, step in enumerate(plain):
        added = tuple(filler) if told and number == 0 else ()
        steps.append(Step(time=step.time, lang=step.lang, trial=step.trial, added=added))
        width = len(step.trial.documents) if step.trial else 0
        own = tuple(SeenDocument(filler[(number * width + n) % len(filler)], level, False) for n in range(width))
        after = plain[number + 1].time if number + 1 < len(plain) else step.time + 1.0
        steps.append(Step(time=(step.time + after) / 2, lang=step.lang, trial=None, own=own))
    return steps


ATTACKS: tuple[Callable[[Situation], Iterator[Campaign]], ...] = (
    *(hammering, low_and_slow, patient_sweep, confidential_pulls, one_shot_pull, language_sweep, sybils, mimicry),
    *(under_volume, under_coverage, under_sensitivity, dilution),
)
