"""The workflow's scripts run in this process, as Snakemake would run them, in order and without its start-up time.

Run as a program it runs one job, so that a test can kill it: `python pipeline.py STAGE SHARD` in a folder that
holds `settings.json`.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from mragaudit.config import Settings, load_settings, settings_slice
from mragaudit.config.load import merge
from mragaudit.config.slices import STAGE_KEYS
from mragaudit.paths import FIGURES, GRID_TABLES, MONITOR_TABLES, TABLES, RunPaths

REPOSITORY = Path(__file__).parents[2]
CASE = REPOSITORY / "tests" / "cases" / "scripted" / "config.yaml"
GRID_CASE = REPOSITORY / "tests" / "cases" / "grid" / "config.yaml"
SCRIPTS = REPOSITORY / "workflow" / "scripts"
SETTINGS_FILE = "settings.json"

Io = tuple[dict[str, Any], dict[str, Any]]


class Files(SimpleNamespace):
    """Named files of a job, as Snakemake hands them to a script."""

    def items(self) -> Any:
        return vars(self).items()


def case_config(**over: Any) -> dict[str, Any]:
    """Return the scripted case's config with sections laid on top."""
    return merge(yaml.safe_load(CASE.read_text(encoding="utf-8")), over)


def case_settings(**over: Any) -> Settings:
    """Return the scripted case's settings with sections laid on top."""
    return load_settings(case_config(**over))


def grid_settings(**over: Any) -> Settings:
    """Return the settings of the scripted grid with sections laid on top."""
    return load_settings(merge(yaml.safe_load(GRID_CASE.read_text(encoding="utf-8")), over))


def scripted(model: str, **options: Any) -> dict[str, Any]:
    """Return a role on the scripted backend, with two attempts a call to keep waits short."""
    return {"backend": "scripted", "model": model, "sha256": None, "attempts": 2, "options": options}


class Pipeline:
    """All jobs of one run below a folder; paths are relative to it, as in a real run."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings
        self.run_folder = Path("results", settings.run)
        self.paths = RunPaths(self.run_folder)
        self.files = RunPaths(folder / self.run_folder)

    def run(self) -> RunPaths:
        """Run every stage and return where the files are."""
        self.before("score")
        for stage in AFTER_SHARDS:
            self.job(stage)
        return self.files

    def monitor(self) -> RunPaths:
        """Run the stages of the exfiltration monitor's replay, and what they need; return where the files are."""
        self.before("judge")
        if self.settings.monitor.access_log is not None:
            self.job("monitor_log")
        for stage in ("monitor_traffic", "monitor_replay"):
            for part in monitor_parts(self.settings) if stage == "monitor_replay" else SIMULATED:
                self.job(stage, part)
        for stage in ("monitor_closed_loop", "monitor_tables", "monitor_page"):
            self.job(stage)
        return self.files

    def grid(self, *stages: str) -> RunPaths:
        """Run some stages of the hook audit's grid, all where none is named; return where the files are."""
        for stage in stages or GRID_ORDER:
            for shard in self.settings.shard_names if stage in SHARDED else ("all",):
                self.job(stage, shard)
        return self.files.grid

    def before(self, last: str) -> None:
        """Run every stage before `last`."""
        for stage in ORDER[: ORDER.index(last)]:
            for shard in self.settings.shard_names if stage in SHARDED else ("all",):
                self.job(stage, shard)

    def job(self, stage: str, shard: str = "all") -> None:
        """Run one job; an error of ours ends in SystemExit, as in a job of Snakemake."""
        variants = self.settings.filter.variants if stage == "filter" else (None,)
        with chdir(self.folder):
            for variant in variants:
                self._script(stage, shard, variant)

    def log(self, name: str) -> str:
        """Return the log of a job, named as in the Snakefile."""
        return (self.files.root / "logs" / f"{name}.log").read_text(encoding="utf-8")

    def _script(self, stage: str, shard: str, variant: str | None) -> None:
        inputs, outputs = IO[stage](self, shard) if variant is None else self._filter_io(shard, variant)
        named = stage in SHARDED or stage in IN_PARTS
        parts = [stage, *([variant] if variant else []), *([shard] if named else [])]
        whole = self.settings.model_dump(mode="json")
        given = SimpleNamespace(
            input=Files(**inputs),
            output=Files(**outputs),
            log=[str(self.run_folder / "logs" / f"{'.'.join(parts)}.log")],
            params=SimpleNamespace(settings=settings_slice(self.settings, stage) if stage in STAGE_KEYS else whole),
            wildcards=SimpleNamespace(run=self.settings.run, shard=shard, filter=variant, seeds=shard),
            threads=1,
        )
        runpy.run_path(str(SCRIPTS / f"{stage}.py"), init_globals={"snakemake": given})

    def shard(self, folder: str, shard: str) -> str:
        """Return the file of a shard."""
        return str(self.run_folder / folder / f"{shard}.jsonl")

    def shards(self, folder: str) -> list[str]:
        """Return the files of all shards."""
        return [self.shard(folder, name) for name in self.settings.shard_names]

    def _filter_io(self, shard: str, variant: str) -> Io:
        return (
            {"generations": self.shard("generations", shard)},
            {"filtered": self.shard(f"filtered/{variant}", shard)},
        )


