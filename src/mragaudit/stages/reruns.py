"""The stages without a model, run again on the files of a bundle, and what comes out otherwise."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from mragaudit.bundle.contents import Description
from mragaudit.bundle.kinds import GRID_SCORES
from mragaudit.config import Settings
from mragaudit.paths import FIGURES, GRID_TABLES, TABLES, RunPaths
from mragaudit.provenance import versions
from mragaudit.stages import (
    aggregate,
    bundle,
    corpus,
    figures,
    grid_documents,
    grid_hooks,
    grid_page,
    grid_plan,
    grid_scores,
    grid_tables,
    queries,
    report,
    score,
)
from mragaudit.stages import filter as filter_stage

DECIDING_PACKAGES: dict[str, tuple[str, ...]] = {
    "corpus": ("faker",),
    "figures": ("matplotlib", "numpy"),
    "report": ("jinja2",),
    "grid_documents": ("numpy", "scipy"),
    "grid_hooks": ("python",),
    "grid_page": ("jinja2", "matplotlib", "numpy"),
}
"""Packages besides our code on whose versions a stage's bytes depend by nature."""
ALWAYS_SAME = frozenset({"score", "aggregate", "grid_plan", "grid_scores", "grid_tables"})
"""Stages whose bytes must come out again whatever made them: a paper quotes them."""


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage made from a bundle's files."""

    stage: str
    n_files: int
    differences: tuple[str, ...]
    """One line for each file that differs; none where all are the same bytes."""
    other_makers: tuple[str, ...]
    """What is known to have changed since the bundle was made: code, versions of packages."""

    @property
    def excused(self) -> bool:
        """Whether a difference may come from what has changed since, so that it proves nothing."""
        return bool(self.other_makers) and self.stage not in ALWAYS_SAME


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle's run, unpacked."""

    paths: RunPaths
    settings: Settings
    """With the places of the unpacked bundle."""
    report_settings: Settings
    """The same, with the names of the user's own files as the run knew them: the report prints them."""
    description: Description


Stage = Callable[[Source, Path], Mapping[Path, Path]]
"""Runs a stage into a folder and returns the bundle's file → what was made now."""
HOOKS = "hooks.json"
IDS = ("trial_id", "query_id", "cell_id", "realisation", "doc_id")
"""Fields that name a row, the closest first."""


def rerun(stage: str, source: Source, *, folder: Path) -> Rerun:
    """Return how a stage's files, made again in a folder of their own, differ from the bundle's."""
    made = STAGES[stage](source, folder)
    found = (_difference(old, new, below=source.paths.root) for old, new in made.items())
    return Rerun(
        stage=stage,
        n_files=len(made),
        differences=tuple(line for line in found if line is not None),
        other_makers=(*_other_makers(stage, source.description), *_other_sandbox(made)),
    )


def _corpus(source: Source, folder: Path) -> Mapping[Path, Path]:
    made = folder / "documents.jsonl"
    corpus.run(documents=made, run_folder=folder, settings=source.settings)
    return {source.paths.documents: made}


def _queries(source: Source, folder: Path) -> Mapping[Path, Path]:
    names = source.settings.shard_names
    made = {name: folder / f"{name}.jsonl" for name in names}
    queries.run(documents=source.paths.documents, shards=made, settings=source.settings)
    return dict(zip(source.paths.shards("queries", names), made.values(), strict=True))


def _filter(source: Source, folder: Path) -> Mapping[Path, Path]:
    made: dict[Path, Path] = {}
    for variant in source.settings.filter.variants:
        for shard in source.settings.shard_names:
            (old,), (answers,) = (source.paths.shards(name, [shard]) for name in (f"filtered/{variant}", "generations"))
            made[old] = folder / variant / old.name
            filter_stage.run(generations=answers, filtered=made[old], variant=variant)
    return made


def _score(source: Source, folder: Path) -> Mapping[Path, Path]:
    made, noise = folder / "trials.jsonl", folder / "noise.jsonl"
    score.run(run_folder=source.paths.root, trials=made, noise=noise, settings=source.settings)
    return {source.paths.trials: made, source.paths.noise: noise}


def _aggregate(source: Source, folder: Path) -> Mapping[Path, Path]:
    made = {name: folder / f"{name}.csv" for name in TABLES}
    paths = source.paths
    aggregate.run(trials=paths.trials, noise=paths.noise, tables=made, settings=source.settings)
    return {source.paths.table(name): path for name, path in made.items()}


def _figures(source: Source, folder: Path) -> Mapping[Path, Path]:
    made = {name: folder / f"{name}.svg" for name in FIGURES}
    tables = {name: source.paths.table(name) for name in TABLES}
    figures.run(tables=tables, figures=made, settings=source.settings)
    return {source.paths.figure(name): path for name, path in made.items()}


def _report(source: Source, folder: Path) -> Mapping[Path, Path]:
    made = folder / "report.html"
    report.run(run_folder=source.paths.root, html=made, settings=source.report_settings)
    return {source.paths.report: made}


