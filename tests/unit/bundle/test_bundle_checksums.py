"""The list of checksums is what sha256sum reads, and its digest stands for the whole bundle."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from mragaudit.bundle.checksums import differences, is_digest, parse_checksums, render_checksums, root_digest
from mragaudit.errors import DataError

A, B = hashlib.sha256(b"a").hexdigest(), hashlib.sha256(b"b").hexdigest()


def test_the_list_is_read_back() -> None:
    assert parse_checksums(render_checksums({"y.csv": B, "x.csv": A})) == {"x.csv": A, "y.csv": B}


def test_the_root_digest_does_not_depend_on_order_and_changes_with_a_name() -> None:
    digest = root_digest(render_checksums({"x.csv": A, "y.csv": B}))
    assert digest == root_digest(render_checksums({"y.csv": B, "x.csv": A}))
    assert digest != root_digest(render_checksums({"x.csv": A, "z.csv": B}))


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_sha256sum_reads_the_list(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"a")
    (tmp_path / "checksums.sha256").write_bytes(render_checksums({"x.csv": A}))
    command = ["sha256sum", "--check", "--quiet", "--strict", "checksums.sha256"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


@pytest.mark.parametrize("line", ["", "no checksum", f"{A} x.csv", f"{A}  ", f"{A[:-1]}  x.csv"])
def test_a_line_that_is_no_checksum_is_named(line: str) -> None:
    with pytest.raises(DataError, match="line 2 is no checksum"):
        parse_checksums(f"{A}  x.csv\n{line}\n".encode())


def test_a_file_listed_twice_is_refused() -> None:
    with pytest.raises(DataError, match="line 2"):
        parse_checksums(f"{A}  x.csv\n{B}  x.csv\n".encode())


def test_every_kind_of_difference_is_named() -> None:
    listed, found = {"gone": A, "other": A, "same": A}, {"new": A, "other": B, "same": A}
    assert list(differences(listed, found)) == [
        "gone: listed in the checksums and not in the archive",
        "new: in the archive and not listed in the checksums",
        "other: its bytes are not those that the checksums list",
    ]


@pytest.mark.parametrize(("text", "answer"), [(A, True), (A.upper(), False), (A[:-1], False), ("", False)])
def test_a_digest_is_64_lower_case_digits(text: str, *, answer: bool) -> None:
    assert is_digest(text) is answer
