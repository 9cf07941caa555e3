"""Checking a bundle that somebody sent: nothing in it is believed, executed or unpickled."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mragaudit.bundle.archive import LIMITS, Limits
from mragaudit.bundle.checksums import root_digest
from mragaudit.bundle.contents import is_current, without_places
from mragaudit.bundle.kinds import AUDIT, HOOK_AUDIT
from mragaudit.bundle.names import CHECKSUMS, CONFIG
from mragaudit.errors import ArchiveError, DataError
from mragaudit.stages.audit_checks import audit_checks
from mragaudit.stages.checking import Check, check_of, foreign_files, missing_files
from mragaudit.stages.grid_checks import grid_checks
from mragaudit.stages.manifest import LATER, Manifest, measured_by_jobs, read_manifest
from mragaudit.stages.opening import Opened, checksum_faults, open_bundle

ROW_CHECKS: Mapping[str, Callable[..., Iterator[Check]]] = {AUDIT.name: audit_checks, HOOK_AUDIT.name: grid_checks}
"""Kind of bundle → the checks of its rows."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a bundle now."""

    kind: str
    """Of bundle: of the staged audit, or of the hook audit."""
    run: str
    made_with: str
    """Version of mragaudit that made the bundle."""
    digest: str
    """Root digest, to be held against the one in the paper."""
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed; what could not be compared is no failure and is named."""
        return all(check.state in ("ok", "not compared") for check in self.checks)


def verify_bundle(
    path: Path, *, expect: str | None = None, limits: Limits = LIMITS, stages: Sequence[str] | None = None
) -> Verification:
    """Return all checks of a bundle; `stages` are run again: all that need no model where none are named.

    Raises ArchiveError for an archive that cannot be used at all: hostile, damaged, or no bundle of this version.
    """
    with tempfile.TemporaryDirectory(prefix="mragaudit-verify-") as name:
        folder = Path(name) / "bundle"
        folder.mkdir()
        opened = open_bundle(path, folder, limits=limits)
        again = opened.kind.reviewed if stages is None else stages
        digest = root_digest((folder / CHECKSUMS).read_bytes())
        try:
            checks = [
                *_first_checks(opened, digest, expect=expect),
                *ROW_CHECKS[opened.kind.name](opened, Path(name) / "again", stages=again),
            ]
        except RecursionError as error:
            raise ArchiveError(f"{path}: its JSON is nested deeper than any of ours") from error
        cleaned = tuple(_without_folder(check, f"{folder}/") for check in checks)
    made_with = opened.description.versions.get("mragaudit", "unknown")
    return Verification(
        kind=opened.kind.name, run=opened.settings.run, made_with=made_with, digest=digest, checks=cleaned
    )


def _without_folder(check: Check, folder: str) -> Check:
    faults = tuple(fault.replace(folder, "") for fault in check.faults)
    return msgspec.structs.replace(check, faults=faults, detail=check.detail.replace(folder, ""))


def _first_checks(opened: Opened, digest: str, *, expect: str | None) -> Iterator[Check]:
    if expect is not None:
        wrong = [] if expect.strip().lower() == digest else [f"the root digest is {digest}, expected was {expect}"]
        yield check_of("root digest", wrong, detail="as expected" if not wrong else "another")
    yield check_of("checksums", checksum_faults(opened), detail=f"{len(opened.digests)} files")
    files = (*missing_files(opened), *foreign_files(opened))
    yield check_of("files", files, detail=f"all of run {opened.settings.run}")
    yield check_of("manifest", _manifest_faults(opened), detail="config and sha256 of every result")


def _manifest_faults(opened: Opened) -> Iterator[str]:
    try:
        manifest = read_manifest(opened.paths.manifest)
    except DataError as error:
        yield str(error)
        return
    given, own = (without_places(config, kind=opened.kind) for config in (manifest.settings, opened.config))
    if manifest.run != opened.settings.run or given != own:
        changed = _changed_keys(given, own)
        yield f"manifest.json: its settings are not those of {CONFIG}: {', '.join(changed) or 'run'}"
    for name, digest in manifest.files.items():
        found = opened.digests.get(f"{opened.root}/{name}")
        if found is None and is_current(name, opened.settings, kind=opened.kind):
            yield f"{opened.root}/{name}: listed in the manifest and missing"
        elif found is not None and found != digest:
            yield f"{opened.root}/{name}: its bytes are not those that the manifest lists"
    for name in opened.results():
        if name not in manifest.files and name not in LATER:
            yield f"{opened.root}/{name}: the manifest does not list it"
    yield from _measured_faults(opened, manifest)


def _measured_faults(opened: Opened, manifest: Manifest) -> Iterator[str]:
    """Yield what the manifest says of models, stages or recall otherwise than the jobs' metrics do."""
    try:
        measured = measured_by_jobs(opened.paths.root, opened.settings)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, msgspec.DecodeError, csv.Error) as error:
        yield f"metrics or benchmarks cannot be read: {type(error).__name__}: {error}"
        return
    for key in measured.__struct_fields__:
        if getattr(manifest, key) != getattr(measured, key):
            yield f"manifest.json: its {key} are not what the metrics of the jobs say"


def _changed_keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
