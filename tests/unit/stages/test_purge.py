"""Purging a run deletes what holds personal data and keeps counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mragaudit.errors import DataError
from mragaudit.stages.purge import purge_run

PERSONAL_FILES = (
    "journal/translate.1-of-1.jsonl",
    "corpus/documents.jsonl",
    "queries/1-of-1.jsonl",
    "translations/1-of-1.jsonl",
    "backtranslations/1-of-1.jsonl",
    "index/vectors.faiss",
    "retrieval/1-of-1.jsonl",
    "judgements/english/1-of-1.jsonl",
    "generations/1-of-1.jsonl",
    "filtered/regex_ascii/1-of-1.jsonl",
    "repeats/generate/1-of-1.jsonl",
    "logs/score.log",
    "trials.jsonl",
    "noise.jsonl",
    "report.html",
    "mask.key",
)
KEPT_FILES = ("tables/f1_output_only.csv", "figures/funnel.svg", "metrics/judge.1-of-1.json", "manifest.json")


def _fill(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_everything_but_counts_is_deleted_and_listed(tmp_path: Path) -> None:
    _fill(tmp_path, PERSONAL_FILES + KEPT_FILES)
    deleted = purge_run(tmp_path)
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert left == sorted(KEPT_FILES)
    assert {path.name for path in deleted} == {name.partition("/")[0] for name in PERSONAL_FILES}


def test_a_second_purge_finds_nothing_left(tmp_path: Path) -> None:
    _fill(tmp_path, PERSONAL_FILES + KEPT_FILES)
    purge_run(tmp_path)
    assert purge_run(tmp_path) == []


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path) -> None:
    files = ("photos/cat.jpg", "logs/web.log", "index/words.txt", "corpus/documents.jsonl", "manifest.json")
    _fill(tmp_path, files)
    with pytest.raises(DataError, match="this is no run of mragaudit; nothing was deleted"):
        purge_run(tmp_path)
    assert all((tmp_path / name).exists() for name in files)


def test_of_the_monitor_the_rows_are_deleted_and_the_tables_stay(tmp_path: Path) -> None:
    rows = ("monitor/traffic/log.jsonl", "monitor/replay/log.jsonl", "monitor/closed_loop.jsonl")
    kept = ("metrics/translate.1-of-1.json", "monitor/tables/detection.csv")
    _fill(tmp_path, (*rows, *kept))
    purge_run(tmp_path)
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == list(kept)
