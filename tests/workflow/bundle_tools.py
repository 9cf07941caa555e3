"""Changing bundles as an attacker, or a careless author, would."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mragaudit.bundle.archive import write_archive
from mragaudit.bundle.checksums import render_checksums
from mragaudit.bundle.names import CHECKSUMS

Files = dict[str, bytes]


def read_files(bundle: Path) -> Files:
    """Return the content of every file of a bundle that we made."""
    with tarfile.open(bundle) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]  # plain files


def changed(bundle: Path, folder: Path, change: Callable[[Files], None]) -> Path:
    """Return a bundle with some files changed and nothing else mended."""
    files = read_files(bundle)
    change(files)
    return _write(files, folder)


def mended(bundle: Path, folder: Path, change: Callable[[Files], None]) -> Path:
    """Return a bundle with some files changed, and manifest and checksums made to fit."""
    files = read_files(bundle)
    change(files)
    name = next(name for name in files if name.endswith("manifest.json"))
    manifest = json.loads(files[name])
    root = name.removesuffix("manifest.json")
    listed = {path: files[root + path] for path in manifest["files"] if root + path in files}
    manifest["files"] = {path: hashlib.sha256(content).hexdigest() for path, content in listed.items()}
    files[name] = json.dumps(manifest, indent=2).encode() + b"\n"
    del files[CHECKSUMS]
    files[CHECKSUMS] = render_checksums({path: hashlib.sha256(data).hexdigest() for path, data in files.items()})
    return _write(files, folder)


def _write(files: Files, folder: Path) -> Path:
    path = folder / "changed.tar.gz"
    write_archive(path, files)
    return path


def rows_of(content: bytes) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in content.splitlines()]


def lines_of(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as a JSONL file, written as the stages do."""
    return b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in rows)


def edit_row(name: str, pick: Callable[[dict[str, Any]], bool], **fields: Any) -> Callable[[Files], None]:
    """Return a change of the first row of a file that is picked."""

    def change(files: Files) -> None:
        rows = rows_of(files[name])
        row = next(row for row in rows if pick(row))
        row.update({key: value(row) if callable(value) else value for key, value in fields.items()})
        files[name] = lines_of(rows)

    return change


def drop_row(name: str) -> Callable[[Files], None]:
    """Return a change that takes the first row out of a file."""

    def change(files: Files) -> None:
        files[name] = files[name].partition(b"\n")[2]

    return change
