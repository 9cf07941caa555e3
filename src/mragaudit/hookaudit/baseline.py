"""Known findings, by fingerprint: what a first run found and nobody has mended yet."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from mragaudit.errors import DataError
from mragaudit.hookaudit.inventory import Inventory
from mragaudit.hookaudit.sarif import rule_of
from mragaudit.hookaudit.verdicts import HookVerdict, Status
from mragaudit.records.base import write_bytes


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fingerprint → what it stands for, for a person to read."""

    schema_version: int = 1
    findings: dict[str, str]


def read_baseline(path: Path) -> frozenset[str]:
    """Return the fingerprints of a baseline file; raises DataError where it is missing or is none."""
    try:
        return frozenset(msgspec.json.decode(path.read_bytes(), type=Baseline).findings)
    except FileNotFoundError as error:
        raise DataError(f"{path}: this baseline is missing; write one with --write-baseline {path}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: this is no baseline: {error}") from error


def write_baseline(path: Path, inventory: Inventory) -> int:
    """Write all findings of an inventory as known; return how many there are."""
    findings = {
        verdict.fingerprint: f"{verdict.file} {verdict.name} {verdict.hook}: {verdict.status}"
        for verdict in inventory.verdicts
        if rule_of(verdict)
    }
    content = msgspec.json.encode(Baseline(findings=findings), order="deterministic")
    write_bytes(path, msgspec.json.format(content, indent=2) + b"\n")
    return len(findings)


def failing(inventory: Inventory, statuses: Collection[Status], *, known: Collection[str] = ()) -> list[HookVerdict]:
    """Return the hooks whose status must fail a build and that no baseline knows."""
    return [v for v in inventory.verdicts if v.status in statuses and v.fingerprint not in known]
