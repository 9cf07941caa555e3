"""Checking a bundle that somebody sent: nothing in it is believed, executed or unpickled."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from mragaudit.bundle.archive import LIMITS, Limits
from mragaudit.bundle.checksums import root_digest
from mragaudit.bundle.contents import (
    audit_part,
    is_current,
    required_files,
    run_folder,
    without_places,
)
from mragaudit.bundle.names import CHECKSUMS, CONFIG, RESOURCES
from mragaudit.config import load_settings
from mragaudit.errors import ArchiveError, DataError, MragauditError
from mragaudit.index.base import SIDECAR_FILE, Sidecar
from mragaudit.judges.margins import Threshold
from mragaudit.paths import RunPaths
from mragaudit.records.base import Record, read_records
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import BackTranslation, Query, Translation, query_key, translation_key
from mragaudit.records.repeats import RepeatPair, pair_key
from mragaudit.records.results import Filtered, Generation, Judgement, Retrieval, judgement_key, trial_key
from mragaudit.records.trials import Trial, trial_row_key
from mragaudit.stages.bundle import REVIEWED
from mragaudit.stages.consistency import contradictions, missing_rows
from mragaudit.stages.manifest import Manifest, StageSummary, read_jobs, read_manifest
from mragaudit.stages.opening import Opened, checksum_faults, open_bundle
from mragaudit.stages.reruns import Source, rerun
from mragaudit.stages.rows import Rows, inputs_of, read_rows

State = Literal["ok", "failed", "not compared", "not run"]

SHOWN = 8
"""Faults of one check that are named; the rest is counted."""
KINDS: dict[str, tuple[type[Record], Callable[[Any], str]]] = {
    "corpus": (Document, document_key),
    "queries": (Query, query_key),
    "translations": (Translation, translation_key),
    "backtranslations": (BackTranslation, translation_key),
    "retrieval": (Retrieval, trial_key),
    "judgements": (Judgement, trial_key),
    "generations": (Generation, trial_key),
    "filtered": (Filtered, trial_key),
    "repeats/translate": (Translation, translation_key),
    "repeats/backtranslate": (BackTranslation, translation_key),
    "repeats/judge": (Judgement, judgement_key),
    "repeats/generate": (Generation, trial_key),
    "trials.jsonl": (Trial, trial_row_key),
    "noise.jsonl": (RepeatPair, pair_key),
}
"""First part of a file's name below the run's folder, or its folder → its rows and their key."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    state: State
    detail: str
    """What was looked at, or why it was not."""
    faults: tuple[str, ...] = ()


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a bundle now."""

    run: str
    made_with: str
    """Version of mragaudit that made the bundle."""
    digest: str
    """Root digest, to be held against the one in the paper."""
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed; what could not be compared is no failure and is named."""
        return all(check.state in ("ok", "not compared") for check in self.checks)


def verify_bundle(
    path: Path, *, expect: str | None = None, limits: Limits = LIMITS, stages: Sequence[str] = REVIEWED
) -> Verification:
    """Return all checks of a bundle; `stages` are run again.

    Raises ArchiveError for an archive that cannot be used at all: hostile, damaged, or no bundle of this version.
    """
    with tempfile.TemporaryDirectory(prefix="mragaudit-verify-") as name:
        folder = Path(name) / "bundle"
        folder.mkdir()
        opened = open_bundle(path, folder, limits=limits)
        digest = root_digest((folder / CHECKSUMS).read_bytes())
        try:
            checks = [
                *_first_checks(opened, digest, expect=expect),
                *_row_checks(opened, Path(name) / "again", stages=stages),
            ]
        except RecursionError as error:
            raise ArchiveError(f"{path}: its JSON is nested deeper than any of ours") from error
        cleaned = tuple(_without_folder(check, f"{folder}/") for check in checks)
    made_with = opened.description.versions.get("mragaudit", "unknown")
    return Verification(run=opened.settings.run, made_with=made_with, digest=digest, checks=cleaned)


def _without_folder(check: Check, folder: str) -> Check:
    faults = tuple(fault.replace(folder, "") for fault in check.faults)
    return msgspec.structs.replace(check, faults=faults, detail=check.detail.replace(folder, ""))


def _check(name: str, faults: Iterable[str], *, detail: str) -> Check:
    """Return a check that fails where there is any fault; the first ones are named, the rest is counted."""
    found = list(faults)
    shown = found[:SHOWN]
    if len(found) > SHOWN:
        shown.append(f"and {len(found) - SHOWN} more")
    return Check(name=name, state="failed" if found else "ok", detail=detail, faults=tuple(shown))


