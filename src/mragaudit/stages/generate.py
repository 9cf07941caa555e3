"""Stage `generate`: an answer to every trial, whatever any judge says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from mragaudit.calls import Caller
from mragaudit.config import Settings
from mragaudit.prompts import GeneratorTemplate, load_generator
from mragaudit.protocols import Completion, Failure, GenerateRequest
from mragaudit.records.base import read_records, write_records
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import Translation, translation_key
from mragaudit.records.results import Generation, Retrieval, trial_key
from mragaudit.resources import resource_folder
from mragaudit.stages.gates import require_same_ids
from mragaudit.stages.jobs import ModelJob
from mragaudit.stages.repeats import REPEAT, repeated_trials
from mragaudit.stages.retrieve import asked_trials
from mragaudit.stages.translate import one_line


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A trial as the generator is asked it."""

    trial: Translation
    shown: tuple[str, ...]
    """Ids of the documents in the order in which the prompt shows them."""


def run(
    *,
    documents: Path,
    all_queries: Iterable[Path],
    translations: Path,
    retrieval: Path,
    generations: Path,
    repeats: Path,
    job: ModelJob,
    settings: Settings,
) -> None:
    """Write `generations/{shard}.jsonl`, a row for each trial that targets a document, and the repeats beside it."""
    texts = {row.doc_id: row.text for row in read_records(documents, Document, key=document_key)}
    trials = asked_trials(read_records(translations, Translation, key=translation_key))
    retrieved = {row.trial_id: row for row in read_records(retrieval, Retrieval, key=trial_key)}
    require_same_ids(expected=[row.trial_id for row in trials], actual=retrieved, where=str(retrieval))
    questions = [Question(trial=row, shown=_order(retrieved[row.trial_id], settings)) for row in trials]
    caller = job.caller("generator", settings.roles.generator)
    rows = _answer(questions, texts=texts, caller=caller, settings=settings)
    write_records(generations, rows, key=trial_key)
    chosen = repeated_trials("generate", all_queries, settings=settings)
    again = [question for question in questions if question.trial.trial_id in chosen]
    write_records(repeats, _answer(again, texts=texts, caller=caller, settings=settings, repeat=REPEAT), key=trial_key)
    missing = sum(row.not_evaluated is not None for row in rows)
    job.finish(n_expected=len(trials), n_actual=len(rows), n_not_evaluated=missing)


def _answer(
    questions: list[Question], *, texts: Mapping[str, str], caller: Caller, settings: Settings, repeat: int = 0
) -> list[Generation]:
    arrived = [one for one in questions if one.trial.not_evaluated is None]
    templates = _templates([one.trial for one in arrived], settings)
    requests = [
        msgspec.structs.replace(
            _request(one.trial, [texts[doc_id] for doc_id in one.shown], templates[one.trial.lang], settings),
            repeat=repeat,
        )
        for one in arrived
    ]
    answers = caller.generate(requests, trials=[one.trial.trial_id for one in arrived])
    rows = [_row(one, answer) for one, answer in zip(arrived, answers, strict=True)]
    lost = [one.trial for one in questions if one.trial.not_evaluated is not None]
    return rows + [_lost(trial, f"translation: {trial.not_evaluated}") for trial in lost]


def _order(row: Retrieval, settings: Settings) -> tuple[str, ...]:
    best_first = settings.generate.context_order == "best_first"
    return row.doc_ids if best_first else tuple(reversed(row.doc_ids))


def _templates(trials: list[Translation], settings: Settings) -> dict[str, GeneratorTemplate]:
    folder = resource_folder(settings.resources) / "prompts"
    return {lang: load_generator(folder, lang) for lang in sorted({row.lang for row in trials})}


def _request(trial: Translation, texts: list[str], template: GeneratorTemplate, settings: Settings) -> GenerateRequest:
    return GenerateRequest(
        prompt=template.template.prompt(question=one_line(trial.text), context=template.context(texts)),
        max_tokens=settings.generate.max_tokens,
        stop=template.template.stop,
    )


def _row(question: Question, answer: Completion | Failure) -> Generation:
    if isinstance(answer, Failure):
        return _lost(question.trial, answer.reason)
    return Generation(
        trial_id=question.trial.trial_id,
        text=answer.text,
        finish_reason=answer.finish_reason,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        not_evaluated=None,
        context_doc_ids=question.shown,
    )


def _lost(trial: Translation, reason: str) -> Generation:
    return Generation(
        trial_id=trial.trial_id,
        text="",
        finish_reason="",
        prompt_tokens=0,
        completion_tokens=0,
        not_evaluated=reason,
        context_doc_ids=(),
    )
