"""All rows of a run, read from every stage's files and held against one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from mragaudit.config import Settings
from mragaudit.paths import RunPaths
from mragaudit.records.base import read_records, read_shards
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import BackTranslation, Query, Translation, query_key, translation_key
from mragaudit.records.repeats import REPEATED_STAGES
from mragaudit.records.results import Filtered, Generation, Judgement, Retrieval, judgement_key, trial_key
from mragaudit.stages.gates import require_same_ids
from mragaudit.stages.retrieve import asked_trials

T = TypeVar("T", Retrieval, Generation, Judgement, Filtered)


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Files of all stages, shards listed."""

    documents: Path
    queries: Sequence[Path]
    translations: Sequence[Path]
    backtranslations: Sequence[Path]
    retrieval: Sequence[Path]
    generations: Sequence[Path]
    judgements: Mapping[str, Sequence[Path]]
    """Judge variant → shards."""
    filtered: Mapping[str, Sequence[Path]]
    """Filter variant → shards."""
    repeats: Mapping[str, Sequence[Path]]
    """Model stage → shards of its repeats."""


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """What model stages gave when they asked some trials once more, by trial."""

    translate: dict[str, Translation]
    backtranslate: dict[str, BackTranslation]
    judge: dict[str, Judgement]
    """By variant and trial."""
    generate: dict[str, Generation]


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of a run, by id."""

    documents: dict[str, Document]
    queries: dict[str, Query]
    translations: dict[str, Translation]
    backtranslations: dict[str, BackTranslation]
    retrieval: dict[str, Retrieval]
    generations: dict[str, Generation]
    judgements: dict[str, dict[str, Judgement]]
    filtered: dict[str, dict[str, Filtered]]
    repeats: Repeats


def inputs_of(run_folder: Path, settings: Settings) -> Inputs:
    """Return the files of all stages of a run."""
    paths, names = RunPaths(run_folder), settings.shard_names
    return Inputs(
        documents=paths.documents,
        queries=paths.shards("queries", names),
        translations=paths.shards("translations", names),
        backtranslations=paths.shards("backtranslations", names),
        retrieval=paths.shards("retrieval", names),
        generations=paths.shards("generations", names),
        judgements={name: paths.shards(f"judgements/{name}", names) for name in settings.judge.variants},
        filtered={name: paths.shards(f"filtered/{name}", names) for name in settings.filter.variants},
        repeats={stage: paths.shards(f"repeats/{stage}", names) for stage in REPEATED_STAGES},
    )


def read_rows(inputs: Inputs) -> Rows:
    """Return all rows of a run; raises DataError naming file and line for a bad one."""
    asked = read_shards(inputs.translations, Translation, key=translation_key)
    back = read_shards(inputs.backtranslations, BackTranslation, key=translation_key)
    return Rows(
        documents={row.doc_id: row for row in read_records(inputs.documents, Document, key=document_key)},
        queries={row.query_id: row for row in read_shards(inputs.queries, Query, key=query_key)},
        translations={row.trial_id: row for row in asked},
        backtranslations={row.trial_id: row for row in back},
        retrieval=_by_trial(inputs.retrieval, Retrieval),
        generations=_by_trial(inputs.generations, Generation),
        judgements={variant: _by_trial(paths, Judgement) for variant, paths in inputs.judgements.items()},
        filtered={variant: _by_trial(paths, Filtered) for variant, paths in inputs.filtered.items()},
        repeats=_read_repeats(inputs.repeats),
    )


def _by_trial(paths: Iterable[Path], kind: type[T]) -> dict[str, T]:
    return {row.trial_id: row for row in read_shards(paths, kind, key=trial_key)}


def _read_repeats(paths: Mapping[str, Sequence[Path]]) -> Repeats:
    translated = read_shards(paths["translate"], Translation, key=translation_key)
    returned = read_shards(paths["backtranslate"], BackTranslation, key=translation_key)
    judged = read_shards(paths["judge"], Judgement, key=judgement_key)
    return Repeats(
        translate={row.trial_id: row for row in translated},
        backtranslate={row.trial_id: row for row in returned},
        judge={judgement_key(row): row for row in judged},
        generate=_by_trial(paths["generate"], Generation),
    )


def check_rows(rows: Rows, inputs: Inputs) -> None:
    """Raise GateError unless every stage holds exactly the trials that it should."""
    trials = list(rows.translations.values())
    every = list(rows.translations)
    asked = [row.trial_id for row in asked_trials(trials)]
    foreign = [row.trial_id for row in trials if row.lang != "en"]
    require_same_ids(expected={row.query_id for row in trials}, actual=rows.queries, where=_folder(inputs.queries))
    require_same_ids(expected=foreign, actual=rows.backtranslations, where=_folder(inputs.backtranslations))
    require_same_ids(expected=asked, actual=rows.retrieval, where=_folder(inputs.retrieval))
    require_same_ids(expected=asked, actual=rows.generations, where=_folder(inputs.generations))
    for variant, judged in rows.judgements.items():
        require_same_ids(expected=every, actual=judged, where=_folder(inputs.judgements[variant]))
    for variant, filtered in rows.filtered.items():
        require_same_ids(expected=asked, actual=filtered, where=_folder(inputs.filtered[variant]))
    _check_repeats(rows, inputs)


def _check_repeats(rows: Rows, inputs: Inputs) -> None:
    """Raise GateError for a repeat of a call that its stage never made."""
    judged = {judgement_key(row): row for variant in rows.judgements.values() for row in variant.values()}
    held: tuple[tuple[str, Iterable[str], Mapping[str, object]], ...] = (
        ("translate", rows.repeats.translate, rows.translations),
        ("backtranslate", rows.repeats.backtranslate, rows.backtranslations),
        ("judge", rows.repeats.judge, judged),
        ("generate", rows.repeats.generate, rows.generations),
    )
    for stage, again, first in held:
        known = [name for name in again if name in first]
        require_same_ids(expected=known, actual=again, where=_folder(inputs.repeats[stage]))


def _folder(paths: Sequence[Path]) -> str:
    return str(paths[0].parent)
