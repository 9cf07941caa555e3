"""What of a run goes into its bundle, and what a bundle must hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import yaml

from mragaudit.bundle.kinds import AUDIT, BundleKind, Input
from mragaudit.bundle.names import INPUTS, RESOURCES, fits
from mragaudit.config import Settings
from mragaudit.errors import DataError
from mragaudit.paths import RunPaths

_SHARD = re.compile(r"\d+-of-\d+")


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`bundle.json`: which code and packages could make the results again, byte by byte."""

    schema: str
    """Of which kind the bundle is, too."""
    run: str
    code: dict[str, str]
    """Stage → digest of its code."""
    versions: dict[str, str]
    """Package → version where the bundle was made."""


def run_files(paths: RunPaths, settings: Settings, *, kind: BundleKind = AUDIT) -> dict[str, Path]:
    """Return the files of a run by name in the bundle; those of other shards or variants stay out.

    Raises DataError, naming one, when a file is missing that the run must have, or one is there that no bundle holds.
    """
    found = {path.relative_to(paths.root).as_posix(): path for path in paths.files()}
    for name in required_files(settings, kind=kind):
        if name not in found:
            raise DataError(f"{paths.root / name}: this file is missing; finish the run before bundling it")
    folder = kind.folder(settings.run)
    current = {f"{folder}/{name}": path for name, path in found.items() if is_current(name, settings, kind=kind)}
    return _fitting(current)


def _fitting(named: dict[str, Path]) -> dict[str, Path]:
    """Return the files as they are; raises DataError for a name that a bundle may not hold."""
    for name, path in named.items():
        if not fits(name):
            raise DataError(
                f"{path}: a bundle holds no such file; move it elsewhere and run the stage `manifest` again"
            )
    return named


def required_files(settings: Settings, *, kind: BundleKind = AUDIT) -> Iterator[str]:
    """Yield what every run has, below its folder."""
    yield from kind.single
    yield from (f"{folder}/{shard}.jsonl" for folder in kind.shard_folders(settings) for shard in settings.shard_names)
    yield from (f"tables/{name}.csv" for name in kind.tables)
    yield from (f"figures/{name}.svg" for name in kind.figures)


def is_current(name: str, settings: Settings, *, kind: BundleKind = AUDIT) -> bool:
    """Return whether a file belongs to the run as it is configured, not to an earlier number of shards or variant."""
    path = PurePosixPath(name)
    if path.parts[0] not in kind.parts:
        return False
    shard = _SHARD.search(path.name)
    if shard is not None and shard[0] not in settings.shard_names:
        return False
    of_variant = path.parts[0] in kind.variant_folders and path.suffix == ".jsonl"
    return not of_variant or str(path.parent) in kind.shard_folders(settings)


def resource_files(folder: Path, *, kind: BundleKind = AUDIT) -> dict[str, Path]:
    """Return what a re-run of any stage reads of the resources, by name in the bundle; DataError as above."""
    paths = [path for name in kind.resource_folders for path in sorted((folder / name).rglob("*.yaml"))]
    paths += [folder / name for name in kind.resource_files]
    return _fitting({f"{RESOURCES}/{path.relative_to(folder).as_posix()}": path for path in paths if path.is_file()})


def input_files(settings: Settings, *, kind: BundleKind = AUDIT) -> dict[str, Path]:
    """Return the user's own files, by name in the bundle; the names of the files themselves stay out."""
    named = ((one, _value(one, settings)) for one in kind.inputs)
    return {_input_name(one, value): Path(value) for one, value in named if value is not None}


def _value(one: Input, settings: Settings) -> str | None:
    """Return the file that a key names; None where it names none."""
    value: str | None = getattr(getattr(settings, one.section), one.key)
    return None if value == one.no_file else value


def _input_name(one: Input, source: str) -> str:
    suffix = Path(source).suffix.lower() if one.suffix is None else one.suffix
    return f"{INPUTS}/{one.name}{suffix}"


def bundled_config(settings: Settings, *, kind: BundleKind = AUDIT) -> dict[str, Any]:
    """Return the resolved config of such a run, its places being those of the bundle."""
    config = own_part(settings.model_dump(mode="json"), kind=kind)
    config["resources"] = RESOURCES
    for one in kind.inputs:
        value = _value(one, settings)
        if value is not None:
            config[one.section][one.key] = _input_name(one, value)
    return config


def render_bundled_config(settings: Settings, *, kind: BundleKind = AUDIT) -> bytes:
    """Return the config file of a bundle."""
    text = yaml.safe_dump(bundled_config(settings, kind=kind), sort_keys=False, allow_unicode=True, width=120)
    return ("# The resolved config of this run; every key stands here.\n" + text).encode()


def own_part(config: Mapping[str, Any], *, kind: BundleKind = AUDIT) -> dict[str, Any]:
    """Return the sections of a config that such a run reads."""
    return {key: value for key, value in config.items() if key not in kind.other_sections}


def without_places(config: Mapping[str, Any], *, kind: BundleKind = AUDIT) -> dict[str, Any]:
    """Return such a run's config without the keys that name places, for comparing it with another."""
    part = own_part(config, kind=kind)
    kept = {key: dict(value) if isinstance(value, Mapping) else value for key, value in part.items()}
    kept.pop("resources", None)
    for one in kind.inputs:
        if isinstance(kept.get(one.section), dict):
            kept[one.section].pop(one.key, None)
    return kept
