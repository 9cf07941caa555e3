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
OF_A_RUN = ("logs/corpus.log", "journal/*-of-*.jsonl", "metrics/*-of-*.json")
"""What only a run has, from its first stage on and after a purge: a folder with `logs` or an `index` may be anybody's.
"""


def purge_run(folder: Path) -> list[Path]:
    """Delete the parts of a run that hold personal data and return what was deleted.

    Raises DataError for a folder that is no run, StorageError where something cannot be deleted.
    """
    if not any(any(folder.glob(pattern)) for pattern in OF_A_RUN):
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