def _first_checks(opened: Opened, digest: str, *, expect: str | None) -> Iterator[Check]:
    if expect is not None:
        wrong = [] if expect.strip().lower() == digest else [f"the root digest is {digest}, expected was {expect}"]
        yield _check("root digest", wrong, detail="as expected" if not wrong else "another")
    yield _check("checksums", checksum_faults(opened), detail=f"{len(opened.digests)} files")
    yield _check("files", _missing_files(opened), detail=f"all of run {opened.settings.run}")
    yield _check("manifest", _manifest_faults(opened), detail="config and sha256 of every result")


def _missing_files(opened: Opened) -> Iterator[str]:
    there = set(opened.results())
    for name in required_files(opened.settings):
        if name not in there:
            yield f"{run_folder(opened.settings)}/{name}: missing"
    prefix = f"{run_folder(opened.settings)}/"
    for name in opened.digests:
        if name.startswith("results/") and not name.startswith(prefix):
            yield f"{name}: belongs to another run"


def _manifest_faults(opened: Opened) -> Iterator[str]:
    try:
        manifest = read_manifest(opened.paths.manifest)
    except DataError as error:
        yield str(error)
        return
    if manifest.run != opened.settings.run or without_places(manifest.settings) != without_places(opened.config):
        changed = _changed_keys(without_places(manifest.settings), without_places(opened.config))
        yield f"manifest.json: its settings are not those of {CONFIG}: {', '.join(changed) or 'run'}"
    prefix = run_folder(opened.settings)
    for name, digest in manifest.files.items():
        found = opened.digests.get(f"{prefix}/{name}")
        if found is None and is_current(name, opened.settings):
            yield f"{prefix}/{name}: listed in the manifest and missing"
        elif found is not None and found != digest:
            yield f"{prefix}/{name}: its bytes are not those that the manifest lists"


def _changed_keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _row_checks(opened: Opened, again: Path, *, stages: Sequence[str]) -> Iterator[Check]:
    """Yield the checks of rows, each only where those before it leave something to look at."""
    counts: Counter[str] = Counter()
    schema = _check("rows", _row_faults(opened, counts), detail="")
    yield msgspec.structs.replace(schema, detail=f"{counts.total()} rows, each of its schema")
    if schema.faults or any(_missing_files(opened)):
        why = "rows cannot be read" if schema.faults else "files are missing"
        yield from (_not_run(name, why) for name in ("counts", "consistency", *stages))
        return
    inputs = inputs_of(opened.paths.root, opened.settings)
    rows = read_rows(inputs)
    complete = _check("counts", _count_faults(opened, rows), detail="rows of every stage against queries and manifest")
    yield complete
    if any(missing_rows(rows, inputs, settings=opened.settings)):
        yield from (_not_run(name, "rows are missing") for name in ("consistency", *stages))
        return
    thresholds = _thresholds(opened.paths)
    source = _source(opened)
    faults = contradictions(rows, {row.variant: row for row in thresholds}, settings=source.settings)
    yield _check("consistency", faults, detail="rows of every stage against those before it")
    yield from (_rerun(stage, source, folder=again / stage) for stage in stages)


def _not_run(name: str, why: str) -> Check:
    return Check(name=name, state="not run", detail=why)


def _row_faults(opened: Opened, counts: Counter[str]) -> Iterator[str]:
    for name in sorted(opened.results()):
        if not name.endswith(".jsonl"):
            continue
        try:
            counts[name] = _n_rows(opened.paths.root / name, name)
        except DataError as error:
            yield str(error)
    yield from _json_faults(opened)


def _n_rows(path: Path, name: str) -> int:
    """Return the rows of a file, all of one kind and, below a variant, of that variant."""
    first, *rest = name.split("/")
    found = KINDS.get(first) or KINDS.get(name.rpartition("/")[0])
    if found is None:
        raise DataError(f"{path}: no stage of this version writes such rows")
    kind, key = found
    rows = read_records(path, kind, key=key)
    variant = rest[0] if len(rest) > 1 and first in KINDS else None
    for number, row in enumerate(rows, start=1):
        if variant is not None and getattr(row, "variant", variant) != variant:
            raise DataError(f"{path}, line {number}: it is a row of another variant")
    return len(rows)


