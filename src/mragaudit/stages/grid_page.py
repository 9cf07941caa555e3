"""Stage `grid_page`: the hook audit's findings on one page; no model is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.grid.cells import UNDEFENDED, arms_by_name
from mragaudit.grid.effect_tables import effects_of
from mragaudit.grid.hooks import arm_hooks, of_defenses
from mragaudit.hookaudit.attacks import shipped_attacks
from mragaudit.hookaudit.metrics import shipped_metrics
from mragaudit.leaks.nel import NEL_VERSION, nel_digest
from mragaudit.paths import GRID_TABLES, RunPaths
from mragaudit.records.base import write_text
from mragaudit.report.grid_page import GridReport, render_grid
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.grid_hooks import read_hooks
from mragaudit.stages.grid_tables import score_by_source

MODES: Mapping[str, str] = {
    "in_domain_queries": "the attacker knows what the collection is about and which subjects it deals with",
    "targeted_queries": "the attacker knows the public titles of documents as well, never an item",
}


def run(*, run_folder: Path, html: Path, settings: Settings) -> None:
    """Write `hook_audit/report.html`."""
    grid = RunPaths(run_folder).grid
    tables = {name: read_table(grid.table(name)) for name in GRID_TABLES}
    findings = read_hooks(grid.root / "hooks.json")
    arms = [arm for arm in arms_by_name(settings.hook_audit).values() if arm.name != UNDEFENDED]
    acting = arm_hooks(arms, findings.inventory)
    run_attacks = set(tables["cells"]["attack"])
    scores = score_by_source(acting, list(effects_of(tables["effects"])), run_attacks=run_attacks, settings=settings)
    report = GridReport(
        run=settings.run,
        tables=tables,
        confidence=settings.statistics.confidence,
        inventory=of_defenses(findings.inventory),
        observations=findings.observations,
        not_probed=findings.not_probed,
        acting=acting,
        metrics=shipped_metrics(settings.resources),
        attacks=shipped_attacks(settings.resources),
        scores=scores,
        modes={mode: MODES[mode] for mode in settings.hook_audit.modes},
        settings_summary=list(_summary(settings)),
    )
    write_text(html, render_grid(report))


def _summary(settings: Settings) -> Iterator[tuple[str, str]]:
    grid, roles = settings.hook_audit, settings.roles
    yield "generator", f"{roles.generator.model} ({roles.generator.backend})"
    yield "attackers' own model", f"{roles.attacker.model} ({roles.attacker.backend})"
    yield "embedder", f"{roles.embedder.model} ({roles.embedder.backend})"
    yield "corpora", ", ".join(grid.corpora)
    yield "indexed, held-out documents", f"{grid.indexed}, {grid.held_out}"
    yield "realisations of the grid (seeds)", ", ".join(map(str, grid.seeds))
    yield "realisations of the canaries (seeds)", ", ".join(map(str, grid.canaries.seeds))
    yield "nominal epsilons", ", ".join(f"{epsilon:g}" for epsilon in grid.epsilons)
    yield "documents retrieved (k)", str(grid.k)
    yield "longest answer, in tokens", str(grid.max_tokens)
    yield "target calls of an extraction attack", str(grid.budget)
    yield "NEL_strict", f"version {NEL_VERSION}, lexicon {nel_digest(settings.resources)}"
    yield "tolerance of “not moved”", f"±{grid.tolerance:g}"
