"""A user's JSONL or CSV file as checked rows: every complaint names file and line, never the content."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mragaudit.errors import DataError, did_you_mean

_BOM = b"\xef\xbb\xbf"
_JSONL, _CSV = (".jsonl", ".ndjson"), (".csv",)
_SHOWN_CHARS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row of a file."""

    path: Path
    line: int
    """1-based line on which the row begins."""
    cells: dict[str, object] = field(repr=False)
    """Column → value; a cell that is empty in CSV or null in JSONL is absent."""

    def error(self, problem: str) -> DataError:
        """Return the error that names file and line."""
        return DataError(f"{self.path}, line {self.line}: {problem}")

    def text(self, column: str) -> str:
        """Return a text that is not blank; raises DataError for a missing, blank or other value."""
        value = self.optional(column)
        if value is None or not value.strip():
            raise self.error(f'"{column}" is missing or empty; every row needs it')
        return value

    def optional(self, column: str) -> str | None:
        """Return a text, or None where the row has none; raises DataError for a value that is no text."""
        value = self.cells.get(column)
        if value is not None and not isinstance(value, str):
            raise self.error(f'"{column}" is {_kind(value)}; it has to be a text in quotes')
        return value

    def choice(self, column: str, allowed: Iterable[str]) -> str:
        """Return a text that is one of the allowed ones."""
        value, names = self.text(column), list(allowed)
        if value not in names:
            raise self.error(f'"{column}" has an unknown value; {did_you_mean(value, names)}')
        return value


def shown(text: str) -> str:
    """Return a short text in quotes for a message, with control and format characters escaped."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


def read_rows(path: Path, *, csv_columns: Sequence[str], jsonl_columns: Sequence[str]) -> list[Row]:
    """Return the rows of a UTF-8 file in file order; its ending says whether it is JSONL or CSV.

    Both column arguments list what may stand in a file of that format. A byte order mark and blank lines are
    passed over. Raises DataError, naming file and line, for a file that is missing, empty, not UTF-8, of
    another kind, or has an unknown column.
    """
    suffix = path.suffix.lower()
    if suffix not in (*_JSONL, *_CSV):
        raise DataError(f'{path}: the ending "{suffix}" is unknown; the file has to be .jsonl or .csv')
    content = _content(path)
    rows = list(
        _csv_rows(path, content, columns=csv_columns)
        if suffix in _CSV
        else _jsonl_rows(path, content, columns=jsonl_columns)
    )
    if not rows:
        raise DataError(f"{path}: the file holds no row; it needs at least one")
    return rows


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes().removeprefix(_BOM)
    except FileNotFoundError as error:
        raise DataError(f"{path}: this file is missing; correct the path in the config") from error
    except OSError as error:
        raise DataError(f"{path}: this file cannot be read ({error.strerror})") from error
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}: byte {error.start + 1} of the line (0x{line[error.start]:02X}) "
                "is not UTF-8; save the file in the encoding UTF-8"
            ) from error
    return content


def _jsonl_rows(path: Path, content: bytes, *, columns: Sequence[str]) -> Iterator[Row]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        where = Row(path=path, line=number, cells={})
        try:
            value = msgspec.json.decode(line)
            _require_single_keys(line, where)
        except (msgspec.DecodeError, RecursionError) as error:
            raise where.error(f"this is no valid JSON ({error}); one object has to stand on each line") from error
        if not isinstance(value, dict):
            raise where.error(f"this is {_kind(value)}; one object in braces has to stand on each line")
        for name in value:
            if name not in columns:
                raise where.error(f"the key {shown(name)} is unknown; {did_you_mean(name, columns)}")
        yield Row(path=path, line=number, cells={name: cell for name, cell in value.items() if cell is not None})


def _require_single_keys(line: bytes, where: Row) -> None:
    """Raise an error for a key that stands twice, of which a JSON reader keeps the last without a word."""

    def as_dict(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise where.error("a key stands twice in an object; names are unique")
        return found

    json.loads(line, object_pairs_hook=as_dict, parse_int=str, parse_float=str)


def _csv_rows(path: Path, content: bytes, *, columns: Sequence[str]) -> Iterator[Row]:
    with _any_field_size(len(content)):
        reader = csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)
        header: list[str] | None = None
        line = 1
        try:
            for cells in reader:
                where = Row(path=path, line=line, cells={})
                line = reader.line_num + 1
                if not cells:
                    continue
                if header is None:
                    header = _header(where, cells, columns=columns)
                    continue
                yield _csv_row(where, cells, header=header)
        except csv.Error as error:
            raise Row(path=path, line=line, cells={}).error(
                f"this is no valid CSV ({error}); check the quotes of the row that begins here"
            ) from error


def _header(where: Row, cells: list[str], *, columns: Sequence[str]) -> list[str]:
    if len(cells) == 1 and ";" in cells[0]:
        raise where.error("the columns are separated by semicolons; separate them by commas")
    names = [cell.strip() for cell in cells]
    for position, name in enumerate(names, start=1):
        if name not in columns:
            # Its name stays out of the message: a file without a header has a row of data here.
            raise where.error(f"column {position} of the header is unknown; {did_you_mean(name, columns)}")
    if len(set(names)) < len(names):
        raise where.error("a column stands in the header twice; names are unique")
    return names


def _csv_row(where: Row, cells: list[str], *, header: list[str]) -> Row:
    if len(cells) != len(header):
        raise where.error(
            f"the row has {len(cells)} cells and the header {len(header)}; "
            "put a text with commas, quotes or line ends in quotes"
        )
    filled: dict[str, object] = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
    return Row(path=where.path, line=where.line, cells=filled)


@contextmanager
def _any_field_size(size: int) -> Iterator[None]:
    """Lift the csv module's limit on the length of a cell, which is global, for as long as a file is read."""
    before = csv.field_size_limit(max(size, 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def require_columns(rows: Sequence[Row], names: Iterable[str]) -> None:
    """Raise DataError when no row at all has a column: it was forgotten, not left empty once."""
    for name in names:
        if not any(name in row.cells for row in rows):
            first = rows[0]
            raise DataError(f'{first.path}, line {first.line}: the column "{name}" is missing; every row needs it')


def _kind(value: object) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number"),
        (str, "a text"),
        (list, "a list"),
        (dict, "an object"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")
