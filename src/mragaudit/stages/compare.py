"""Two runs, from bundles or folders, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from mragaudit.bundle.archive import LIMITS, Limits
from mragaudit.bundle.contents import own_part, without_places
from mragaudit.bundle.kinds import AUDIT
from mragaudit.bundle.names import CONFIG
from mragaudit.bundle.times import is_unpacked
from mragaudit.config import Settings, load_settings, read_settings
from mragaudit.errors import ArchiveError, DataError
from mragaudit.paths import TABLES, RunPaths
from mragaudit.randomness import generator_for
from mragaudit.records.base import iter_records, read_records
from mragaudit.records.documents import Document, document_key
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.manifest import Manifest, read_manifest
from mragaudit.stages.opening import checksum_faults, open_bundle
from mragaudit.tables.columns import TrialRow, read_columns
from mragaudit.tables.comparison import Pair, paired_table, side_by_side
from mragaudit.tables.findings import Findings, document_outcomes


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    name: str
    """As it was given."""
    paths: RunPaths
    manifest: Manifest

    @property
    def settings(self) -> Settings:
        """The config of the run."""
        return load_settings(own_part(self.manifest.settings))


class SettingDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the two runs were made from and that differs."""

    key: str
    a: Any
    b: Any


class Comparison(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything about two runs side by side."""

    a: str
    b: str
    settings: tuple[SettingDifference, ...]
    n_common: int
    """Documents with the same id, text and planted item in both; all paired numbers are over these."""
    n_only_a: int
    n_only_b: int
    n_changed: int
    """Documents whose id stands in both runs, with another content; they belong to neither count above."""
    confidence: float
    resamples: int
    paired: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    """Those that both runs have."""
    missing: tuple[str, ...]
    """Tables that one of them lacks: another version made it."""


def open_side(path: Path, folder: Path, *, limits: Limits = LIMITS) -> Side:
    """Return a run: of a bundle, unpacked into an empty folder, of an unpacked one, or a run's own folder.

    Raises ArchiveError for an archive that cannot be used or whose checksums differ, DataError for another folder.
    """
    if path.is_dir():
        root = path / AUDIT.folder(read_settings([path / CONFIG]).run) if is_unpacked(path) else path
        return Side(name=str(path), paths=RunPaths(root), manifest=read_manifest(RunPaths(root).manifest))
    opened = open_bundle(path, folder, limits=limits)
    if opened.kind is not AUDIT:
        raise DataError(f"{path}: the bundle of a {opened.kind.name}; only those of the staged audit can be compared")
    if faults := list(checksum_faults(opened)):
        raise ArchiveError(f"{path}: {faults[0]}; mragaudit verify names all that is wrong with it")
    manifest = read_manifest(opened.paths.manifest)
    # What was checked when it was opened is its config: a manifest may ask for resamples without end.
    if without_places(manifest.settings) != without_places(opened.config):
        raise ArchiveError(f"{path}: its manifest has other settings than its {CONFIG}; mragaudit verify names them")
    return Side(name=str(path), paths=opened.paths, manifest=manifest)


def compare_runs(a: Side, b: Side) -> Comparison:
    """Return the two runs side by side; seed, resamples and confidence are those of the first.

    Raises DataError for a run that is not finished or was purged.
    """
    for path in (path for side in (a, b) for path in (side.paths.trials, side.paths.documents)):
        if not path.is_file():
            raise DataError(f"{path}: this file is missing; finish the run before comparing it")
    shared = [name for name in TABLES if all(side.paths.table(name).is_file() for side in (a, b))]
    settings = a.settings
    first, second = _documents(a), _documents(b)
    common = sorted(name for name in first.keys() & second.keys() if first[name] == second[name])
    statistics = settings.statistics
    return Comparison(
        a=a.name,
        b=b.name,
        settings=tuple(_setting_differences(a.manifest, b.manifest)),
        n_common=len(common),
        n_only_a=len(first.keys() - second.keys()),
        n_only_b=len(second.keys() - first.keys()),
        n_changed=len(first.keys() & second.keys()) - len(common),
        confidence=statistics.confidence,
        resamples=statistics.resamples,
        paired=paired_table(
            Pair(a=_findings(a), b=_findings(b), documents=tuple(common)),
            generator=lambda: generator_for(settings.seed, "compare"),
            resamples=statistics.resamples,
            confidence=statistics.confidence,
        ),
        tables={name: _table(name, a, b) for name in shared},
        missing=tuple(name for name in TABLES if name not in shared),
    )


def _table(name: str, a: Side, b: Side) -> pd.DataFrame:
    tables = [read_table(side.paths.table(name)) for side in (a, b)]
    try:
        return side_by_side(*tables)
    except DataError as error:
        raise DataError(f"tables/{name}.csv: {error}") from error


def _documents(side: Side) -> dict[str, tuple[str, str, str]]:
    rows = read_records(side.paths.documents, Document, key=document_key)
    return {row.doc_id: (row.text, row.pii_type, row.pii_value) for row in rows}


def _findings(side: Side) -> Findings:
    settings = side.settings
    columns = read_columns(
        iter_records(side.paths.trials, TrialRow),
        languages=settings.languages,
        judges=settings.judge.variants,
        filters=settings.filter.variants,
    )
    return document_outcomes(columns)


def _setting_differences(a: Manifest, b: Manifest) -> Iterator[SettingDifference]:
    """Yield config keys, models and package versions that differ; places and the run's name do not count."""
    parts = [(_flat(without_places(one.settings)) | _made_of(one)) for one in (a, b)]
    for key in sorted(parts[0].keys() | parts[1].keys()):
        if key != "run" and parts[0].get(key) != parts[1].get(key):
            yield SettingDifference(key=key, a=parts[0].get(key), b=parts[1].get(key))


def _made_of(manifest: Manifest) -> dict[str, Any]:
    versions = {f"version of {name}": version for name, version in manifest.versions.items()}
    models = {f"model of {role}": " ".join(model.values()) for role, model in manifest.models.items()}
    return versions | models


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found
