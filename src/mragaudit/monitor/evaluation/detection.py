"""Which attackers are throttled, after how many documents, and after how long; whether languages differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from mragaudit.monitor.core import MonitorCore
from mragaudit.monitor.evaluation.replayed import (
    HOUR_SECONDS,
    SIGNAL_CHOICES,
    Replayed,
    Row,
    Rules,
    by_profile,
    interval_cells,
    median_cells,
)
from mragaudit.monitor.rejudge import Actor, Judgement, Take, core_of, first_throttled, judge, take_until
from mragaudit.monitor.risk import SIGNALS
from mragaudit.stats.intervals import wilson
from mragaudit.stats.medians import median_interval

SWEEP = "low_and_slow"
ENGLISH = "en"


def detection_table(parts: Sequence[Replayed], *, rules: Rules) -> pd.DataFrame:
    """Return a row for each part, signal, attacker profile and language, at the configured settings.

    The unit is the attacker. One whose every query lacks the signal is not evaluated: neither detected nor missed.
    Documents, items and hours are medians over all evaluated attackers, also those who were never throttled: their
    documents are all they took, their hours are infinite.
    """
    rows = [
        row for replayed in parts for signal in SIGNAL_CHOICES for row in _rows(replayed, signal=signal, rules=rules)
    ]
    return pd.DataFrame(rows)


def _rows(replayed: Replayed, *, signal: str, rules: Rules) -> Iterator[Row]:
    core = core_of(rules.settings, signal=signal)
    for profile, lang, actors in by_profile(replayed.attackers):
        found = {actor.name: judge(actor, core) for actor in actors}
        yield {
            "part": replayed.part,
            "signal": signal,
            "profile": profile,
            "lang": lang,
            **detection_cells(actors, [found[one.name] for one in actors], confidence=rules.confidence),
        }


def detection_cells(actors: Sequence[Actor], judgements: Sequence[Sequence[Judgement]], *, confidence: float) -> Row:
    """Return counts, share with interval, and medians of what these attackers took before they were throttled."""
    evaluated = [was_evaluated(one) for one in judgements]
    takes = [
        take_until(actor, first_throttled(found))
        for actor, found, known in zip(actors, judgements, evaluated, strict=True)
        if known
    ]
    detected = sum(one.detected for one in takes)
    return {
        "n_attackers": len(actors),
        "n_not_evaluated": len(actors) - len(takes),
        "n_detected": detected,
        **interval_cells(wilson(detected, len(takes), side="two", confidence=confidence)),
        **_take_cells(takes, confidence=confidence),
        "signals_never_evaluated": " ".join(never_evaluated(judgements)),
    }


def _take_cells(takes: Sequence[Take], *, confidence: float) -> Row:
    disclosed = [one.disclosed for one in takes if one.disclosed is not None]
    measures = {
        "documents": [float(one.documents) for one in takes],
        "items": [float(one.items) for one in takes],
        "disclosed": [float(one) for one in disclosed],
        "queries": [float(one.queries) for one in takes],
        "hours": [one.seconds / HOUR_SECONDS for one in takes],
    }
    cells: Row = {}
    for name, values in measures.items():
        cells |= median_cells(median_interval(values, confidence=confidence), name=name)
    return cells


def was_evaluated(judgements: Sequence[Judgement]) -> bool:
    """Return whether any query of an actor had a composite."""
    return any(one.decision.composite is not None for one in judgements)


def never_evaluated(judgements: Sequence[Sequence[Judgement]]) -> list[str]:
    """Return the signals that no query of these actors could evaluate."""
    seen = {
        reading.signal
        for found in judgements
        for one in found
        for reading in one.decision.signals
        if reading.score is not None
    }
    return [name for name in SIGNALS if name not in seen]


def languages_table(parts: Sequence[Replayed], *, languages: Sequence[str], rules: Rules) -> pd.DataFrame:
    """Return a row for each part and language: the same sweep, the same targets at the same times, in each.

    `target_found` counts documents of the collection, since every attacker asks the same trials. Differences from
    English are medians over attackers, paired.
    """
    core = MonitorCore(rules.settings)
    rows = []
    for replayed in parts:
        sweeps = {lang: _sweeps(replayed, lang) for lang in languages}
        takes = {lang: _takes(found, core) for lang, found in sweeps.items()}
        rows += [
            {"part": replayed.part, "lang": lang, **_language_cells(lang, sweeps, takes, confidence=rules.confidence)}
            for lang in languages
            if sweeps[lang]
        ]
    return pd.DataFrame(rows)


def _sweeps(replayed: Replayed, lang: str) -> dict[str, Actor]:
    """Return the sweeps in one language by what they share with those in the others: seed and number."""
    found = [one for one in replayed.attackers if one.profile == SWEEP and one.lang == lang]
    return {one.name.removeprefix(f"{SWEEP}-{lang}-"): one for one in found}


def _takes(sweeps: dict[str, Actor], core: MonitorCore) -> dict[str, Take]:
    return {name: take_until(actor, first_throttled(judge(actor, core))) for name, actor in sweeps.items()}


def _language_cells(
    lang: str, sweeps: dict[str, dict[str, Actor]], takes: dict[str, dict[str, Take]], *, confidence: float
) -> Row:
    own = takes[lang]
    asked = next(iter(sweeps[lang].values())).asked
    targets = {one.event.target for one in asked}
    reached = {one.event.target for one in asked if any(d.doc_id == one.event.target for d in one.event.documents)}
    distinct = {document.doc_id for one in asked for document in one.event.documents}
    detected = sum(one.detected for one in own.values())
    found = wilson(len(reached), len(targets), side="two", confidence=confidence)
    return {
        "n_targets": len(targets),
        "n_targets_found": len(reached),
        **interval_cells(found, prefix="target_found_"),
        "distinct_documents": len(distinct),
        "n_attackers": len(own),
        "n_not_evaluated": 0,
        "n_detected": detected,
        **interval_cells(wilson(detected, len(own), side="two", confidence=confidence)),
        **_take_cells(list(own.values()), confidence=confidence),
        **_difference_cells(own, {} if lang == ENGLISH else takes.get(ENGLISH, {}), confidence=confidence),
    }


def _difference_cells(own: dict[str, Take], english: dict[str, Take], *, confidence: float) -> Row:
    """Return paired differences from English; hours only of pairs in which both were detected."""
    pairs = [(own[name], english[name]) for name in own if name in english]
    documents = [float(one.documents - other.documents) for one, other in pairs]
    hours = [(one.seconds - other.seconds) / HOUR_SECONDS for one, other in pairs if one.detected and other.detected]
    return {
        "n_pairs": len(pairs),
        **median_cells(median_interval(documents, confidence=confidence), name="documents_minus_english"),
        "n_pairs_both_detected": len(hours),
        **median_cells(median_interval(hours, confidence=confidence), name="hours_minus_english"),
    }
