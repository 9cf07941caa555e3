"""Records are checked line by line on the way in and written whole or not at all."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from mragaudit.errors import DataError, StorageError
from mragaudit.records.base import Record, iter_records, read_records, read_shards, write_bytes, write_records

CASES = Path(__file__).parents[1] / "golden" / "field_cases.jsonl"


class Row(Record, frozen=True, kw_only=True, tag="row/1"):
    """A row as small as they come."""

    id: str
    out: str = ""


def _key(row: Row) -> str:
    return row.id


def _line(name: str, out: str = "") -> str:
    return json.dumps({"record": "row/1", "id": name, "out": out}, ensure_ascii=False) + "\n"


def _file(path: Path, *lines: str) -> Path:
    path.write_bytes("".join(lines).encode("utf-8", "surrogatepass"))
    return path


def _error(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_records(path, Row, key=_key)
    return str(caught.value)


def test_unicode_line_separators_inside_a_text_end_no_line(tmp_path: Path) -> None:
    """FC-JSONL-01."""
    lines = CASES.read_text(encoding="utf-8").split("\n")
    (case,) = [case for case in map(json.loads, filter(None, lines)) if case["id"] == "FC-JSONL-01"]
    text = case["input"]["text"].replace('{"id"', '{"record":"row/1","id"')
    rows = list(iter_records(_file(tmp_path / "r.jsonl", text), Row))
    assert [{"id": row.id, "out": row.out} for row in rows] == case["expected"]["records"]


def test_rows_are_written_sorted_and_read_back(tmp_path: Path) -> None:
    hostile = "\u2028\u0085\x00\u202e</script>\r\n"
    write_records(tmp_path / "new" / "r.jsonl", [Row(id="b", out=hostile), Row(id="a")], key=_key)
    assert read_records(tmp_path / "new" / "r.jsonl", Row, key=_key) == [Row(id="a"), Row(id="b", out=hostile)]


def test_an_empty_file_holds_no_rows(tmp_path: Path) -> None:
    assert read_records(_file(tmp_path / "r.jsonl"), Row, key=_key) == []


def test_a_missing_file_says_which_stage_to_run(tmp_path: Path) -> None:
    assert _error(tmp_path / "r.jsonl") == f"{tmp_path / 'r.jsonl'}: this file is missing; run the stage that writes it"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("\n", "Input data was truncated"),
        ("not json\n", "JSON is malformed"),
        ('{"record":"row/1","id":"x","extra":1}\n', "Object contains unknown field `extra`"),
        ('{"record":"row/2","id":"x"}\n', "Invalid value 'row/2' - at `$.record`"),
        ('{"record":"row/1","id":7}\n', "Expected `str`, got `int` - at `$.id`"),
        ('{"record":"row/1"}\n', "Object missing required field `id`"),
    ],
)
def test_a_bad_line_is_named_by_file_number_and_reason(line: str, reason: str, tmp_path: Path) -> None:
    path = _file(tmp_path / "r.jsonl", _line("a"), line, _line("b"))
    assert _error(path).startswith(f"{path}, line 2: {reason}")


def test_bytes_that_are_no_utf8_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(_line("a").encode() + b'{"record":"row/1","id":"\xff"}\n')
    assert _error(path).startswith(f"{path}, line 2: ")


def test_a_truncated_file_is_named_by_its_last_line(tmp_path: Path) -> None:
    path = _file(tmp_path / "r.jsonl", _line("a"), _line("b")[:-1])
    assert _error(path) == f"{path}, line 2: the file ends inside a line; it was truncated or is half written"


def test_a_doubled_row_is_named_with_both_lines(tmp_path: Path) -> None:
    path = _file(tmp_path / "r.jsonl", _line("a"), _line("b"), _line("a", "other"))
    assert _error(path) == f'{path}, line 3: "a" stands already at line 1; ids are unique'


def test_shards_are_read_as_one_sorted_file(tmp_path: Path) -> None:
    shards = [_file(tmp_path / "1.jsonl", _line("b")), _file(tmp_path / "2.jsonl", _line("a"))]
    assert [row.id for row in read_shards(shards, Row, key=_key)] == ["a", "b"]


def test_a_row_in_two_shards_is_named_with_both_files(tmp_path: Path) -> None:
    shards = [_file(tmp_path / "1.jsonl", _line("a")), _file(tmp_path / "2.jsonl", _line("a"))]
    with pytest.raises(DataError) as caught:
        read_shards(shards, Row, key=_key)
    assert str(caught.value) == f'{shards[1]}: "a" stands in {shards[0]} as well; every id belongs to one shard'


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = _file(tmp_path / "r.jsonl", _line("a"))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, old[1]))
    try:
        with pytest.raises(StorageError) as caught:
            write_bytes(path, b"x" * 101)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert str(caught.value).startswith(f"{path}: cannot be written (")
    assert [one.name for one in tmp_path.iterdir()] == ["r.jsonl"]
    assert path.read_text() == _line("a")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"file/r\.jsonl: cannot be written"):
        write_records(tmp_path / "file" / "r.jsonl", [Row(id="a")], key=_key)
