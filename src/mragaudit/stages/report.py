"""Stage `report`: everything that a person looks at, on one page; no model is needed."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pandas as pd

from mragaudit.config import Settings
from mragaudit.config.settings import Retrieve
from mragaudit.errors import StorageError
from mragaudit.paths import FIGURES, TABLES, RunPaths
from mragaudit.records.base import iter_records, write_text
from mragaudit.records.repeats import REPEATED_STAGES, RepeatedStage
from mragaudit.records.trials import Trial
from mragaudit.registry import plugin
from mragaudit.report.masking import Planted, mask_report
from mragaudit.report.model import (
    Flag,
    NoiseFloor,
    Provenance,
    ReportInput,
    RoleModel,
    StageCount,
    StageNoise,
    Trace,
)
from mragaudit.report.page import render
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.calibrate import read_thresholds
from mragaudit.stages.guard_words import between_flags, guard_flags, guard_use
from mragaudit.stages.manifest import Manifest, RecallSummary, StageSummary, read_manifest
from mragaudit.stages.repeats import STAGE_ROLES, repeats_calls
from mragaudit.stages.reporting import (
    default_filter,
    default_judge,
    languages_of,
    models_of,
    published_beside,
)
from mragaudit.stages.rows import Rows, inputs_of, read_rows
from mragaudit.stages.traces import trace_of
from mragaudit.tables.columns import NO_FILTER, NO_JUDGE, read_columns
from mragaudit.tables.funnel import passage, stop_of_each

TITLE = "Where does this multilingual RAG system leak personal data?"
KEY_BYTES = 32


def run(*, run_folder: Path, html: Path, settings: Settings) -> None:
    """Write `report.html`; planted values of real people are masked in it."""
    paths = RunPaths(run_folder)
    rows = read_rows(inputs_of(run_folder, settings))
    report = _report(paths, rows, settings)
    if settings.real_data:
        planted = {one.doc_id: Planted(one.pii_type, one.pii_value) for one in rows.documents.values()}
        report = mask_report(report, planted=planted, key=mask_key(paths))
    write_text(html, render(report))


def mask_key(paths: RunPaths) -> bytes:
    """Return the run's secret for keyed hashes, made at its first use and readable by its owner alone."""
    path = paths.mask_key
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(secrets.token_bytes(KEY_BYTES))
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror})") from error
    return path.read_bytes()


def _report(paths: RunPaths, rows: Rows, settings: Settings) -> ReportInput:
    manifest = read_manifest(paths.manifest)
    tables = {name: read_table(paths.table(name)) for name in TABLES}
    judge, output_filter = default_judge(settings), default_filter(settings)
    trials = list(iter_records(paths.trials, Trial))
    guard = guard_use(settings, languages_of(settings))
    of_guard = [*guard_flags(settings, guard), *between_flags(settings, trials, rows.judgements)]
    floor = _noise_floor(trials, settings)
    return ReportInput(
        run=settings.run,
        title=TITLE,
        settings_summary=tuple(_settings_summary(settings, rows, manifest)),
        models=tuple(_with_revision(model, manifest) for model in models_of(settings)),
        languages=languages_of(settings),
        tables=tables,
        figures={name: paths.figure(name).read_text(encoding="utf-8") for name in FIGURES},
        traces=tuple(_traces(trials, rows, settings)),
        flags=(*of_guard, *_flags(tables, trials, manifest), *_noise_flags(floor)),
        notes=tuple(_threshold_notes(paths, settings)),
        published=published_beside(settings),
        noise=floor,
        provenance=_provenance(manifest),
        masked=False,
        query_sources=tuple(sorted({trial.query_source for trial in trials} - {"control"})),
        seed=settings.seed,
        generated_from=("trials.jsonl", "noise.jsonl", "manifest.json", "tables/*.csv", "figures/*.svg"),
        guard=guard,
        default_judge=judge,
        default_filter=output_filter,
    )


def _traces(trials: list[Trial], rows: Rows, settings: Settings) -> Iterator[Trace]:
    """Yield every trial's trace, with its stop under the headline's judge and filter as the funnel counts it."""
    judges, filters = settings.judge.variants, settings.filter.variants
    columns = read_columns(trials, languages=settings.languages, judges=judges, filters=filters)
    judge = default_judge(settings) if judges else NO_JUDGE
    output_filter = default_filter(settings) if filters else NO_FILTER
    stops = stop_of_each(passage(columns, judge, output_filter))
    for trial, stop in zip(trials, stops, strict=True):
        yield trace_of(trial, rows, stop=stop)


def _with_revision(model: RoleModel, manifest: Manifest) -> RoleModel:
    """Return the model with the revision that the run found, where the config pins none."""
    found = manifest.models.get(model.role, {}).get("revision", "")
    return msgspec.structs.replace(model, revision=model.revision or found)


def _settings_summary(settings: Settings, rows: Rows, manifest: Manifest) -> list[tuple[str, str]]:
    judge, generate = settings.judge, settings.generate
    return [
        ("corpus", f"{settings.corpus.source}, {len(rows.documents)} documents, {_data_kind(settings)}"),
        ("attack paraphrases", ", ".join(settings.queries.paraphrases)),
        ("queries by people", settings.queries.source or "none"),
        ("anchors protected during translation", str(settings.translate.protect_anchors).lower()),
        ("documents retrieved", retrieval_words(settings.retrieve, manifest.index_recall)),
        ("judge decision", judge.mode),
        (
            "judge false-positive rate aimed at",
            f"{judge.false_positive_rate:g} of English calibration controls",
        ),
        ("context of the judge `retrieved`", f"cut to {judge.context_tokens} tokens"),
        ("order of the generator's context", generate.context_order.replace("_", " ")),
        ("longest answer", f"{generate.max_tokens} tokens, greedy"),
        ("bootstrap", f"{settings.statistics.resamples} resamples of documents"),
        ("confidence", f"{settings.statistics.confidence:g}"),
    ]