def _grid_plan(source: Source, folder: Path) -> Mapping[Path, Path]:
    made = folder / "cells.jsonl"
    grid_plan.run(cells=made, settings=source.settings)
    return {source.paths.root / made.name: made}


def _grid_documents(source: Source, folder: Path) -> Mapping[Path, Path]:
    made = {name: folder / f"{name}.jsonl" for name in ("documents", "splits")}
    grid_documents.run(**made, settings=source.settings)
    return {source.paths.root / path.name: path for path in made.values()}


def _grid_hooks(source: Source, folder: Path) -> Mapping[Path, Path]:
    made = folder / HOOKS
    grid_hooks.run(hooks=made, settings=source.settings)
    return {source.paths.root / HOOKS: made}


def _grid_scores(source: Source, folder: Path) -> Mapping[Path, Path]:
    copy = _copy_of_grid(source, folder, without="scores")
    calls = copy.shards("calls", source.settings.shard_names)
    grid_scores.run(run_folder=folder, calls=calls, settings=source.settings)
    return {source.paths.scores(kind): copy.scores(kind) for kind in GRID_SCORES}


def _grid_tables(source: Source, folder: Path) -> Mapping[Path, Path]:
    copy = _copy_of_grid(source, folder, without="tables")
    uses = copy.shards("uses", source.settings.shard_names)
    grid_tables.run(run_folder=folder, uses=uses, settings=source.settings)
    return {source.paths.table(name): copy.table(name) for name in GRID_TABLES}


def _grid_page(source: Source, folder: Path) -> Mapping[Path, Path]:
    made = _copy_of_grid(source, folder, without="report.html").report
    grid_page.run(run_folder=folder, html=made, settings=source.report_settings)
    return {source.paths.report: made}


def _copy_of_grid(source: Source, folder: Path, *, without: str) -> RunPaths:
    """Return a run's grid with the bundle's files but those of one name: its stages find their files by themselves.

    Files are linked, not copied; stages write to new names and rename, so the bundle's own are never written to.
    """
    paths = RunPaths(folder).grid
    shutil.copytree(source.paths.root, paths.root, copy_function=os.link, ignore=shutil.ignore_patterns(without))
    return paths


STAGES: dict[str, Stage] = {
    "corpus": _corpus,
    "queries": _queries,
    "filter": _filter,
    "score": _score,
    "aggregate": _aggregate,
    "figures": _figures,
    "report": _report,
    "grid_plan": _grid_plan,
    "grid_documents": _grid_documents,
    "grid_hooks": _grid_hooks,
    "grid_scores": _grid_scores,
    "grid_tables": _grid_tables,
    "grid_page": _grid_page,
}


def _other_makers(stage: str, description: Description) -> Iterator[str]:
    if description.code.get(stage) != bundle.code_digest(stage):
        yield "the code of this stage is another"
    here = versions(DECIDING_PACKAGES.get(stage, ()))
    for package in DECIDING_PACKAGES.get(stage, ()):
        there = description.versions.get(package, "none")
        if here.get(package) != there:
            yield f"{package} is {here.get(package)} here and was {there}"


def _other_sandbox(made: Mapping[Path, Path]) -> Iterator[str]:
    """Yield that hooks were probed on one side alone: where no sandbox works, nothing is run."""
    for old, new in made.items():
        if old.name == HOOKS and any(grid_hooks.read_hooks(path).observations is None for path in (old, new)):
            yield "no sandbox works here, or none did where the bundle was made"


def _difference(old: Path, new: Path, *, below: Path) -> str | None:
    """Return where two files begin to differ, None where they are the same bytes; no text of a row is quoted."""
    before, after = old.read_bytes(), new.read_bytes()
    if before == after:
        return None
    lines = before.splitlines(), after.splitlines()
    number = next((at for at, pair in enumerate(zip(*lines, strict=False)) if pair[0] != pair[1]), min(map(len, lines)))
    name = old.relative_to(below).as_posix()
    return f"{name}, line {number + 1}: {_how(*(part[number : number + 1] for part in lines), suffix=old.suffix)}"


def _how(before: list[bytes], after: list[bytes], *, suffix: str) -> str:
    """Return how the first differing lines differ: the fields of a row, the cells of a table, else nothing."""
    if not before or not after:
        return "rows are missing here" if after else "rows stand here that no stage makes"
    if suffix == ".csv":
        return f"{before[0].decode(errors='replace')} stands here, made again it is {after[0].decode(errors='replace')}"
    if suffix == ".jsonl":
        return _fields(before[0], after[0])
    return "another text is made again"


def _fields(before: bytes, after: bytes) -> str:
    """Return the id of a row and the names of the fields that come out otherwise."""
    old, new = json.loads(before), json.loads(after)
    for key in IDS:
        if old.get(key) != new.get(key):
            return f"{key} {old.get(key)} stands here, made again it is {new.get(key)}"
    name = next((f"{key} {old[key]}" for key in IDS if old.get(key)), "this row")
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return f"{name}: {', '.join(changed)} {'comes' if len(changed) == 1 else 'come'} out otherwise"
