"""Checkpoint folders in the layout of transformers: found without network, and known by hash without being loaded.

A model is a folder, or a Hub id whose snapshot lies in the Hub's cache on this machine. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mragaudit.errors import BackendError, ConfigError
from mragaudit.llm.weights import default_cache_folder, file_hash
from mragaudit.protocols import ModelIdentity
from mragaudit.snapshots import find_snapshot

WEIGHT_FILES = "model*.safetensors"
DECIDING_FILES = (WEIGHT_FILES, "*.json", "*.jinja", "*.model", "*.txt")
"""What an answer depends on: weights, and the files of configuration, tokenizer and chat template."""
PICKLED_FILES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A folder of weights, tokenizer and configuration whose hash is known."""

    folder: Path
    name: str
    """The Hub id or the folder's name."""
    sha256: str
    """Of the lines `NAME SHA256`, sorted by name, of the files that decide answers."""


def find_checkpoint(
    model: str, *, revision: str | None, sha256: str | None, cache_folder: Path | None = None
) -> Checkpoint:
    """Return the checkpoint of a folder or a Hub id, with its hash.

    `revision` is a branch, tag or commit of a Hub id. Raises ConfigError, naming the folders looked in, for a
    model that is not there and for one without safetensors, BackendError where the hash differs from `sha256`.
    """
    folder = _folder(model, revision=revision)
    actual = checkpoint_hash(folder, cache_folder=cache_folder or default_cache_folder())
    if sha256 is not None and actual != sha256.lower():
        raise BackendError(
            f"model {model}: {folder} has sha256 {actual}, but the config pins {sha256.lower()}; "
            "the hash is over weights, configuration and tokenizer (docs/models.md)"
        )
    return Checkpoint(folder=folder, name=checkpoint_name(model), sha256=actual)


def checkpoint_name(model: str) -> str:
    """Return the Hub id, or the folder's name for a path."""
    return model if _HUB_ID.fullmatch(model) and not Path(model).is_dir() else Path(model).absolute().name


def checkpoint_hash(folder: Path, *, cache_folder: Path) -> str:
    """Return the sha256 of a checkpoint, as `Checkpoint.sha256` says; raises ConfigError for one without weights."""
    _require_safetensors(folder)
    paths = {path.name: path for pattern in DECIDING_FILES for path in folder.glob(pattern)}
    lines = [f"{name} {file_hash(paths[name], cache_folder=cache_folder)}" for name in sorted(paths)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def checkpoint_identity(
    *,
    backend: str,
    model: str,
    rendering: str,
    sha256: str | None,
    revision: str | None,
    dtype: str,
    quantisation: str | None = None,
    further: Sequence[str] = (),
) -> ModelIdentity:
    """Return who a backend is without loading: with a pinned hash the folder need not even be there.

    The precision follows the hash wherever it is not the checkpoint's own, since it changes answers, and after it
    what else does (`further`).
    """
    known = sha256.lower() if sha256 else find_checkpoint(model, revision=revision, sha256=None).sha256
    precision = [part for part in (None if dtype == "auto" else dtype, quantisation, *further) if part]
    return ModelIdentity(
        backend=backend, model=checkpoint_name(model), revision=" ".join([known, *precision]), rendering=rendering
    )


def _folder(model: str, *, revision: str | None) -> Path:
    if Path(model).is_dir():
        if revision is not None:
            raise ConfigError(f'model: "{model}" is a folder and has no revision "{revision}"; leave revision out')
        return Path(model)
    if not _HUB_ID.fullmatch(model):
        raise ConfigError(f'model: there is no folder "{Path(model).absolute()}"; give its path, or a Hub id ORG/NAME')
    return find_snapshot(model, revision=revision or "main")


def _require_safetensors(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ConfigError(f"model: {folder} holds no config.json; a checkpoint in the layout of transformers has one")
    if any(folder.glob(WEIGHT_FILES)):
        return
    pickled = sorted(path.name for pattern in PICKLED_FILES for path in folder.glob(pattern))
    found = f"only {', '.join(pickled)}, which could run code when loaded" if pickled else "no weights at all"
    raise ConfigError(
        f"model: {folder} holds no {WEIGHT_FILES} but {found}; take a revision with safetensors (docs/models.md)"
    )
