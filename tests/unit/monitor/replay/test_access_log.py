"""The user's own log becomes traffic, or an error that names file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mragaudit.errors import DataError
from mragaudit.monitor.traffic.accesslog import read_access_log
from mragaudit.records.replay import QueryEvent, SeenDocument

LINE = '{"time": 1800000000, "user": "ada", "collection": "kb", "doc_ids": ["a:1", "b"], "levels": ["public", "odd"]}\n'
HEADER = "time,user,collection,doc_ids,levels\n"


def _read(path: Path, text: str, **sizes: int) -> list[QueryEvent]:
    path.write_text(text, encoding="utf-8")
    return read_access_log(path, sizes=sizes, secret=b"s")


def test_jsonl_and_csv_with_the_same_columns_give_the_same_events(tmp_path: Path) -> None:
    csv = HEADER + "2027-01-15T09:00:00+01:00,ada,kb,a:1|b,public|odd\n"
    from_json = _read(tmp_path / "log.jsonl", LINE, kb=7)
    from_csv = _read(tmp_path / "log.csv", csv, kb=7)
    assert [one.documents for one in from_json] == [one.documents for one in from_csv]
    assert from_json[0].documents == (SeenDocument("a:1", "public", False), SeenDocument("b", "odd", False))
    assert (from_json[0].time, from_json[0].collection_size, from_json[0].kind) == (1.8e9, 7, "unlabelled")
    assert from_csv[0].time == 1_800_000_000.0


def test_user_ids_are_replaced_by_keyed_hashes(tmp_path: Path) -> None:
    one = _read(tmp_path / "log.jsonl", LINE)[0]
    assert "ada" not in (one.user, one.actor)
    assert one.user != read_access_log(tmp_path / "log.jsonl", sizes={}, secret=b"other")[0].user


def test_a_collection_without_a_size_stays_without_one(tmp_path: Path) -> None:
    assert _read(tmp_path / "log.jsonl", LINE)[0].collection_size is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINE + LINE.replace('"user": "ada", ', ""), 'line 2: column "user" is missing'),
        (LINE.replace('"user"', '"usr"'), 'column "user" is missing'),
        (LINE.replace('"time": 1800000000', '"time": 1800000000, "extra": 1'), 'line 1: column "extra" is unknown'),
        (LINE.replace("1800000000", '"yesterday"'), "must be Unix seconds or ISO 8601"),
        (LINE.replace("1800000000", '"2027-01-15T09:00:00"'), "without an offset from UTC"),
        (LINE.replace("1800000000", "-5"), "at least 0"),
        (LINE.replace('"odd"', '"odd", "x"'), "2 doc_ids and 3 levels"),
        (LINE.replace('"ada"', "17"), "user is int; it must be a non-empty string"),
        ("not json\n", "line 1: no JSON"),
        ("[1]\n", "one JSON object, not a list"),
        ("", "no queries"),
    ],
)
def test_a_faulty_line_is_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"log\.jsonl") as caught:
        _read(tmp_path / "log.jsonl", text)
    assert message in str(caught.value)


def test_a_query_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    line = LINE.replace('"time"', '"query_id": "q", "time"')
    with pytest.raises(DataError, match="line 2: this query_id stands in an earlier line"):
        _read(tmp_path / "log.jsonl", line + line)


def test_a_missing_column_of_a_csv_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match='line 2: column "levels" is missing'):
        _read(tmp_path / "log.csv", "time,user,collection,doc_ids\n1,ada,kb,a\n")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ends in \.jsonl or \.csv"):
        _read(tmp_path / "log.txt", LINE)
