"""What every kind of bundle is checked with: one finding a check, rows read by their schema, stages run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec

from mragaudit.bundle.contents import is_current, own_part, required_files
from mragaudit.bundle.names import RESOURCES, RESULTS
from mragaudit.config import Settings, load_settings
from mragaudit.errors import DataError, MragauditError
from mragaudit.records.base import Record, encode_record, read_records
from mragaudit.stages.manifest import StageSummary, read_jobs, read_manifest
from mragaudit.stages.opening import Opened
from mragaudit.stages.reruns import Source, rerun

State = Literal["ok", "failed", "not compared", "not run"]
RowKinds = Mapping[str, tuple[type[Record], Callable[[Any], str]]]
"""First part of a file's name below the folder of results, or its folder, or its name → its rows and their key."""

SHOWN = 8
"""Faults of one check that are named; the rest is counted."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    state: State
    detail: str
    """What was looked at, or why it was not."""
    faults: tuple[str, ...] = ()


def check_of(name: str, faults: Iterable[str], *, detail: str) -> Check:
    """Return a check that fails where there is any fault; the first ones are named, the rest is counted."""
    found = list(faults)
    shown = found[:SHOWN]
    if len(found) > SHOWN:
        shown.append(f"and {len(found) - SHOWN} more")
    return Check(name=name, state="failed" if found else "ok", detail=detail, faults=tuple(shown))


def not_run(name: str, why: str) -> Check:
    """Return a check that had nothing to look at."""
    return Check(name=name, state="not run", detail=why)


def missing_files(opened: Opened) -> Iterator[str]:
    """Yield required files that are not there."""
    there = set(opened.results())
    for name in required_files(opened.settings, kind=opened.kind):
        if name not in there:
            yield f"{opened.root}/{name}: missing"


def foreign_files(opened: Opened) -> Iterator[str]:
    """Yield files among the results that a bundle of this run does not have."""
    for name in opened.digests:
        if name.startswith(f"{RESULTS}/") and not name.startswith(f"{opened.root}/"):
            yield f"{name}: belongs to another run"
    for name in opened.results():
        if not is_current(name, opened.settings, kind=opened.kind):
            yield f"{opened.root}/{name}: no stage of this run writes it"


def check_rows(opened: Opened, kinds: RowKinds, *, others: Mapping[str, Callable[[], object]]) -> Check:
    """Return the check of all rows by their schema; `others` reads what else is JSON, by name."""
    counts: Counter[str] = Counter()
    found = check_of("rows", _row_faults(opened, kinds, counts=counts, others=others), detail="")
    return msgspec.structs.replace(found, detail=f"{counts.total()} rows, each of its schema")


def _row_faults(
    opened: Opened, kinds: RowKinds, *, counts: Counter[str], others: Mapping[str, Callable[[], object]]
) -> Iterator[str]:
    for name in sorted(opened.results()):
        if not name.endswith(".jsonl"):
            continue
        try:
            counts[name] = _n_rows(opened.paths.root / name, name, kinds=kinds)
        except DataError as error:
            yield str(error)
    readers: dict[str, Callable[[], object]] = {
        **others,
        "metrics": lambda: read_jobs(opened.paths.root, opened.settings),
    }
    for name, read in readers.items():
        try:
            read()
        except (OSError, ValueError, msgspec.DecodeError, DataError) as error:
            yield f"{opened.root}/{name}: {error}"


def _n_rows(path: Path, name: str, *, kinds: RowKinds) -> int:
    """Return the rows of a file, all of one kind and, below a variant, of that variant."""
    first, *rest = name.split("/")
    found = kinds.get(name) or kinds.get(first) or kinds.get(name.rpartition("/")[0])
    if found is None:
        raise DataError(f"{path}: no stage of this version writes such rows")
    kind, key = found
    rows = read_records(path, kind, key=key)
    _require_our_bytes(path, rows, keys=[key(row) for row in rows])
    variant = rest[0] if len(rest) > 1 and first in kinds else None
    for number, row in enumerate(rows, start=1):
        if variant is not None and getattr(row, "variant", variant) != variant:
            raise DataError(f"{path}, line {number}: it is a row of another variant")
    return len(rows)


def _require_our_bytes(path: Path, rows: Sequence[Record], *, keys: Sequence[str]) -> None:
    """Raise DataError for a row that no stage writes so, or not there.

    JSON may name a field twice: another reader than ours would then show another text than was checked.
    """
    with path.open("rb") as handle:
        for number, (line, row) in enumerate(zip(handle, rows, strict=True), start=1):
            if line != encode_record(row) + b"\n":
                raise DataError(f"{path}, line {number}: its bytes are not those that a stage writes for this row")
    for number, (before, after) in enumerate(pairwise(keys), start=2):
        if after < before:
            raise DataError(f"{path}, line {number}: {after} stands behind {before}; stages write rows by their ids")


def count_faults(stage: StageSummary, *, rows: int, lost: int | None) -> Iterator[str]:
    """Yield what the manifest counts otherwise than there is; `lost` is None where rows never lack an answer."""
    if stage.n_actual != rows:
        yield f"{stage.stage}: the manifest counts {stage.n_actual} rows, here are {rows}"
    if lost is not None and stage.n_not_evaluated != lost:
        yield f"{stage.stage}: the manifest counts {stage.n_not_evaluated} rows not evaluated, here are {lost}"


def source_of(opened: Opened) -> Source:
    """Return the unpacked run as its stages see it."""
    places = {"resources": str(opened.folder / RESOURCES)}
    settings = opened.settings.model_copy(update=places)
    try:
        given = own_part(read_manifest(opened.paths.manifest).settings, kind=opened.kind)
        original = load_settings(given).model_copy(update=places)
    except MragauditError:
        original = settings  # the check of the manifest has named it
    return Source(
        paths=opened.paths,
        settings=_with_inputs(opened, settings),
        report_settings=original,
        description=opened.description,
    )


def _with_inputs(opened: Opened, settings: Settings) -> Settings:
    """Return settings whose inputs are the copies in the unpacked bundle."""
    for one in opened.kind.inputs:
        section = getattr(settings, one.section)
        value = getattr(section, one.key)
        if value not in (None, one.no_file):
            changed = section.model_copy(update={one.key: str(opened.folder / value)})
            settings = settings.model_copy(update={one.section: changed})
    return settings


def check_again(stage: str, source: Source, *, folder: Path) -> Check:
    """Return how a stage, run again into a folder of its own, compares with the bundle's files."""
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
    return check_of(f"{stage} again", done.differences, detail=f"{made}{changed}")
