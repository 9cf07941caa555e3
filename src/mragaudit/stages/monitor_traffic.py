"""Stage `monitor_traffic`: the queries of simulated attackers and benign users."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.index.neighbours import neighbours_of
from mragaudit.monitor.traffic.attackers import attack_events
from mragaudit.monitor.traffic.benign import benign_events
from mragaudit.monitor.traffic.material import Material, attack_trials, levels_of
from mragaudit.monitor.traffic.profiles import Profiles
from mragaudit.randomness import generator_for
from mragaudit.records.base import iter_records, read_records, read_shards, write_records
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import Translation, translation_key
from mragaudit.records.replay import Part, QueryEvent, event_key
from mragaudit.records.results import Retrieval, trial_key
from mragaudit.records.trials import Trial
from mragaudit.stages.monitor_files import monitor_settings, profiles_of

logger = logging.getLogger(__name__)


def run(
    *,
    documents: Path,
    translations: Sequence[Path],
    retrieval: Sequence[Path],
    index_folder: Path,
    trials: Path | None,
    traffic: Path,
    part: Part,
    settings: Settings,
) -> None:
    """Write `monitor/traffic/{part}.jsonl`; `trials` is given where the audit's answers count."""
    profiles = profiles_of(settings)
    material = _material(
        read_records(documents, Document, key=document_key),
        translations=translations,
        retrieval=retrieval,
        index_folder=index_folder,
        trials=trials,
        profiles=profiles,
        settings=settings,
    )
    seeds = settings.monitor.development_seeds if part == "development" else settings.monitor.check_seeds
    rows = [event for seed in seeds for event in _simulated(material, profiles, seed=seed, settings=settings)]
    write_records(traffic, rows, key=event_key)
    logger.info("monitor_traffic: %d queries by %d actors", len(rows), len({one.actor for one in rows}))


def _simulated(material: Material, profiles: Profiles, *, seed: int, settings: Settings) -> Iterator[QueryEvent]:
    monitor = settings.monitor
    yield from attack_events(
        material,
        profiles,
        settings=monitor_settings(settings),
        languages=settings.languages,
        seed=seed,
        count=monitor.attackers_per_seed,
        days=monitor.days,
    )
    yield from benign_events(material, profiles, seed=seed, count=monitor.users_per_seed, days=monitor.days)


def _material(
    documents: Sequence[Document],
    *,
    translations: Sequence[Path],
    retrieval: Sequence[Path],
    index_folder: Path,
    trials: Path | None,
    profiles: Profiles,
    settings: Settings,
) -> Material:
    retrieved = {row.trial_id: row for row in read_shards(retrieval, Retrieval, key=trial_key)}
    disclosed = {} if trials is None else _disclosed(trials)
    rule = {topic: {str(level): share for level, share in one.items()} for topic, one in profiles.levels.items()}
    width = max((len(row.doc_ids) for row in retrieved.values()), default=1)
    return Material(
        levels=levels_of(documents, rule=rule, generator=generator_for(settings.seed, "monitor levels")),
        trials=attack_trials(
            read_shards(translations, Translation, key=translation_key), retrieved, disclosed=disclosed
        ),
        neighbours=neighbours_of(index_folder, k=max(1, width)),
        sensitive_levels=monitor_settings(settings).sensitive_levels,
    )


def _disclosed(trials: Path) -> dict[str, bool | None]:
    return {row.trial_id: row.leak_verbatim for row in iter_records(trials, Trial) if row.intent == "attack"}
