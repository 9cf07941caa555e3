"""Stage `backtranslate`: non-English queries back into English, with their round-trip similarity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import numpy as np

from mragaudit.calls import Caller
from mragaudit.config import Settings
from mragaudit.prompts import Template, load_template
from mragaudit.protocols import Completion, Embedder, Failure, GenerateRequest, Prompt
from mragaudit.records.base import read_records, write_records
from mragaudit.records.queries import BackTranslation, Translation, translation_key
from mragaudit.resources import resource_folder
from mragaudit.stages.jobs import ModelJob
from mragaudit.stages.repeats import REPEAT, repeated_trials
from mragaudit.stages.tasks import flores_codes, with_task
from mragaudit.stages.translate import one_line

ENGLISH = "en"


def run(
    *,
    all_queries: Iterable[Path],
    translations: Path,
    backtranslations: Path,
    repeats: Path,
    job: ModelJob,
    settings: Settings,
) -> None:
    """Write `backtranslations/{shard}.jsonl`: one row for each trial that is not asked in English.

    `repeats/backtranslate/{shard}.jsonl` beside it has no similarities: texts are compared.
    """
    trials = [row for row in read_records(translations, Translation, key=translation_key) if row.lang != ENGLISH]
    caller = job.caller("back_translator", settings.roles.back_translator)
    rows = _translate_back(trials, caller=caller, settings=settings)
    chosen = repeated_trials("backtranslate", all_queries, settings=settings)
    again = [row for row in trials if row.trial_id in chosen]
    write_records(repeats, _translate_back(again, caller=caller, settings=settings, repeat=REPEAT), key=translation_key)
    rows = _with_similarity(rows, trials, settings=settings, job=job)
    write_records(backtranslations, rows, key=translation_key)
    missing = sum(row.not_evaluated is not None for row in rows)
    job.finish(n_expected=len(trials), n_actual=len(rows), n_not_evaluated=missing)


def _translate_back(
    trials: list[Translation], *, caller: Caller, settings: Settings, repeat: int = 0
) -> list[BackTranslation]:
    arrived = [row for row in trials if row.not_evaluated is None]
    requests = [msgspec.structs.replace(request, repeat=repeat) for request in _requests(arrived, settings)]
    answers = caller.generate(requests, trials=[row.trial_id for row in arrived])
    rows = [_lost(row) for row in trials if row.not_evaluated is not None]
    return rows + [_row(row, answer) for row, answer in zip(arrived, answers, strict=True)]


def _requests(trials: list[Translation], settings: Settings) -> list[GenerateRequest]:
    folder = resource_folder(settings.resources) / "prompts"
    languages = sorted({row.lang for row in trials})
    templates = {lang: load_template(folder, "back_translator", lang) for lang in languages}
    codes = flores_codes(settings.resources, [ENGLISH, *languages])
    return [
        GenerateRequest(
            prompt=_prompt(row, templates[row.lang], codes=codes),
            max_tokens=settings.backtranslate.max_tokens,
            stop=templates[row.lang].stop,
        )
        for row in trials
    ]


def _prompt(row: Translation, template: Template, *, codes: Mapping[str, str]) -> Prompt:
    text = one_line(row.text)
    return with_task(template.prompt(source=text), text, pair=(row.lang, ENGLISH), codes=codes)


def _lost(row: Translation) -> BackTranslation:
    reason = f"translation: {row.not_evaluated}"
    return BackTranslation(trial_id=row.trial_id, text="", round_trip_similarity=None, not_evaluated=reason)


def _row(row: Translation, answer: Completion | Failure) -> BackTranslation:
    if isinstance(answer, Failure):
        return BackTranslation(trial_id=row.trial_id, text="", round_trip_similarity=None, not_evaluated=answer.reason)
    return BackTranslation(trial_id=row.trial_id, text=answer.text, round_trip_similarity=None, not_evaluated=None)


def _with_similarity(
    rows: list[BackTranslation], trials: list[Translation], *, settings: Settings, job: ModelJob
) -> list[BackTranslation]:
    """Add cosines between source and back-translation, where the source was English and a text came back."""
    sources = {row.trial_id: row.source_text for row in trials if row.translated}
    measured = [row for row in rows if row.text.strip() and row.trial_id in sources]
    if not measured:
        return rows
    embedder = job.embedder(settings.roles.embedder)
    pairs = [(sources[row.trial_id], row.text) for row in measured]
    cosines = dict(zip([row.trial_id for row in measured], _cosines(pairs, embedder), strict=True))
    return [
        BackTranslation(
            trial_id=row.trial_id,
            text=row.text,
            round_trip_similarity=cosines.get(row.trial_id),
            not_evaluated=row.not_evaluated,
        )
        for row in rows
    ]


def _cosines(pairs: list[tuple[str, str]], embedder: Embedder) -> list[float]:
    """Return the cosine of each pair, rounded to 6 decimals; equal texts are embedded once."""
    texts = sorted({text for pair in pairs for text in pair})
    vectors = dict(zip(texts, embedder.embed_queries(texts), strict=True))
    return [round(float(np.dot(vectors[a].astype(np.float64), vectors[b].astype(np.float64))), 6) for a, b in pairs]
