"""What of a run goes into its bundle, and what a bundle must hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import yaml

from mragaudit.bundle.names import INPUTS, RESOURCES, RESULTS, fits
from mragaudit.config import Settings
from mragaudit.errors import DataError
from mragaudit.paths import FIGURES, TABLES, RunPaths
from mragaudit.records.repeats import REPEATED_STAGES

SCHEMA = "bundle/1"
RESOURCE_FOLDERS = ("controls", "corpus", "guards", "languages", "prompts", "published")
"""What stages read of `resources/`; examples and configs are none of it."""
RESOURCE_FILES = ("versions.csv",)
SHARDED = ("queries", "translations", "backtranslations", "retrieval", "generations")
SINGLE = (
    *("corpus/documents.jsonl", "judgements/thresholds.json"),
    *("trials.jsonl", "noise.jsonl", "manifest.json", "report.html"),
)
OF_THE_AUDIT = frozenset(
    {*SHARDED, "corpus", "index", "judgements", "filtered", "repeats"}
    | {"trials.jsonl", "noise.jsonl", "tables", "figures", "report.html", "manifest.json", "metrics", "benchmarks"}
)
"""First parts of names below a run's folder; what other targets make (`monitor`, `hook_audit`) stays out."""
NOT_OF_THE_AUDIT = ("hook_audit", "monitor")
"""Sections of the config that no bundle has: other targets read them."""
PLACES = ("resources", "corpus.source", "queries.source")
"""Config keys that name places; in a bundle they name its own."""

_SHARD = re.compile(r"\d+-of-\d+")


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`bundle.json`: which code and packages could make the results again, byte by byte."""

    schema: str
    run: str
    code: dict[str, str]
    """Stage → digest of its code."""
    versions: dict[str, str]
    """Package → version where the bundle was made."""


def run_folder(settings: Settings) -> str:
    """Return where the results stand in a bundle."""
    return f"{RESULTS}/{settings.run}"


def run_files(paths: RunPaths, settings: Settings) -> dict[str, Path]:
    """Return the files of a run by name in the bundle; those of other shards or variants stay out.

    Raises DataError, naming one, when a file is missing that the run must have, or one is there that no bundle holds.
    """
    found = {path.relative_to(paths.root).as_posix(): path for path in paths.files()}
    for name in required_files(settings):
        if name not in found:
            raise DataError(f"{paths.root / name}: this file is missing; finish the run before bundling it")
    folder = run_folder(settings)
    current = {f"{folder}/{name}": path for name, path in found.items() if is_current(name, settings)}
    return _fitting(current)


def _fitting(named: dict[str, Path]) -> dict[str, Path]:
    """Return the files as they are; raises DataError for a name that a bundle may not hold."""
    for name, path in named.items():
        if not fits(name):
            raise DataError(
                f"{path}: a bundle holds no such file; move it elsewhere and run the stage `manifest` again"
            )
    return named


def required_files(settings: Settings) -> Iterator[str]:
    """Yield what every run has, below its folder."""
    yield from SINGLE
    yield from (f"{folder}/{shard}.jsonl" for folder in shard_folders(settings) for shard in settings.shard_names)
    yield from (f"tables/{name}.csv" for name in TABLES)
    yield from (f"figures/{name}.svg" for name in FIGURES)


def shard_folders(settings: Settings) -> list[str]:
    """Return the folders that hold one JSONL file a shard."""
    judged = [f"judgements/{name}" for name in settings.judge.variants]
    filtered = [f"filtered/{name}" for name in settings.filter.variants]
    repeated = [f"repeats/{stage}" for stage in REPEATED_STAGES]
    return [*SHARDED, *judged, *filtered, *repeated]


def is_current(name: str, settings: Settings) -> bool:
    """Return whether a file belongs to the audit as it is configured, not to an earlier number of shards or variant."""
    path = PurePosixPath(name)
    if path.parts[0] not in OF_THE_AUDIT:
        return False
    shard = _SHARD.search(path.name)
    if shard is not None and shard[0] not in settings.shard_names:
        return False
    of_variant = path.parts[0] in ("judgements", "filtered") and path.suffix == ".jsonl"
    return not of_variant or str(path.parent) in shard_folders(settings)


def resource_files(folder: Path) -> dict[str, Path]:
    """Return what a re-run of any stage reads of the resources, by name in the bundle; DataError as above."""
    paths = [path for name in RESOURCE_FOLDERS for path in sorted((folder / name).rglob("*.yaml"))]
    paths += [folder / name for name in RESOURCE_FILES]
    return _fitting({f"{RESOURCES}/{path.relative_to(folder).as_posix()}": path for path in paths if path.is_file()})


def input_files(settings: Settings) -> dict[str, Path]:
    """Return the user's own corpus and queries, by name in the bundle; the names of the files themselves stay out."""
    found: dict[str, Path] = {}
    if settings.corpus.source != "synthetic":
        found[_input_name("corpus", settings.corpus.source)] = Path(settings.corpus.source)
    if settings.queries.source is not None:
        found[_input_name("queries", settings.queries.source)] = Path(settings.queries.source)
    return found


def _input_name(kind: str, source: str) -> str:
    return f"{INPUTS}/{kind}{Path(source).suffix.lower()}"


def bundled_config(settings: Settings) -> dict[str, Any]:
    """Return the resolved config of the audit, its places being those of the bundle."""
    config = audit_part(settings.model_dump(mode="json"))
    config["resources"] = RESOURCES
    if settings.corpus.source != "synthetic":
        config["corpus"]["source"] = _input_name("corpus", settings.corpus.source)
    if settings.queries.source is not None:
        config["queries"]["source"] = _input_name("queries", settings.queries.source)
    return config


def render_bundled_config(settings: Settings) -> bytes:
    """Return the config file of a bundle."""
    text = yaml.safe_dump(bundled_config(settings), sort_keys=False, allow_unicode=True, width=120)
    return ("# The resolved config of this run; every key stands here.\n" + text).encode()


def audit_part(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a config that the audit reads."""
    return {key: value for key, value in config.items() if key not in NOT_OF_THE_AUDIT}


def without_places(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the audit's config without the keys that name places, for comparing it with another."""
    kept = {key: dict(value) if isinstance(value, Mapping) else value for key, value in audit_part(config).items()}
    for path in PLACES:
        section, _, key = path.partition(".")
        if key and isinstance(kept.get(section), dict):
            kept[section].pop(key, None)
        elif not key:
            kept.pop(section, None)
    return kept
