"""The user's own access log as traffic: JSONL or CSV with the same columns.

Columns: `time` (Unix seconds, or ISO 8601 with its offset), `user`, `collection`, `doc_ids`, `levels`; and where they
are known `query_id`, `kind` (benign, attacker, unlabelled) and `profile`. In JSONL `doc_ids` and `levels` are lists, in
CSV they are separated by `|`; there is one level a document.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from mragaudit.errors import DataError
from mragaudit.monitor.keys import user_hash
from mragaudit.monitor.queries import DEFAULT_TENANT
from mragaudit.records.replay import ActorKind, QueryEvent, SeenDocument

REQUIRED = ("time", "user", "collection", "doc_ids", "levels")
OPTIONAL = ("query_id", "kind", "profile")
LISTS = ("doc_ids", "levels")
SEPARATOR = "|"
PROFILE = "access_log"


def read_access_log(path: Path, *, sizes: Mapping[str, int], secret: bytes) -> list[QueryEvent]:
    """Return the queries of a log, users replaced by keyed hashes, in the order of their ids.

    `sizes` are documents a collection. Raises DataError naming file and line for a missing or unknown column, a time
    that is none, a number of levels other than of documents, or a query id that comes twice.
    """
    events: dict[str, QueryEvent] = {}
    for number, row in _rows(path):
        try:
            event = _event(row, number=number, sizes=sizes, secret=secret)
            if event.query_id in events:
                raise DataError("this query_id stands in an earlier line; ids are unique")
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from error
        events[event.query_id] = event
    if not events:
        raise DataError(f"{path}: no queries; every line is one query with the columns {', '.join(REQUIRED)}")
    return sorted(events.values(), key=lambda one: one.query_id)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = {".jsonl": _jsonl_rows, ".csv": _csv_rows}.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path}: an access log ends in .jsonl or .csv")
    try:
        yield from reader(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not readable as UTF-8 ({error.reason})") from error


def _jsonl_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with path.open(encoding="utf-8", newline="\n") as handle:
        for number, line in enumerate(handle, start=1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}, line {number}: no JSON ({error})") from error
            if not isinstance(row, dict):
                raise DataError(f"{path}, line {number}: a line is one JSON object, not a {type(row).__name__}")
            yield number, row


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as handle:
        reader = csv.DictReader(handle, strict=True)
        try:
            for row in reader:
                given = {str(name): value for name, value in row.items() if value not in (None, "")}
                lists = {name: _parts(given.get(name)) for name in LISTS if name in row}
                yield reader.line_num, {**given, **lists}
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: no CSV ({error})") from error


def _parts(cell: Any) -> list[str]:
    return str(cell).split(SEPARATOR) if cell else []


def _event(row: Mapping[str, Any], *, number: int, sizes: Mapping[str, int], secret: bytes) -> QueryEvent:
    _check_columns(row)
    collection = _text(row, "collection")
    actor = user_hash(secret, tenant=DEFAULT_TENANT, user=_text(row, "user"))
    kind = row.get("kind", "unlabelled")
    if kind not in get_args(ActorKind):
        raise DataError(f'kind is "{kind}"; it is one of {", ".join(get_args(ActorKind))}')
    return QueryEvent(
        query_id=str(row.get("query_id") or f"line-{number:09d}"),
        actor=actor,
        user=actor,
        group=collection,
        kind=kind,
        profile=str(row.get("profile") or PROFILE),
        lang=None,
        time=_time(row["time"]),
        collection_size=sizes.get(collection),
        documents=_documents(row),
    )


def _check_columns(row: Mapping[str, Any]) -> None:
    missing = [name for name in REQUIRED if name not in row]
    if missing:
        raise DataError(f'column "{missing[0]}" is missing; required are {", ".join(REQUIRED)}')
    unknown = [name for name in row if name not in (*REQUIRED, *OPTIONAL)]
    if unknown:
        raise DataError(f'column "{unknown[0]}" is unknown; allowed are {", ".join((*REQUIRED, *OPTIONAL))}')


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if not isinstance(value, str) or not value:
        found = "empty" if value == "" else type(value).__name__  # an id may be personal: it is not shown
        raise DataError(f"{name} is {found}; it must be a non-empty string")
    return value


def _time(value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = _iso_seconds(value)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise DataError(f"time is {value!r}; it must be Unix seconds of at least 0")
    return seconds


def _iso_seconds(value: Any) -> float:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise DataError(f"time is {value!r}; it must be Unix seconds or ISO 8601") from None
    if moment.tzinfo is None:
        raise DataError(f"time is {value!r}, without an offset from UTC; write +00:00 or Z behind it")
    return moment.timestamp()


def _documents(row: Mapping[str, Any]) -> tuple[SeenDocument, ...]:
    doc_ids, levels = row["doc_ids"], row["levels"]
    if not isinstance(doc_ids, list) or not isinstance(levels, list):
        raise DataError("doc_ids and levels must be lists")
    if len(doc_ids) != len(levels):
        raise DataError(f"{len(doc_ids)} doc_ids and {len(levels)} levels; there is one level a document")
    return tuple(SeenDocument(str(one), str(level), False) for one, level in zip(doc_ids, levels, strict=True))
