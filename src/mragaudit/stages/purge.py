"""Deleting what holds personal data from a run: journal, rows, answers, report, logs."""

from __future__ import annotations

import shutil
from pathlib import Path

from mragaudit.errors import DataError, StorageError

PERSONAL = (
    "journal",
    "corpus",
    "queries",
    "translations",
    "backtranslations",
    "index",
    "retrieval",
    "judgements",
    "generations",
    "filtered",
    "repeats",
    "trials.jsonl",
    "noise.jsonl",
    "report.html",
    "monitor/traffic",
    "monitor/replay",
    "monitor/closed_loop.jsonl",
    "bundle.tar.gz",
    "logs",
    "mask.key",
)
"""Everything but tables, figures, metrics and manifest, which hold counts alone."""


def purge_run(folder: Path) -> list[Path]:
    """Delete the parts of a run that hold personal data and return what was deleted.

    Raises DataError for a folder that is no run, StorageError where something cannot be deleted.
    """
    if not any((folder / name).exists() for name in (*PERSONAL, "manifest.json")):
        raise DataError(f"{folder}: this is no run of mragaudit; nothing was deleted")
    deleted: list[Path] = []
    for name in PERSONAL:
        path = folder / name
        if not path.exists():
            continue
        try:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        except OSError as error:
            raise StorageError(f"{path}: cannot be deleted ({error.strerror})") from error
        deleted.append(path)
    return deleted
