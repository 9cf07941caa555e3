"""Reading and writing of records: one JSON object a line, checked on the way in, stable on the way out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from mragaudit.errors import DataError, StorageError

R = TypeVar("R", bound="Record")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="record"):
    """Base of all rows that cross a stage boundary; the tag carries the record's name and schema version."""


def encode_record(record: Record) -> bytes:
    """Return one line of JSON without its newline; the same record always gives the same bytes."""
    return msgspec.json.encode(record, order="deterministic")


def iter_records(path: Path, kind: type[R]) -> Iterator[R]:
    """Yield the rows of a JSONL file in file order.

    Lines end at the newline character alone: other Unicode line separators may stand inside a text.
    Raises DataError, naming file and line, for a missing file, a blank or torn line, or a row that is not `kind`.
    """
    decoder = msgspec.json.Decoder(kind)
    try:
        handle = path.open("rb")
    except FileNotFoundError as error:
        raise DataError(f"{path}: this file is missing; run the stage that writes it") from error
    with handle:
        for number, line in enumerate(handle, start=1):
            yield _decode_line(line, decoder, path=path, number=number)


def _decode_line(line: bytes, decoder: msgspec.json.Decoder[R], *, path: Path, number: int) -> R:
    if not line.endswith(b"\n"):
        raise DataError(f"{path}, line {number}: the file ends inside a line; it was truncated or is half written")
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}, line {number}: {error}") from error


def read_records(path: Path, kind: type[R], *, key: Callable[[R], str]) -> list[R]:
    """Return all rows of a file; raises DataError when two rows share a key (both lines are named)."""
    rows: list[R] = []
    seen: dict[str, int] = {}
    for number, row in enumerate(iter_records(path, kind), start=1):
        name = key(row)
        if name in seen:
            raise DataError(f'{path}, line {number}: "{name}" stands already at line {seen[name]}; ids are unique')
        seen[name] = number
        rows.append(row)
    return rows


def read_shards(paths: Iterable[Path], kind: type[R], *, key: Callable[[R], str]) -> list[R]:
    """Return the rows of several files sorted by key; raises DataError when a key stands in two of them."""
    rows: dict[str, R] = {}
    origin: dict[str, Path] = {}
    for path in paths:
        for row in read_records(path, kind, key=key):
            name = key(row)
            if name in rows:
                raise DataError(f'{path}: "{name}" stands in {origin[name]} as well; every id belongs to one shard')
            rows[name] = row
            origin[name] = path
    return [rows[name] for name in sorted(rows)]


def write_records(path: Path, rows: Iterable[Record], *, key: Callable[[R], str]) -> None:
    """Write the rows sorted by key to a temporary name, then rename: readers see all rows or none."""
    ordered = sorted(rows, key=key)  # type: ignore[arg-type]  # rows and key belong to one kind
    write_bytes(path, b"".join(encode_record(row) + b"\n" for row in ordered))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file in one step (temporary name, fsync, rename).

    Raises StorageError when the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(
            f"{path}: cannot be written ({error.strerror}); free or grant space there and run the same command again"
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text in one step, lines ending in a bare newline."""
    write_bytes(path, text.encode("utf-8"))
