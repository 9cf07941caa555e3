"""A job ends with one clear line, in its log and on stderr."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from mragaudit.errors import DataError
from mragaudit.runlog import run_log


def _stop(path: Path, error: BaseException) -> int | str | None:
    with pytest.raises(SystemExit) as stopped, run_log(path):
        raise error
    return stopped.value.code


def test_what_a_stage_says_stands_in_the_file_and_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_log(tmp_path / "logs" / "a.log"):
        logging.getLogger("mragaudit.stages.x").info("five documents")
    written = (tmp_path / "logs" / "a.log").read_text(encoding="utf-8")
    assert written.endswith(" INFO five documents\n")
    assert capsys.readouterr().err == written


def test_an_error_of_ours_is_exit_code_1_without_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _stop(tmp_path / "a.log", DataError("x.jsonl, line 3: bad")) == 1
    written = (tmp_path / "a.log").read_text(encoding="utf-8")
    assert written.endswith(" ERROR x.jsonl, line 3: bad\n")
    assert written.count("\n") == 1
    assert capsys.readouterr().err == written


def test_an_interruption_is_exit_code_130_and_says_how_to_resume(tmp_path: Path) -> None:
    assert _stop(tmp_path / "a.log", KeyboardInterrupt()) == 130
    written = (tmp_path / "a.log").read_text(encoding="utf-8")
    assert written.endswith(
        "interrupted: finished model calls are kept in the journal; run the same command again to resume\n"
    )
    assert written.count("\n") == 1


def test_any_other_error_keeps_its_traceback_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), run_log(tmp_path / "a.log"):
        raise ZeroDivisionError("by none")
    written = (tmp_path / "a.log").read_text(encoding="utf-8")
    assert "ERROR unexpected error; finished model calls are kept" in written
    assert written.endswith("ZeroDivisionError: by none\n")


def test_a_second_attempt_starts_a_new_log(tmp_path: Path) -> None:
    _stop(tmp_path / "a.log", DataError("first"))
    _stop(tmp_path / "a.log", DataError("second"))
    assert "first" not in (tmp_path / "a.log").read_text(encoding="utf-8")


def test_no_handler_stays_behind(tmp_path: Path) -> None:
    before = list(logging.getLogger("mragaudit").handlers)
    _stop(tmp_path / "a.log", DataError("x"))
    assert logging.getLogger("mragaudit").handlers == before
