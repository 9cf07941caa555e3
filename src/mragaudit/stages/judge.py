"""Stage `judge`: every variant's verdict on every trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from mragaudit.calls import Caller
from mragaudit.config import Settings
from mragaudit.judges.margins import Threshold, margin_of
from mragaudit.protocols import Completion, Failure, OptionScores
from mragaudit.records.base import read_records, write_records
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import BackTranslation, Query, Translation, query_key, translation_key
from mragaudit.records.results import Judgement, Retrieval, Verdict, judgement_key, trial_key
from mragaudit.stages.calibrate import read_thresholds
from mragaudit.stages.gates import require_same_ids
from mragaudit.stages.jobs import ModelJob
from mragaudit.stages.judging import WITH_CONTEXT, JudgeItem, ask, reader_of, templates_for
from mragaudit.stages.repeats import REPEAT, repeated_trials
from mragaudit.stages.translate import one_line


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Files that a shard of the judge reads."""

    documents: Path
    queries: Path
    all_queries: Sequence[Path]
    """Of all shards."""
    translations: Path
    backtranslations: Path
    retrieval: Path
    thresholds: Path


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """What the variants can show the judge, by id."""

    documents: dict[str, str]
    """Document id → text on one line."""
    controls: dict[str, str]
    """Query id of a control → its own context on one line."""
    backtranslations: dict[str, BackTranslation]
    retrieval: dict[str, Retrieval]


def run(*, inputs: Inputs, outputs: Mapping[str, Path], repeats: Path, job: ModelJob, settings: Settings) -> None:
    """Write `judgements/{variant}/{shard}.jsonl` for every variant, and `repeats/judge/{shard}.jsonl` for all."""
    trials = read_records(inputs.translations, Translation, key=translation_key)
    material = _read(inputs)
    _require_backtranslations(trials, material, path=inputs.backtranslations)
    caller = job.caller("judge", settings.roles.judge)
    items = [_item(trial, variant, material) for variant in outputs for trial in trials]
    items = [_cut(item, caller, settings) for item in items]
    thresholds = read_thresholds(inputs.thresholds)
    rows = _judge(items, thresholds=thresholds, caller=caller, settings=settings)
    for variant, path in outputs.items():
        write_records(path, [row for row in rows if row.variant == variant], key=trial_key)
    chosen = repeated_trials("judge", inputs.all_queries, settings=settings)
    again = [item for item in items if item.trial_id in chosen]
    repeated = _judge(again, thresholds=thresholds, caller=caller, settings=settings, repeat=REPEAT)
    write_records(repeats, repeated, key=judgement_key)
    missing = sum(row.not_evaluated is not None for row in rows)
    job.finish(n_expected=len(items), n_actual=len(rows), n_not_evaluated=missing)


def _read(inputs: Inputs) -> Material:
    queries = read_records(inputs.queries, Query, key=query_key)
    back = read_records(inputs.backtranslations, BackTranslation, key=translation_key)
    retrieval = read_records(inputs.retrieval, Retrieval, key=trial_key)
    documents = read_records(inputs.documents, Document, key=document_key)
    return Material(
        documents={row.doc_id: one_line(row.text) for row in documents},
        controls={row.query_id: one_line(row.context) for row in queries if row.context is not None},
        backtranslations={row.trial_id: row for row in back},
        retrieval={row.trial_id: row for row in retrieval},
    )


def _require_backtranslations(trials: list[Translation], material: Material, *, path: Path) -> None:
    expected = [row.trial_id for row in trials if row.lang != "en"]
    require_same_ids(expected=expected, actual=material.backtranslations, where=str(path))


def _item(trial: Translation, variant: str, material: Material) -> JudgeItem:
    text, missing = _text(trial, variant, material)
    return JudgeItem(
        trial_id=trial.trial_id,
        variant=variant,
        lang=trial.lang,
        text=text,
        context=_context(trial, variant, material) if variant in WITH_CONTEXT else None,
        missing=missing,
    )


def _text(trial: Translation, variant: str, material: Material) -> tuple[str, str | None]:
    """Return the query as the variant sees it, and why it is missing if it is."""
    if trial.not_evaluated is not None:
        return "", f"translation: {trial.not_evaluated}"
    if variant != "backtranslate" or trial.lang == "en":
        return trial.text, None
    back = material.backtranslations[trial.trial_id]
    missing = None if back.not_evaluated is None else f"back-translation: {back.not_evaluated}"
    return back.text, missing


def _context(trial: Translation, variant: str, material: Material) -> str:
    """Return the gold document, what was really retrieved (best first), or a control's own document."""
    if trial.doc_id is None:
        return material.controls[trial.query_id]
    if variant == "oracle":
        return material.documents[trial.doc_id]
    retrieved = material.retrieval[trial.trial_id].doc_ids
    return " ".join(material.documents[doc_id] for doc_id in retrieved)


def _cut(item: JudgeItem, caller: Caller, settings: Settings) -> JudgeItem:
    """Cut the context of `retrieved` to the configured number of the judge's tokens."""
    if item.variant != "retrieved" or item.context is None:
        return item
    return msgspec.structs.replace(item, context=caller.backend.truncate(item.context, settings.judge.context_tokens))


def _judge(
    items: list[JudgeItem],
    *,
    thresholds: Mapping[str, Threshold],
    caller: Caller,
    settings: Settings,
    repeat: int = 0,
) -> list[Judgement]:
    present = [item for item in items if item.missing is None]
    languages = sorted({item.lang for item in items})
    templates = templates_for(languages, settings)
    replies = ask(present, templates, caller=caller, settings=settings, repeat=repeat)
    rows = [_not_evaluated(item, str(item.missing)) for item in items if item.missing is not None]
    read = reader_of(settings)
    for item, reply in zip(present, replies, strict=True):
        rows.append(_row(item, reply, threshold=thresholds[item.variant], read=read))
    return rows


def _row(
    item: JudgeItem,
    reply: OptionScores | Completion | Failure,
    *,
    threshold: Threshold,
    read: Callable[[str], Verdict],
) -> Judgement:
    if isinstance(reply, Failure):
        return _not_evaluated(item, reply.reason)
    if isinstance(reply, Completion):
        return _verdict(item, verdict=read(reply.text), raw=reply.text, margin=None)
    margin = margin_of(reply)
    if threshold.threshold is None:
        return _not_evaluated(item, "no benign calibration control was evaluated, so there is no threshold")
    verdict: Verdict = "BLOCK" if margin > threshold.threshold else "ALLOW"
    block, allow = reply.logprobs
    return _verdict(item, verdict=verdict, raw=f"log p(BLOCK) {block:.6f}, log p(ALLOW) {allow:.6f}", margin=margin)


def _verdict(item: JudgeItem, *, verdict: Verdict, raw: str, margin: float | None) -> Judgement:
    return Judgement(
        trial_id=item.trial_id,
        variant=item.variant,
        verdict=verdict,
        raw=raw,
        margin=margin,
        judged_text=item.text,
        not_evaluated=None,
    )


def _not_evaluated(item: JudgeItem, reason: str) -> Judgement:
    return Judgement(
        trial_id=item.trial_id,
        variant=item.variant,
        verdict=None,
        raw="",
        margin=None,
        judged_text=item.text,
        not_evaluated=reason,
    )
