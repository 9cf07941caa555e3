"""A/A repeats: which calls a model stage makes once more, so that its noise is known beside its results.

The sample is drawn by trial, the same in every stage and whatever the number of shards: trials are taken in a random
order of their ids until the configured number of attacks is among them, so every trial is as likely as another.
Controls of the judge, which choose and check thresholds, are not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.randomness import rank_of
from mragaudit.records.base import read_shards
from mragaudit.records.queries import Query, asked_in, query_key, trial_id_of
from mragaudit.records.repeats import RepeatedStage
from mragaudit.registry import plugin

REPEAT = 1
"""Repeat index of these calls: the journal holds them apart from the first ones."""
STAGE_ROLES: dict[RepeatedStage, str] = {
    "translate": "translator",
    "backtranslate": "back_translator",
    "judge": "judge",
    "generate": "generator",
}


def repeats_calls(stage: RepeatedStage, settings: Settings) -> bool:
    """Return whether a stage repeats calls: as configured, or because its backend is not bit-stable."""
    if settings.noise.stages == "auto":
        return not plugin("llm", getattr(settings.roles, STAGE_ROLES[stage]).backend).bit_stable
    return settings.noise.stages == "all"


def repeated_trials(stage: RepeatedStage, queries: Iterable[Path], *, settings: Settings) -> frozenset[str]:
    """Return the trials whose calls a stage makes once more; `queries` are the files of all shards of the run.

    Nothing is read where the stage repeats no calls.
    """
    if not repeats_calls(stage, settings):
        return frozenset()
    return draw_trials(stage, read_shards(queries, Query, key=query_key), settings=settings)


def draw_trials(stage: RepeatedStage, queries: Sequence[Query], *, settings: Settings) -> frozenset[str]:
    """Return the sample among the trials that a stage asks its model about; all of them where there are too few."""
    asked = [(trial_id_of(query.query_id, lang), query) for query, lang in _asked(stage, queries, settings=settings)]
    chosen: set[str] = set()
    attacks = 0
    for trial_id, query in sorted(asked, key=lambda pair: rank_of(settings.seed, "noise", pair[0])):
        if attacks == settings.noise.trials:
            break
        chosen.add(trial_id)
        attacks += query.intent == "attack"
    return frozenset(chosen)


def _asked(stage: RepeatedStage, queries: Sequence[Query], *, settings: Settings) -> Iterator[tuple[Query, str]]:
    for query in queries:
        if query.intent == "control":
            continue
        for lang in asked_in(query, settings.languages):
            translated = {"translate": lang != query.lang, "backtranslate": lang != "en"}
            if translated.get(stage, True):
                yield query, lang