def _documents(run: Pipeline) -> dict[str, str]:
    return {"documents": str(run.paths.documents)}


def _all_queries(run: Pipeline) -> dict[str, list[str]]:
    return {"all_queries": run.shards("queries")}


def _outputs_of(stage: str, folder: str) -> dict[str, str]:
    """Return the folders of a model stage's rows and of its repeats."""
    return {folder: folder, "repeats": f"repeats/{stage}"}


def _judge_io(run: Pipeline, shard: str) -> Io:
    names = ("queries", "translations", "backtranslations", "retrieval")
    inputs = {name: run.shard(name, shard) for name in names}
    outputs = [run.shard(f"judgements/{judge}", shard) for judge in run.settings.judge.variants]
    given = {**_documents(run), **inputs, **_all_queries(run), "thresholds": str(run.paths.thresholds)}
    return given, {"variants": outputs, "repeats": run.shard("repeats/judge", shard)}


def _generate_io(run: Pipeline, shard: str) -> Io:
    inputs = {name: run.shard(name, shard) for name in ("translations", "retrieval")}
    outputs = {name: run.shard(folder, shard) for name, folder in _outputs_of("generate", "generations").items()}
    return {**_documents(run), **inputs, **_all_queries(run)}, outputs


def monitor_parts(settings: Settings) -> tuple[str, ...]:
    """Return the parts of the monitor's traffic, as in the Snakefile."""
    return (*SIMULATED, "log") if settings.monitor.access_log is not None else SIMULATED


def _monitor_file(run: Pipeline, folder: str, part: str) -> str:
    return str(run.paths.monitor / folder / f"{part}.jsonl")


def _monitor_traffic_io(run: Pipeline, part: str) -> Io:
    inputs = {name: run.shards(name) for name in ("translations", "retrieval")}
    trials = str(run.paths.trials) if run.settings.monitor.answers else []
    index = str(run.run_folder / "index")
    return {**_documents(run), **inputs, "index": index, "trials": trials}, {
        "traffic": _monitor_file(run, "traffic", part)
    }


def _monitor_tables_io(run: Pipeline, _: str) -> Io:
    folders = {"traffic": "traffic", "counts": "replay"}
    inputs: dict[str, Any] = {
        name: [_monitor_file(run, folder, part) for part in monitor_parts(run.settings)]
        for name, folder in folders.items()
    }
    return {**inputs, "delivered": str(run.paths.monitor / "closed_loop.jsonl")}, {
        name: str(run.paths.monitor_table(name)) for name in MONITOR_TABLES
    }


def _scored(run: Pipeline) -> dict[str, str]:
    return {"trials": str(run.paths.trials), "noise": str(run.paths.noise)}


def _tables(run: Pipeline) -> dict[str, str]:
    return {name: str(run.paths.table(name)) for name in TABLES}


def _grid_file(run: Pipeline, name: str) -> str:
    return str(run.paths.grid.root / name)


def _grid_shards(run: Pipeline, folder: str) -> list[str]:
    return [_grid_file(run, f"{folder}/{shard}.jsonl") for shard in run.settings.shard_names]


def _grid_calls_io(run: Pipeline, shard: str) -> Io:
    inputs = {name: _grid_file(run, f"{name}.jsonl") for name in ("cells", "documents")}
    return inputs, {name: _grid_file(run, f"{name}/{shard}.jsonl") for name in ("calls", "uses")}


def _grid_tables_io(run: Pipeline, _: str) -> Io:
    return {"uses": _grid_shards(run, "uses")}, {name: str(run.paths.grid.table(name)) for name in GRID_TABLES}