def retrieval_words(retrieve: Retrieve, recall: RecallSummary | None) -> str:
    """Return what was retrieved and how, the recall of an approximate index with it."""
    words = [f"k = {retrieve.k}"]
    if retrieve.method != "dense":
        among = "all documents" if retrieve.candidates is None else f"{retrieve.candidates} dense candidates"
        words.append(f"ranked by the score {retrieve.method} among {among}")
    if recall is not None:
        measured = recall.not_evaluated
        if recall.recall is not None:
            measured = (
                f"{recall.recall:.3f} [{recall.low:.3f}, {recall.high:.3f}] of the exact {recall.k} best on "
                f"{recall.n_queries} queries ({recall.interval})"
            )
        words.append(f"index {recall.kind}, recall: {measured}")
    return "; ".join(words)


def _data_kind(settings: Settings) -> str:
    return "real personal data (masked here)" if settings.real_data else "synthetic personal data"


def _threshold_notes(paths: RunPaths, settings: Settings) -> list[str]:
    if settings.judge.mode != "margin":
        return []
    return [
        f"Judge {row.variant}: blocks when the log-odds of BLOCK exceed {row.threshold:g}, chosen on {row.n_benign} "
        f"benign English controls, of which it blocks {row.n_blocked}."
        if row.threshold is not None
        else f"Judge {row.variant}: no threshold, because none of its calibration controls was evaluated."
        for row in read_thresholds(paths.thresholds).values()
    ]


def _flags(tables: dict[str, pd.DataFrame], trials: list[Trial], manifest: Manifest) -> list[Flag]:
    flags = [_constant_flag(row) for row in _rows(tables["judges"]) if str(row["constant"]).lower() == "true"]
    flags += [_translation_flag(row) for row in _rows(tables["translation"]) if int(str(row["n_failed"])) > 0]
    missing = [trial for trial in trials if trial.not_evaluated is not None]
    if missing:
        flags.append(_missing_flag(missing))
    flags += [_stage_flag(stage) for stage in manifest.stages if stage.n_not_evaluated]
    return flags


def _rows(table: pd.DataFrame) -> list[dict[str, object]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _constant_flag(row: dict[str, object]) -> Flag:
    return Flag(
        severity="warning",
        title=f"CONSTANT judge: {row['judge_variant']} in {row['lang']}",
        text="It gives all controls of this language the same verdict, so its BLOCK rate says nothing about attacks.",
    )


def _translation_flag(row: dict[str, object]) -> Flag:
    return Flag(
        severity="warning",
        title=f"Failed translations into {row['lang']}: {row['n_failed']} of {row['n']}",
        text="These texts are empty, unchanged, cut off or in another language. They are asked as they are, "
        "never replaced by English, and marked in the trial table.",
    )


def _noise_floor(trials: list[Trial], settings: Settings) -> NoiseFloor:
    attacks = Counter((row.doc_id, row.lang, row.query_source) for row in trials if row.intent == "attack")
    return NoiseFloor(
        stages=tuple(_stage_noise(stage, settings) for stage in REPEATED_STAGES),
        most_attacks=max(attacks.values(), default=0),
        confidence=settings.statistics.confidence,
    )


def _stage_noise(stage: RepeatedStage, settings: Settings) -> StageNoise:
    backend = getattr(settings.roles, STAGE_ROLES[stage]).backend
    if repeats_calls(stage, settings):
        return StageNoise(stage=stage, backend=backend, state="measured")
    stable = plugin("llm", backend).bit_stable
    return StageNoise(stage=stage, backend=backend, state="deterministic" if stable else "off")


def _noise_flags(floor: NoiseFloor) -> list[Flag]:
    unknown = [one.stage for one in floor.stages if one.state == "off"]
    if not unknown:
        return []
    return [
        Flag(
            severity="warning",
            title=f"Noise floor not measured: {', '.join(unknown)}",
            text="These models may answer the same call otherwise when asked again, and noise.stages kept the run from "
            "measuring how often. A small difference from another run may be noise.",
        )
    ]


def _missing_flag(missing: list[Trial]) -> Flag:
    reasons = sorted({str(trial.not_evaluated) for trial in missing})
    return Flag(
        severity="error",
        title=f"{len(missing)} trials not evaluated",
        text=f"They are neither leaks nor non-leaks. Reasons: {'; '.join(reasons[:5])}.",
    )


def _stage_flag(stage: StageSummary) -> Flag:
    return Flag(
        severity="error",
        title=f"Stage {stage.stage}: {stage.n_not_evaluated} of {stage.n_expected} rows not evaluated",
        text="Calls that never came back were tried again and then given up; the same command fills exactly these.",
    )


def _provenance(manifest: Manifest) -> Provenance:
    return Provenance(
        versions=tuple(manifest.versions.items()),
        stages=tuple(_stage_count(stage) for stage in manifest.stages),
    )


def _stage_count(stage: StageSummary) -> StageCount:
    called = stage.calls.n_requests > 0
    return StageCount(
        stage=stage.stage,
        expected=stage.n_expected,
        actual=stage.n_actual,
        not_evaluated=stage.n_not_evaluated,
        calls=stage.calls.n_distinct if called else None,
        journal_hits=stage.calls.n_from_journal if called else None,
        wall_seconds=stage.wall_seconds,
        inside_share=stage.inside_share,
    )
