"""Probing of an inventory: one sandbox a file, so that no file can speak for another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from mragaudit.errors import StorageError
from mragaudit.hookaudit.inventory import Inventory
from mragaudit.hookaudit.probe.inputs import probe_inputs
from mragaudit.hookaudit.probe.records import Observation, ProbeOutcome
from mragaudit.hookaudit.probe.sandbox import Reply, require_sandbox, run_job
from mragaudit.hookaudit.source import SKIPPED_FOLDERS
from mragaudit.hookaudit.verdicts import HookVerdict
from mragaudit.provenance import PACKAGE_ROOT
from mragaudit.resources import REPOSITORY

MAX_COPY_BYTES = 512 * 2**20


def probe_inventory(root: Path, inventory: Inventory, *, unsafe: bool = False) -> tuple[Observation, ...]:
    """Return what was seen of every hook; raises MissingPackageError where no sandbox works and `unsafe` is not set."""
    if not unsafe:
        require_sandbox()
    by_module: dict[str, list[HookVerdict]] = {}
    for verdict in inventory.verdicts:
        by_module.setdefault(verdict.module_file, []).append(verdict)
    observations: list[Observation] = []
    with TemporaryDirectory(prefix="mragaudit-probe-") as folder:
        unit = _unit(root)
        copy = (
            unit
            if unsafe
            else copy_readable(unit, Path(folder) / "copy", recursive=root.is_dir() or unit != root.parent)
        )
        data = _own_data(unit, Path(folder)) if not unsafe else {}
        for file, verdicts in by_module.items():
            reply = run_job(_job(root, file, verdicts), readable={unit: copy, **data}, unsafe=unsafe)
            observations += [_observation(verdict, number, reply) for number, verdict in enumerate(verdicts)]
    return tuple(observations)


def _unit(root: Path) -> Path:
    """Return the folder that has to be there for the tree to be imported: its outermost package, else itself."""
    folder = (root if root.is_dir() else root.parent).resolve()
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _own_data(unit: Path, folder: Path) -> dict[Path, Path]:
    """Return what the defenses of this library read of its resources, where it is this library that is probed."""
    source = REPOSITORY / "resources" / "defenses"
    if unit != PACKAGE_ROOT or not source.is_dir():
        return {}
    return {source: copy_readable(source, folder / "data", recursive=True)}


def copy_readable(source: Path, target: Path, *, recursive: bool) -> Path:
    """Return a copy that everyone may read: the sandbox's user is nobody, who may not read the files of others.

    Links are left out, since they may lead out of the tree. Raises StorageError where the copy grows too large.
    """
    target.parent.chmod(0o755)
    copied = 0
    for folder, names, files in os.walk(source):
        names[:] = [n for n in names if recursive and n not in SKIPPED_FOLDERS and not (Path(folder) / n).is_symlink()]
        inside = target / Path(folder).relative_to(source)
        inside.mkdir()
        inside.chmod(0o755)
        for name in files:
            path = Path(folder) / name
            if path.is_symlink() or not path.is_file() or not (recursive or name.endswith(".py")):
                continue
            copied += path.stat().st_size
            if copied > MAX_COPY_BYTES:
                raise StorageError(f"{source}: more than {MAX_COPY_BYTES >> 20} MiB to probe; name a smaller folder")
            shutil.copyfile(path, inside / name)
            (inside / name).chmod(0o644)
    return target


def _base(root: Path) -> Path:
    """Return the folder from which the tree's packages are imported."""
    folder = (root if root.is_dir() else root.parent).resolve()
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _job(root: Path, file: str, verdicts: list[HookVerdict]) -> dict[str, Any]:
    path = ((root / file) if root.is_dir() else root).resolve()
    base = path.parent
    while (base / "__init__.py").is_file():
        base = base.parent
    parts = list(path.relative_to(base).with_suffix("").parts)
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    folders = list(dict.fromkeys([str(base), str(_base(root))]))
    return {
        "package": len(parts) > 1,
        "module": name,
        "file": str(path),
        "folder": "/tmp",  # noqa: S108  # the sandbox's own, empty
        "import_paths": folders,
        "hooks": [_hook(verdict) for verdict in verdicts],
    }


def _hook(verdict: HookVerdict) -> dict[str, Any]:
    return {
        "class_name": verdict.class_name,
        "method": verdict.method,
        "hook": verdict.hook,
        "map": verdict.map,
        "subject": verdict.subject,
        "output_key": verdict.output_key,
        "inputs": probe_inputs(verdict.hook),
    }


def _observation(verdict: HookVerdict, number: int, reply: Reply) -> Observation:
    result = reply.results.get(number, {"outcome": "not_run", "n_inputs": 0, "n_changed": 0, "detail": reply.problem})
    return Observation(
        file=verdict.file,
        name=verdict.name,
        hook=verdict.hook,
        outcome=cast(ProbeOutcome, result["outcome"]),
        n_inputs=int(result["n_inputs"]),
        n_changed=int(result["n_changed"]),
        detail=str(result["detail"]),
    )
