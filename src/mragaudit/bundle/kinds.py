"""The kinds of bundle: one of the staged audit, one of the hook audit's grid; `bundle.json` says which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mragaudit.bundle.names import RESULTS
from mragaudit.config import Settings
from mragaudit.errors import DataError
from mragaudit.paths import FIGURES, GRID_TABLES, TABLES
from mragaudit.records.repeats import REPEATED_STAGES

SHARDED = ("queries", "translations", "backtranslations", "retrieval", "generations")
GRID_SHARDED = ("calls", "uses")
GRID_SCORES = ("items", "nel", "candidates", "extractions", "calls", "benign")
GRID_ROWS = ("cells.jsonl", "documents.jsonl", "splits.jsonl")
GRID_SECTIONS = frozenset({"run", "resources", "seed", "shards", "generate", "statistics", "hook_audit", "roles"})
"""Sections of the config that the grid's stages read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """A config key that may name a file of the user's; in a bundle it names a copy of it."""

    section: str
    key: str
    name: str
    """Of the copy, below `inputs/`, without its ending."""
    suffix: str | None = None
    """Ending of the copy; None: that of the user's file, which tells its format."""
    no_file: str | None = None
    """Value, besides null, that names no file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleKind:
    """What the bundle of one kind of run holds, and what can be made again from it."""

    name: str
    schema: str
    """In `bundle.json`."""
    target: str
    """What a person asks Snakemake for to make it."""
    results_target: str
    """What they ask for to make its results; empty for what Snakemake makes unasked."""
    below: str
    """Folder of its results below the run's; empty where they are the run's."""
    single: tuple[str, ...]
    """Files that every run has."""
    tables: tuple[str, ...]
    figures: tuple[str, ...]
    shard_folders: Callable[[Settings], list[str]]
    """Folders that hold one JSONL file a shard."""
    variant_folders: frozenset[str]
    """Those whose folders below follow the config's variants."""
    parts: frozenset[str]
    """First parts of names below the folder of results; what other targets make stays out."""
    resource_folders: tuple[str, ...]
    """What stages read of `resources/`; examples and configs are none of it."""
    resource_files: tuple[str, ...]
    other_sections: frozenset[str]
    """Sections of the config that it does not have: other targets read them."""
    inputs: tuple[Input, ...]
    reviewed: tuple[str, ...]
    """Stages without a model, which `mragaudit verify` runs again."""

    def folder(self, run: str) -> str:
        """Return where the results stand in a bundle."""
        return "/".join(part for part in (RESULTS, run, self.below) if part)


def _audit_folders(settings: Settings) -> list[str]:
    judged = [f"judgements/{name}" for name in settings.judge.variants]
    filtered = [f"filtered/{name}" for name in settings.filter.variants]
    repeated = [f"repeats/{stage}" for stage in REPEATED_STAGES]
    return [*SHARDED, *judged, *filtered, *repeated]


def _grid_folders(_: Settings) -> list[str]:
    return list(GRID_SHARDED)


AUDIT = BundleKind(
    name="audit",
    schema="bundle/1",
    target="bundle",
    results_target="",
    below="",
    single=(
        *("corpus/documents.jsonl", "judgements/thresholds.json"),
        *("trials.jsonl", "noise.jsonl", "manifest.json", "report.html"),
    ),
    tables=TABLES,
    figures=FIGURES,
    shard_folders=_audit_folders,
    variant_folders=frozenset({"judgements", "filtered"}),
    parts=frozenset(
        {*SHARDED, "corpus", "index", "judgements", "filtered", "repeats"}
        | {"trials.jsonl", "noise.jsonl", "tables", "figures", "report.html", "manifest.json", "metrics", "benchmarks"}
    ),
    resource_folders=("controls", "corpus", "guards", "languages", "prompts", "published"),
    resource_files=("versions.csv",),
    other_sections=frozenset({"hook_audit", "monitor"}),
    inputs=(
        Input(section="corpus", key="source", name="corpus", no_file="synthetic"),
        Input(section="queries", key="source", name="queries"),
    ),
    reviewed=("corpus", "queries", "filter", "score", "aggregate", "figures", "report"),
)
HOOK_AUDIT = BundleKind(
    name="hook audit",
    schema="hook_audit_bundle/1",
    target="hook_audit_bundle",
    results_target="hook_audit",
    below="hook_audit",
    single=(
        *GRID_ROWS,
        *("hooks.json", "manifest.json", "report.html"),
        *(f"scores/{name}.jsonl" for name in GRID_SCORES),
    ),
    tables=GRID_TABLES,
    figures=(),
    shard_folders=_grid_folders,
    variant_folders=frozenset(),
    parts=frozenset(
        {*GRID_ROWS, *GRID_SHARDED, "hooks.json", "scores", "tables", "report.html", "manifest.json"}
        | {"metrics", "benchmarks"}
    ),
    resource_folders=("attacks", "defenses", "hook_audit", "prompts/generator"),
    resource_files=(),
    other_sections=frozenset(Settings.model_fields) - GRID_SECTIONS,
    inputs=(Input(section="hook_audit", key="pubmedqa", name="pubmedqa", suffix=".json"),),
    reviewed=("grid_plan", "grid_documents", "grid_hooks", "grid_scores", "grid_tables", "grid_page"),
)
KINDS: tuple[BundleKind, ...] = (AUDIT, HOOK_AUDIT)


def kind_of(schema: str) -> BundleKind:
    """Return the kind of bundle that a schema names; raises DataError for one that this version does not read."""
    for kind in KINDS:
        if kind.schema == schema:
            return kind
    known = " and ".join(f'"{kind.schema}"' for kind in KINDS)
    raise DataError(f'its schema is "{schema}"; this version reads {known}')
