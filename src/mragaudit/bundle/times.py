"""File times of an unpacked bundle: they say when it was unpacked, not what was made from what."""

from __future__ import annotations

import os
from pathlib import Path

from mragaudit.bundle.archive import FIXED_SECONDS
from mragaudit.bundle.names import CHECKSUMS, DESCRIPTION


def is_unpacked(folder: Path) -> bool:
    """Return whether a folder holds an unpacked bundle."""
    return all((folder / name).is_file() for name in (CHECKSUMS, DESCRIPTION))


def level_times(folder: Path) -> None:
    """Make all files below a folder equally old, so that none is newer than what was made from it."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            os.utime(path, (FIXED_SECONDS, FIXED_SECONDS))
