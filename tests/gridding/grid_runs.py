"""A whole grid on scripted models, stage by stage in this process, as small as its claims allow."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

from mragaudit.config import Settings, load_settings
from mragaudit.config.load import merge
from mragaudit.paths import RunPaths
from mragaudit.stages import (
    grid_calls,
    grid_documents,
    grid_hooks,
    grid_page,
    grid_plan,
    grid_scores,
    grid_tables,
    manifest,
)
from mragaudit.stages.jobs import ModelJob

CONFIG: dict[str, Any] = {
    "run": "small",
    "shards": 2,
    "statistics": {"resamples": 100},
    "hook_audit": {
        "defenses": [["none"], ["dp_r"], ["pad"]],
        "attacks": ["ps", "mi"],
        "indexed": 8,
        "held_out": 8,
        "budget": 3,
        "benign_questions": 2,
        "canaries": {"classes": ["email"], "seeds": [1, 2], "per_seed": 4, "held_out": 4, "budget": 4},
        "adaptive": {"probes": []},
    },
    "roles": {
        "generator": {"backend": "scripted", "model": "echo", "sha256": None},
        "attacker": {"backend": "scripted", "model": "blind", "sha256": None},
        "embedder": {"backend": "hashing", "model": "trigrams"},
    },
}


def grid_settings(**over: Any) -> Settings:
    """Return the settings of the small grid with sections laid on top."""
    return load_settings(merge(CONFIG, over))


def run_grid(folder: Path, settings: Settings) -> RunPaths:
    """Run every stage of the grid below a folder and return where its files are."""
    run_folder = Path("results", settings.run)
    grid = RunPaths(run_folder).grid
    with chdir(folder):
        grid_plan.run(cells=grid.root / "cells.jsonl", settings=settings)
        documents = grid.root / "documents.jsonl"
        grid_documents.run(documents=documents, splits=grid.root / "splits.jsonl", settings=settings)
        grid_hooks.run(hooks=grid.root / "hooks.json", settings=settings)
        for shard in settings.shard_names:
            _call(grid, shard, settings)
        calls, uses = (grid.shards(name, settings.shard_names) for name in ("calls", "uses"))
        grid_scores.run(run_folder=run_folder, calls=calls, settings=settings)
        grid_tables.run(run_folder=run_folder, uses=uses, settings=settings)
        manifest.run(run_folder=grid.root, manifest=grid.manifest, settings=settings)
        grid_page.run(run_folder=run_folder, html=grid.report, settings=settings)
    return RunPaths(folder / grid.root)


def _call(grid: RunPaths, shard: str, settings: Settings) -> None:
    [calls], [uses] = (grid.shards(name, [shard]) for name in ("calls", "uses"))
    with ModelJob(stage="grid_calls", run=f"{settings.run}/hook_audit", shard=shard, threads=1) as job:
        grid_calls.run(
            cells=grid.root / "cells.jsonl",
            documents=grid.root / "documents.jsonl",
            calls=calls,
            uses=uses,
            job=job,
            settings=settings,
        )
