"""Stage `grid_tables`: what the grid shows, as tables; no model is needed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pandas as pd

from mragaudit.config import Settings
from mragaudit.corpus.canaries import shared_words
from mragaudit.corpus.grid_templates import read_vocabulary
from mragaudit.grid.adaptive import Contest, attack_runs, best_of_family
from mragaudit.grid.cells import MEMBERSHIP, UNDEFENDED, arms_by_name, arms_of, cells_to_run
from mragaudit.grid.certification import certify
from mragaudit.grid.controls import controls_table, require_controls
from mragaudit.grid.effect_tables import effects_table, predictions_table
from mragaudit.grid.effects import effect_calls, effect_seed_tests, grid_effects
from mragaudit.grid.finding_tables import adaptive_table, canaries_table, certification_table, membership_table
from mragaudit.grid.hooks import arm_hooks, coverage_table, hooks_table, matrix_table
from mragaudit.grid.leak_tables import extraction_table, leak_types_table, leaks_table
from mragaudit.grid.membership import membership_row
from mragaudit.grid.plan_tables import cells_table
from mragaudit.grid.recovery import calls_of_arms, canary_runs, recovery_rows
from mragaudit.grid.resampling import Resampling
from mragaudit.grid.rows import GridRows, by_cell
from mragaudit.grid.success_tables import PLAIN, attack_success_table, extraction_curve_table
from mragaudit.grid.utility import utility_table
from mragaudit.hookaudit.attacks import shipped_attacks
from mragaudit.hookaudit.matrix import ActiveHooks, build_matrix
from mragaudit.hookaudit.metrics import shipped_metrics
from mragaudit.hookaudit.predictions import Effect, PredictionScores, ScoringRule, predict, score_predictions
from mragaudit.paths import RunPaths
from mragaudit.records.base import iter_records, read_records, write_text
from mragaudit.records.grid import (
    BenignOutcome,
    CallOutcome,
    CandidateScore,
    Cell,
    CellUse,
    DocumentExtraction,
    ItemKind,
    ItemOutcome,
    NelCount,
    SplitCheck,
    cell_key,
    split_check_key,
)
from mragaudit.records.grid_findings import AdaptiveRow, MembershipRow
from mragaudit.registry import create
from mragaudit.resources import resource_folder
from mragaudit.stages.aggregate import to_csv
from mragaudit.stages.grid_documents import vocabularies
from mragaudit.stages.grid_hooks import read_hooks
from mragaudit.tables.frames import frame

logger = logging.getLogger(__name__)


def run(*, run_folder: Path, uses: Sequence[Path], settings: Settings) -> None:
    """Write `hook_audit/tables/*.csv`; raises GateError where a control failed."""
    grid = RunPaths(run_folder).grid
    every = read_records(grid.root / "cells.jsonl", Cell, key=cell_key)
    rows = read_rows(grid, every, uses=uses)
    controls = controls_table(rows)
    require_controls(controls)
    built = build_tables(grid, every, rows, settings=settings)
    for name, table in {**built, "controls": controls}.items():
        write_text(grid.table(name), to_csv(table))
    logger.info("grid_tables: %d tables", len(built) + 1)


def read_rows(grid: RunPaths, cells: Sequence[Cell], *, uses: Sequence[Path]) -> GridRows:
    """Return all scored rows by cell."""
    return GridRows(
        cells=tuple(cells_to_run(cells)),
        uses={use.cell_id: use for path in uses for use in iter_records(path, CellUse)},
        items=by_cell(iter_records(grid.scores("items"), ItemOutcome)),
        nel=by_cell(iter_records(grid.scores("nel"), NelCount)),
        candidates=by_cell(iter_records(grid.scores("candidates"), CandidateScore)),
        extractions=by_cell(iter_records(grid.scores("extractions"), DocumentExtraction)),
        calls=by_cell(iter_records(grid.scores("calls"), CallOutcome)),
        benign=by_cell(iter_records(grid.scores("benign"), BenignOutcome)),
    )


def build_tables(
    grid: RunPaths, cells: Sequence[Cell], rows: GridRows, *, settings: Settings
) -> dict[str, pd.DataFrame]:
    """Return all tables but that of the controls, by name."""
    resampling = resampling_of(settings)
    checks = read_records(grid.root / "splits.jsonl", SplitCheck, key=split_check_key)
    return {
        "cells": cells_table(cells, rows.uses),
        **hook_tables(grid, rows, checks, settings=settings),
        "leaks": leaks_table(rows, resampling=resampling),
        "leak_types": leak_types_table(rows, resampling=resampling),
        "extraction": extraction_table(rows, resampling=resampling),
        "attack_success": attack_success_table(
            rows, k=settings.hook_audit.k, paired=variants_of_ps(settings), resampling=resampling
        ),
        "extraction_curve": extraction_curve_table(rows, resampling=resampling),
        "membership": membership_table(membership_rows(rows, checks, resampling=resampling), rows.uses),
        "splits": splits_table(checks),
        "utility": utility_table(rows, k=settings.hook_audit.k, resampling=resampling),
        **canary_tables(rows, settings=settings),
        "adaptive": adaptive_table(adaptive_rows(rows, settings=settings)),
    }


def canary_tables(rows: GridRows, *, settings: Settings) -> Mapping[str, pd.DataFrame]:
    """Return what was recovered of every class of canaries, and what may be certified."""
    canaries = settings.hook_audit.canaries
    outcomes = [item for found in rows.items.values() for item in found]
    runs = canary_runs(rows.cells, outcomes)
    arms = list(dict.fromkeys(one.arm.name for one in arms_of(settings.hook_audit, canaries.defenses)))
    words = _shared_words(outcomes, arms, resources=resource_folder(settings.resources))
    certified = certify(runs, classes=canaries.classes, arms=arms, undefended=UNDEFENDED, shared_words=words)
    calls = calls_of_arms(rows)
    return {
        "canaries": canaries_table(recovery_rows(runs, confidence=settings.statistics.confidence), calls),
        "certification": certification_table(certified, calls),
    }


def _shared_words(
    outcomes: Iterable[ItemOutcome], arms: Iterable[str], *, resources: Path
) -> dict[tuple[ItemKind, str], tuple[str, ...]]:
    """Return the words of scorer and defenses that occur in names of canaries: recovery would be entangled."""
    names = {item.value for item in outcomes if item.canary and item.kind == "person_name"}
    found = shared_words(sorted(names), read_vocabulary(vocabularies(resources)))
    return {("person_name", arm): found for arm in arms}


def adaptive_rows(rows: GridRows, *, settings: Settings) -> list[AdaptiveRow]:
    """Return the best adaptive attack of every arm; none where no probe was run."""
    adaptive = settings.hook_audit.adaptive
    if not adaptive.probes:
        return []
    contest = Contest(
        family=adaptive.probes,
        fixed=adaptive.fixed_attack,
        budget=adaptive.budget,
        development_seeds=adaptive.development_seeds,
        test_seeds=adaptive.check_seeds,
        confidence=settings.statistics.confidence,
    )
    cells = [cell for cell in rows.cells if cell.purpose == "adaptive"]
    runs = attack_runs(cells, (item for cell in cells for item in rows.items.get(cell.cell_id, ())))
    return best_of_family(runs, contest)


def variants_of_ps(settings: Settings) -> frozenset[str]:
    """Return the attacks whose every question is a variant of the question of PS with the same number."""
    grid = settings.hook_audit
    built = {name: create("attack", name, options=grid.attack_options.get(name, {})) for name in grid.attacks}
    return frozenset(name for name, attack in built.items() if getattr(attack, "paired_with", None) == PLAIN)


def resampling_of(settings: Settings) -> Resampling:
    """Return how intervals are made."""
    given = settings.statistics
    return Resampling(seed=settings.seed, resamples=given.resamples, confidence=given.confidence)


def hook_tables(
    grid: RunPaths, rows: GridRows, checks: Sequence[SplitCheck], *, settings: Settings
) -> Mapping[str, pd.DataFrame]:
    """Return what source says of the arms, what was measured, and how far the two agree."""
    findings = read_hooks(grid.root / "hooks.json")
    metrics = shipped_metrics(settings.resources)
    arms = arms_by_name(settings.hook_audit).values()
    acting = arm_hooks(arms, findings.inventory)
    rejected = {check.realisation for check in checks if check.verdict == "rejected"}
    attacks, resampling = shipped_attacks(settings.resources), resampling_of(settings)
    effects = list(grid_effects(rows, attacks, resampling=resampling, rejected=rejected))
    defended = [one for one in acting if one.defense != UNDEFENDED]
    run_attacks = {cell.attack for cell in rows.cells}
    scores = score_by_source(defended, effects, run_attacks=run_attacks, settings=settings)
    cells = {(cell.defense, cell.metric): cell for cell in build_matrix(acting, metrics)}
    combinations = dict.fromkeys(tuple(arm.defenses) for arm in arms)
    calls = effect_calls(rows)
    return {
        "hooks": hooks_table(findings, sorted({name for parts in combinations for name in parts})),
        "matrix": matrix_table(defended, metrics),
        "coverage": coverage_table(combinations),
        "effects": effects_table(
            effects, cells, calls=calls, seeds=effect_seed_tests(rows, attacks, rejected=rejected)
        ),
        "predictions": predictions_table(scores, calls=calls),
    }


def score_by_source(
    acting: Sequence[ActiveHooks], effects: Sequence[Effect], *, run_attacks: Collection[str], settings: Settings
) -> PredictionScores:
    """Return the predictions of the defended arms on the attacks that were run, scored by the effects."""
    attacks = shipped_attacks(settings.resources)
    kept = msgspec.structs.replace(attacks, attacks=tuple(one for one in attacks.attacks if one.name in run_attacks))
    predictions = predict(acting, shipped_metrics(settings.resources), attacks=kept)
    return score_predictions(predictions, effects, rule=ScoringRule(tolerance=settings.hook_audit.tolerance))


def membership_rows(rows: GridRows, checks: Sequence[SplitCheck], *, resampling: Resampling) -> Iterator[MembershipRow]:
    """Yield one row for every cell of membership inference."""
    by_realisation = {check.realisation: check for check in checks}
    for cell in rows.cells:
        if cell.attack == MEMBERSHIP:
            yield membership_row(
                cell,
                rows.candidates[cell.cell_id],
                check=by_realisation[cell.realisation],
                resampling=resampling,
            )


def splits_table(checks: Sequence[SplitCheck]) -> pd.DataFrame:
    """Return one row a realisation: whether members can be told by text alone, rejected splits among them."""
    columns = [name for name in SplitCheck.__struct_fields__ if name != "record"]
    return frame(({name: getattr(check, name) for name in columns} for check in checks), columns)
