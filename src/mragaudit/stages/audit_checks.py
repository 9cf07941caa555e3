"""Whether the rows of an audit's bundle are whole, fit together, and come out again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mragaudit.errors import DataError
from mragaudit.index.base import SIDECAR_FILE, Sidecar
from mragaudit.judges.margins import Threshold
from mragaudit.paths import RunPaths
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import BackTranslation, Query, Translation, query_key, translation_key
from mragaudit.records.repeats import RepeatPair, pair_key
from mragaudit.records.results import Filtered, Generation, Judgement, Retrieval, judgement_key, trial_key
from mragaudit.records.trials import Trial, trial_row_key
from mragaudit.stages.checking import (
    Check,
    RowKinds,
    check_again,
    check_of,
    check_rows,
    count_faults,
    missing_files,
    not_run,
    source_of,
)
from mragaudit.stages.consistency import contradictions, missing_rows
from mragaudit.stages.manifest import Manifest, read_manifest
from mragaudit.stages.opening import Opened
from mragaudit.stages.rows import Rows, inputs_of, read_rows

ROWS: RowKinds = {
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


def audit_checks(opened: Opened, again: Path, *, stages: Sequence[str]) -> Iterator[Check]:
    """Yield the checks of rows, each only where those before it leave something to look at."""
    schema = check_rows(
        opened,
        ROWS,
        others={
            "judgements/thresholds.json": lambda: _thresholds(opened.paths),
            f"index/{SIDECAR_FILE}": lambda: _indexed(opened.paths.root / "index" / SIDECAR_FILE),
        },
    )
    yield schema
    if schema.faults or any(missing_files(opened)):
        why = "rows cannot be read" if schema.faults else "files are missing"
        yield from (not_run(name, why) for name in ("counts", "consistency", *stages))
        return
    inputs = inputs_of(opened.paths.root, opened.settings)
    rows = read_rows(inputs)
    complete = check_of(
        "counts", _faults_of_counts(opened, rows), detail="rows of every stage against queries and manifest"
    )
    yield complete
    if any(missing_rows(rows, inputs, settings=opened.settings)):
        yield from (not_run(name, "rows are missing") for name in ("consistency", *stages))
        return
    thresholds = _thresholds(opened.paths)
    source = source_of(opened)
    faults = contradictions(rows, {row.variant: row for row in thresholds}, settings=source.settings)
    yield check_of("consistency", faults, detail="rows of every stage against those before it")
    yield from (check_again(stage, source, folder=again / stage) for stage in stages)


def _thresholds(paths: RunPaths) -> list[Threshold]:
    return msgspec.json.decode(paths.thresholds.read_bytes(), type=list[Threshold])


def _indexed(path: Path) -> tuple[str, ...]:
    """Return the documents of the index, none where the bundle has no index; its vectors are not opened."""
    return msgspec.json.decode(path.read_bytes(), type=Sidecar).doc_ids if path.is_file() else ()


def _faults_of_counts(opened: Opened, rows: Rows) -> Iterator[str]:
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
            rows_of_stage = held[stage.stage]
            lost = sum(getattr(row, "not_evaluated", None) is not None for row in rows_of_stage)
            known = None if stage.stage in ("retrieve", "index") else lost
            yield from count_faults(stage, rows=len(rows_of_stage), lost=known)
