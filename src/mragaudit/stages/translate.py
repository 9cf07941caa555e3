"""Stage `translate`: every query in every language; a trial is one query in one language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from mragaudit.calls import Caller
from mragaudit.config import Settings
from mragaudit.prompts import Template, load_template
from mragaudit.protocols import Completion, Failure, GenerateRequest
from mragaudit.records.base import read_records, write_records
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import Query, Translation, asked_in, query_key, translation_key, trial_id_of
from mragaudit.resources import resource_folder
from mragaudit.stages.jobs import ModelJob
from mragaudit.stages.repeats import REPEAT, repeated_trials
from mragaudit.stages.tasks import flores_codes, with_task
from mragaudit.text.language import detect_language

UNDETERMINED = "und"
PLACEHOLDER = "REF-0"
"""Stands for the anchor where `protect_anchors` is on; it matches no filter."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One trial to be: a query, the language to ask it in, and the anchor that should survive."""

    query: Query
    lang: str
    anchor: str | None

    @property
    def trial_id(self) -> str:
        """The trial that the task becomes."""
        return trial_id_of(self.query.query_id, self.lang)


def run(
    *,
    documents: Path,
    queries: Path,
    all_queries: Iterable[Path],
    translations: Path,
    repeats: Path,
    job: ModelJob,
    settings: Settings,
) -> None:
    """Write `translations/{shard}.jsonl` and `repeats/translate/{shard}.jsonl`."""
    anchors = {row.doc_id: row.anchor for row in read_records(documents, Document, key=document_key)}
    tasks = list_tasks(read_records(queries, Query, key=query_key), anchors, languages=settings.languages)
    to_translate = [task for task in tasks if task.lang != task.query.lang]
    caller = job.caller("translator", settings.roles.translator)
    rows = [_untranslated(task, settings) for task in tasks if task.lang == task.query.lang]
    rows += _translate(to_translate, caller=caller, settings=settings)
    write_records(translations, rows, key=translation_key)
    chosen = repeated_trials("translate", all_queries, settings=settings)
    again = [task for task in to_translate if task.trial_id in chosen]
    write_records(repeats, _translate(again, caller=caller, settings=settings, repeat=REPEAT), key=translation_key)
    missing = sum(row.not_evaluated is not None for row in rows)
    job.finish(n_expected=len(tasks), n_actual=len(rows), n_not_evaluated=missing)


def list_tasks(queries: list[Query], anchors: dict[str, str], *, languages: tuple[str, ...]) -> list[Task]:
    """Return the trials of a shard; a query written in one language is asked in that language alone."""
    tasks: list[Task] = []
    for query in queries:
        anchor = anchors[query.doc_id] if query.doc_id is not None else None
        tasks += [Task(query=query, lang=lang, anchor=anchor) for lang in asked_in(query, languages)]
    return tasks


def _translate(tasks: list[Task], *, caller: Caller, settings: Settings, repeat: int = 0) -> list[Translation]:
    requests = [msgspec.structs.replace(request, repeat=repeat) for request in _requests(tasks, settings)]
    answers = caller.generate(requests, trials=[task.trial_id for task in tasks])
    return [_translated(task, answer, settings) for task, answer in zip(tasks, answers, strict=True)]


def _requests(tasks: list[Task], settings: Settings) -> list[GenerateRequest]:
    templates = _templates(tasks, settings)
    codes = flores_codes(settings.resources, (lang for task in tasks for lang in _pair(task)))
    return [_request(task, templates[task.lang], codes=codes, settings=settings) for task in tasks]


def _pair(task: Task) -> tuple[str, str]:
    return task.query.lang, task.lang


def _templates(tasks: list[Task], settings: Settings) -> dict[str, Template]:
    folder = resource_folder(settings.resources) / "prompts"
    return {lang: load_template(folder, "translator", lang) for lang in sorted({task.lang for task in tasks})}


def _request(task: Task, template: Template, *, codes: Mapping[str, str], settings: Settings) -> GenerateRequest:
    source = task.query.text
    if settings.translate.protect_anchors and task.anchor:
        source = source.replace(task.anchor, PLACEHOLDER)
    source = one_line(source)
    return GenerateRequest(
        prompt=with_task(template.prompt(source=source), source, pair=_pair(task), codes=codes),
        max_tokens=settings.translate.max_tokens,
        stop=template.stop,
    )


def one_line(text: str) -> str:
    """Return the text with all white space folded: a line break would end a completion prompt's turn."""
    return " ".join(text.split())


def _untranslated(task: Task, settings: Settings) -> Translation:
    return _row(task, task.query.text, settings, translated=False)


def _translated(task: Task, answer: Completion | Failure, settings: Settings) -> Translation:
    if isinstance(answer, Failure):
        return _row(task, "", settings, translated=True, not_evaluated=answer.reason)
    text = answer.text
    if settings.translate.protect_anchors and task.anchor:
        text = text.replace(PLACEHOLDER, task.anchor)
    row = _row(task, text, settings, translated=True)
    return msgspec.structs.replace(row, failed=_failure(row, truncated=answer.finish_reason == "length"))


def _failure(row: Translation, *, truncated: bool) -> str | None:
    """Return why a text is no translation; an undetermined language is no proof of failure."""
    if not row.text.strip():
        return "empty"
    if one_line(row.text).casefold() == one_line(row.source_text).casefold():
        return "unchanged"
    if row.lang_detected not in (row.lang, UNDETERMINED):
        return "wrong_language"
    return "truncated" if truncated else None


def _row(
    task: Task, text: str, settings: Settings, *, translated: bool, not_evaluated: str | None = None
) -> Translation:
    query = task.query
    return Translation(
        trial_id=task.trial_id,
        query_id=query.query_id,
        doc_id=query.doc_id,
        intent=query.intent,
        paraphrase=query.paraphrase,
        lang=task.lang,
        source_text=query.text,
        text=text,
        anchor_kept=None if task.anchor is None or not_evaluated else task.anchor in text,
        lang_detected=detect_language(text, candidates=settings.languages),
        length_ratio=round(len(text) / max(1, len(query.text)), 4),
        failed=None,
        not_evaluated=not_evaluated,
        query_source=query.query_source,
        translated=translated,
    )
