"""Snapshots in the Hub's cache on this machine, found without network and without the Hub's own package."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mragaudit.errors import ConfigError

_COMMIT = re.compile(r"[A-Za-z0-9._-]+")


def hub_cache_folder() -> Path:
    """Return the Hub's cache as its own tools find it: HF_HUB_CACHE, else `hub` below HF_HOME; it need not exist."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache).expanduser()
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("HF_HOME") or f"{root}/huggingface").expanduser() / "hub"


def find_snapshot(repository: str, *, revision: str) -> Path:
    """Return the folder of a Hub id's revision (branch, tag or commit); its name is the commit.

    Raises ConfigError, naming the folders that were looked for and the command that fetches it, where there is none.
    """
    store = hub_cache_folder() / f"models--{repository.replace('/', '--')}"
    reference = store / "refs" / revision
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    folder = store / "snapshots" / commit
    # A revision from the config may not lead out of the cache.
    if not _COMMIT.fullmatch(commit) or not folder.is_dir():
        raise ConfigError(
            f'model: "{repository}" is no folder here ({Path(repository).absolute()}), and the Hub\'s cache has no '
            f"snapshot of its revision {revision}: looked for {folder}. A run downloads nothing, whether or not "
            f"HF_HUB_OFFLINE is set; do it once: hf download {repository} --revision {revision}"
        )
    return folder