IO: Mapping[str, Callable[[Pipeline, str], Io]] = {
    "corpus": lambda run, _: ({}, _documents(run)),
    "queries": lambda run, _: (_documents(run), {"shards": run.shards("queries")}),
    "index": lambda run, _: (_documents(run), {"index": str(run.run_folder / "index")}),
    "translate": lambda run, shard: (
        {**_documents(run), **_all_queries(run), "queries": run.shard("queries", shard)},
        {name: run.shard(folder, shard) for name, folder in _outputs_of("translate", "translations").items()},
    ),
    "backtranslate": lambda run, shard: (
        {**_all_queries(run), "translations": run.shard("translations", shard)},
        {name: run.shard(folder, shard) for name, folder in _outputs_of("backtranslate", "backtranslations").items()},
    ),
    "retrieve": lambda run, shard: (
        {"translations": run.shard("translations", shard), "index": str(run.run_folder / "index")},
        {"retrieval": run.shard("retrieval", shard)},
    ),
    "calibrate": lambda run, _: ({"queries": run.shards("queries")}, {"thresholds": str(run.paths.thresholds)}),
    "judge": _judge_io,
    "generate": _generate_io,
    "score": lambda run, _: ({}, _scored(run)),
    "aggregate": lambda run, _: (_scored(run), _tables(run)),
    "figures": lambda run, _: (_tables(run), {name: str(run.paths.figure(name)) for name in FIGURES}),
    "manifest": lambda run, _: ({}, {"manifest": str(run.paths.manifest)}),
    "report": lambda run, _: ({}, {"html": str(run.paths.report)}),
    "monitor_log": lambda run, _: (
        {"log": run.settings.monitor.access_log},
        {"traffic": _monitor_file(run, "traffic", "log")},
    ),
    "monitor_traffic": _monitor_traffic_io,
    "monitor_replay": lambda run, part: (
        {"traffic": _monitor_file(run, "traffic", part)},
        {"counts": _monitor_file(run, "replay", part)},
    ),
    "monitor_closed_loop": lambda run, _: (
        {"traffic": _monitor_file(run, "traffic", "check"), "counts": _monitor_file(run, "replay", "check")},
        {"delivered": str(run.paths.monitor / "closed_loop.jsonl")},
    ),
    "monitor_tables": _monitor_tables_io,
    "monitor_page": lambda run, _: ({}, {"html": str(run.paths.monitor / "report.html")}),
    "grid_plan": lambda run, _: ({}, {"cells": _grid_file(run, "cells.jsonl")}),
    "grid_documents": lambda run, _: (
        {},
        {name: _grid_file(run, f"{name}.jsonl") for name in ("documents", "splits")},
    ),
    "grid_hooks": lambda run, _: ({}, {"hooks": _grid_file(run, "hooks.json")}),
    "grid_calls": _grid_calls_io,
    "grid_scores": lambda run, _: ({"calls": _grid_shards(run, "calls")}, {}),
    "grid_tables": _grid_tables_io,
    "grid_manifest": lambda run, _: ({}, {"manifest": _grid_file(run, "manifest.json")}),
    "grid_page": lambda run, _: ({}, {"html": _grid_file(run, "report.html")}),
}
SIMULATED = ("development", "check")
AFTER_SHARDS = ("score", "aggregate", "figures", "manifest", "report")
SHARDED = ("translate", "backtranslate", "retrieve", "judge", "generate", "filter", "grid_calls")
GRID_ORDER = (
    *("grid_plan", "grid_documents", "grid_hooks", "grid_calls"),
    *("grid_scores", "grid_tables", "grid_manifest", "grid_page"),
)
IN_PARTS = ("monitor_traffic", "monitor_replay")
ORDER = (
    *("corpus", "queries", "index", "translate", "backtranslate", "retrieve"),
    *("calibrate", "judge", "generate", "filter"),
    *AFTER_SHARDS,
)


def write_settings(folder: Path, settings: Settings) -> None:
    """Write the settings that this program reads."""
    (folder / SETTINGS_FILE).write_text(settings.model_dump_json(), encoding="utf-8")


def main() -> None:
    """Run the job named on the command line."""
    stage, shard = sys.argv[1:]
    settings = load_settings(json.loads(Path(SETTINGS_FILE).read_text(encoding="utf-8")))
    Pipeline(Path.cwd(), settings).job(stage, shard)


if __name__ == "__main__":
    main()
