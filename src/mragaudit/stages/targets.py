"""Which parts of the workflow a command asks for: each has its own checks before the first job, and its own plan."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

Part = Literal["audit", "hook_audit"]

GRID_FOLDER = "hook_audit"
_OF_THE_GRID = (GRID_FOLDER, "grid_")


def asked_parts(targets: Iterable[str]) -> frozenset[Part]:
    """Return the parts that rules or files belong to; the staged audit where none is named, as Snakemake has it.

    The monitor's replay is made from an audit, so it asks for one.
    """
    parts: frozenset[Part] = frozenset(_part(target) for target in targets)
    return parts or frozenset({"audit"})


def _part(target: str) -> Part:
    if "/" in target:
        return "hook_audit" if GRID_FOLDER in PurePosixPath(target).parts else "audit"
    return "hook_audit" if target.startswith(_OF_THE_GRID) else "audit"