def _json_faults(opened: Opened) -> Iterator[str]:
    """Yield what is wrong with thresholds, what jobs measured, and the list of indexed documents."""
    readers: dict[str, Callable[[], object]] = {
        "judgements/thresholds.json": lambda: _thresholds(opened.paths),
        "metrics": lambda: read_jobs(opened.paths.root),
        f"index/{SIDECAR_FILE}": lambda: _indexed(opened.paths.root / "index" / SIDECAR_FILE),
    }
    for name, read in readers.items():
        try:
            read()
        except (OSError, ValueError, msgspec.DecodeError) as error:
            yield f"{run_folder(opened.settings)}/{name}: {error}"


def _thresholds(paths: RunPaths) -> list[Threshold]:
    return msgspec.json.decode(paths.thresholds.read_bytes(), type=list[Threshold])


def _indexed(path: Path) -> tuple[str, ...]:
    """Return the documents of the index, none where the bundle has no index; its vectors are not opened."""
    return msgspec.json.decode(path.read_bytes(), type=Sidecar).doc_ids if path.is_file() else ()


def _count_faults(opened: Opened, rows: Rows) -> Iterator[str]:
    yield from missing_rows(rows, inputs_of(opened.paths.root, opened.settings), settings=opened.settings)
    indexed = _indexed(opened.paths.root / "index" / SIDECAR_FILE)
    if indexed and sorted(indexed) != sorted(rows.documents):
        yield "index: its documents are not those of the corpus"
    try:
        manifest = read_manifest(opened.paths.manifest)
    except DataError:
        return  # named by the check of the manifest
    yield from _summary_faults(manifest, rows)


def _summary_faults(manifest: Manifest, rows: Rows) -> Iterator[str]:
    """Yield stages of which the manifest counts other rows, or other rows without an answer, than there are."""
    judged = [row for variant in rows.judgements.values() for row in variant.values()]
    held: dict[str, list[Any]] = {
        "translate": list(rows.translations.values()),
        "backtranslate": list(rows.backtranslations.values()),
        "retrieve": list(rows.retrieval.values()),
        "judge": judged,
        "generate": list(rows.generations.values()),
        "index": list(rows.documents.values()),
    }
    for stage in manifest.stages:
        if stage.stage in held:
            yield from _stage_faults(stage, held[stage.stage])


def _stage_faults(stage: StageSummary, rows: list[Any]) -> Iterator[str]:
    if stage.n_actual != len(rows):
        yield f"{stage.stage}: the manifest counts {stage.n_actual} rows, here are {len(rows)}"
    lost = sum(getattr(row, "not_evaluated", None) is not None for row in rows)
    if stage.stage not in ("retrieve", "index") and stage.n_not_evaluated != lost:
        yield f"{stage.stage}: the manifest counts {stage.n_not_evaluated} rows not evaluated, here are {lost}"


def _source(opened: Opened) -> Source:
    """Return the unpacked run as its stages see it."""
    places = {"resources": str(opened.folder / RESOURCES)}
    settings = opened.settings.model_copy(update=places)
    corpus, asked = settings.corpus, settings.queries
    if corpus.source != "synthetic":
        corpus = corpus.model_copy(update={"source": str(opened.folder / corpus.source)})
    if asked.source is not None:
        asked = asked.model_copy(update={"source": str(opened.folder / asked.source)})
    try:
        original = load_settings(audit_part(read_manifest(opened.paths.manifest).settings)).model_copy(update=places)
    except MragauditError:
        original = settings  # the check of the manifest has named it
    return Source(
        paths=opened.paths,
        settings=settings.model_copy(update={"corpus": corpus, "queries": asked}),
        report_settings=original,
        description=opened.description,
    )


def _rerun(stage: str, source: Source, *, folder: Path) -> Check:
    folder.mkdir(parents=True)
    try:
        done = rerun(stage, source, folder=folder)
    except Exception as error:  # a stage may fail in any way on rows that somebody made up: that is a finding
        fault = f"{stage}: it cannot be run again: {type(error).__name__}: {error}"
        return Check(name=f"{stage} again", state="failed", detail="", faults=(fault,))
    made = f"{done.n_files} {'file' if done.n_files == 1 else 'files'}"
    if not done.differences:
        return Check(name=f"{stage} again", state="ok", detail=f"{made}, byte by byte")
    changed = f" ({'; '.join(done.other_makers)})" if done.other_makers else ""
    if done.excused:
        detail = f"{len(done.differences)} of {made} come out otherwise{changed}"
        return Check(name=f"{stage} again", state="not compared", detail=detail)
    return _check(f"{stage} again", done.differences, detail=f"{made}{changed}")
