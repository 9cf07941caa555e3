"""The path grammar of a run, for stages and for `mragaudit` commands; the Snakefile's header shows the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

LEFT_OUT: frozenset[str] = frozenset({"bundle.tar.gz", "hook_audit", "journal", "logs", "mask.key"})
"""What is no result: the bundle of all results, finished calls, logs, and the secret of the masks;
and `hook_audit`, which is a run of its own below the other one."""
TABLES: tuple[str, ...] = (
    "f1_output_only",
    "f2_conditional",
    "f3_combined",
    "f4_context",
    "funnel",
    "stops",
    "retrieval",
    "judges",
    "utility",
    "translation",
    "contrasts",
    "noise",
)
MONITOR_TABLES: tuple[str, ...] = (
    "detection",
    "false_alarms",
    "collections",
    "sweep",
    "curves",
    "recommendation",
    "throttling",
    "languages",
)
GRID_TABLES: tuple[str, ...] = (
    "cells",
    "hooks",
    "matrix",
    "coverage",
    "controls",
    "leaks",
    "leak_types",
    "extraction",
    "attack_success",
    "extraction_curve",
    "membership",
    "splits",
    "utility",
    "canaries",
    "certification",
    "adaptive",
    "effects",
    "predictions",
)
FIGURES: tuple[str, ...] = ("funnel", "leak_rates", "judges", "retrieval", "translation")


class RunPaths(msgspec.Struct, frozen=True):
    """Where the files of one run are."""

    root: Path
    """`results/{run}`."""

    @property
    def documents(self) -> Path:
        """The corpus."""
        return self.root / "corpus" / "documents.jsonl"

    @property
    def trials(self) -> Path:
        """One row a trial."""
        return self.root / "trials.jsonl"

    @property
    def noise(self) -> Path:
        """One row a call that a model stage repeated."""
        return self.root / "noise.jsonl"

    @property
    def manifest(self) -> Path:
        """Settings, versions, counts, timings, checksums."""
        return self.root / "manifest.json"

    @property
    def report(self) -> Path:
        """The page that a person opens."""
        return self.root / "report.html"

    @property
    def bundle(self) -> Path:
        """All results and what they were made from, in one archive."""
        return self.root / "bundle.tar.gz"

    @property
    def journal(self) -> Path:
        """Folder of finished model calls."""
        return self.root / "journal"

    @property
    def mask_key(self) -> Path:
        """Secret of the keyed hashes that stand for real people's values."""
        return self.root / "mask.key"

    def figure(self, name: str) -> Path:
        """One figure."""
        return self.root / "figures" / f"{name}.svg"

    def job_metrics(self, stage: str, shard: str) -> Path:
        """What one model job measured of itself."""
        return self.root / "metrics" / f"{stage}.{shard}.json"

    def job_benchmark(self, stage: str, shard: str) -> Path:
        """What Snakemake measured of the same job."""
        return self.root / "benchmarks" / f"{stage}.{shard}.tsv"

    @property
    def thresholds(self) -> Path:
        """The margins above which each judge variant blocks."""
        return self.root / "judgements" / "thresholds.json"

    def table(self, name: str) -> Path:
        """One table of findings."""
        return self.root / "tables" / f"{name}.csv"

    @property
    def monitor(self) -> Path:
        """Folder of the monitor's replay: traffic, counts, tables, page."""
        return self.root / "monitor"

    def monitor_table(self, name: str) -> Path:
        """One table of the monitor's evaluation."""
        return self.monitor / "tables" / f"{name}.csv"

    @property
    def grid(self) -> RunPaths:
        """The hook audit's grid, with journal, metrics, tables and manifest of its own."""
        return RunPaths(self.root / "hook_audit")

    def scores(self, kind: str) -> Path:
        """Scored rows of one kind, of a grid."""
        return self.root / "scores" / f"{kind}.jsonl"

    def shards(self, folder: str, names: Iterable[str]) -> list[Path]:
        """All shards of a stage (`queries`) or of a variant (`judgements/english`)."""
        return [self.root / folder / f"{name}.jsonl" for name in names]

    def files(self) -> Iterator[Path]:
        """Every file of the run, sorted, journals and temporary names left out."""
        for path in sorted(self.root.rglob("*")):
            inside = path.relative_to(self.root).parts
            if path.is_file() and inside[0] not in LEFT_OUT and not path.name.startswith("."):
                yield path
