"""Effects and scored predictions as tables, each beside what its metric can say of the arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from mragaudit.grid.resampling import scope_of
from mragaudit.grid.seed_tests import SEED_COLUMNS, holm_within
from mragaudit.hookaudit.matrix import Cell
from mragaudit.hookaudit.predictions import Effect, PredictionScores, ScoredPrediction
from mragaudit.tables.frames import Row, frame

CallsOfEffect = Mapping[tuple[str, str, str], float]
"""Arm, attack and where → target calls of one of the cells, on the average."""
SeedsOfEffect = Mapping[tuple[str, str, str, str], Row]
"""Arm, attack, metric and where → cells of the test over seeds."""
MEASURED = ("n", "n_not_evaluated", "baseline", "defended", "difference")
LIMITS = ("ci_low", "ci_high", "ci_method", "ci_level")
EFFECT_COLUMNS = (
    *("arm", "attack", "metric", "where", *MEASURED, *LIMITS, "identical", "calls_per_cell"),
    *("ci_scope", *SEED_COLUMNS, "sight", "reported_as_effect", "words"),
)
COMPARED = ("n", "n_not_evaluated", "difference", *LIMITS)
PREDICTION_COLUMNS = (
    *("arm", "attack", "metric", "where", "expectation", "movement", "outcome", *COMPARED),
    *("tolerance", "calls_per_cell", "words"),
)


def effects_table(
    effects: Sequence[Effect],
    cells: Mapping[tuple[str, str], Cell],
    *,
    calls: CallsOfEffect,
    seeds: SeedsOfEffect,
) -> pd.DataFrame:
    """Return one row an effect; `reported_as_effect` is false where the metric cannot see the arm's active hooks.

    Holm's correction of the tests over seeds is over all of one metric.
    """
    made = [_effect_row(effect, cells[effect.defense, effect.metric], calls, seeds) for effect in effects]
    return frame(holm_within(made, family=[effect.metric for effect in effects]), EFFECT_COLUMNS)


def _calls_of(effect: Effect, calls: CallsOfEffect) -> float | None:
    return calls.get((effect.defense, effect.attack, effect.cell))


def _effect_row(effect: Effect, cell: Cell, calls: CallsOfEffect, seeds: SeedsOfEffect) -> Row:
    return {
        "arm": effect.defense,
        "attack": effect.attack,
        "metric": effect.metric,
        "where": effect.cell,
        **{name: getattr(effect, name) for name in (*MEASURED, *LIMITS, "identical")},
        "calls_per_cell": _calls_of(effect, calls),
        "ci_scope": scope_of(effect.ci_method),
        **seeds.get((effect.defense, effect.attack, effect.metric, effect.cell), {}),
        "sight": cell.sight,
        "reported_as_effect": cell.reported_as_effect,
        "words": cell.words,
    }


def effects_of(table: pd.DataFrame) -> Iterator[Effect]:
    """Yield the effects of a table as `effects_table` wrote it."""
    known = table.astype(object).where(table.notna(), None)
    for row in known.to_dict("records"):
        yield Effect(
            defense=row["arm"],
            attack=row["attack"],
            metric=row["metric"],
            cell=row["where"] or "",
            **{name: row[name] for name in ("baseline", "defended", "difference", "ci_low", "ci_high", "ci_level")},
            ci_method=row["ci_method"] or "",
            n=int(row["n"]),
            n_not_evaluated=int(row["n_not_evaluated"]),
            identical=bool(row["identical"]),
        )


def predictions_table(scores: PredictionScores, *, calls: CallsOfEffect) -> pd.DataFrame:
    """Return one row for every prediction and effect: right, wrong, undecided, or apart where it allows both."""
    return frame((_prediction_row(one, scores, calls) for one in scores.scored), PREDICTION_COLUMNS)


def _prediction_row(one: ScoredPrediction, scores: PredictionScores, calls: CallsOfEffect) -> Row:
    effect = one.effect
    measured = {} if effect is None else {name: getattr(effect, name) for name in COMPARED}
    return {
        "arm": one.prediction.defense,
        "attack": one.prediction.attack,
        "metric": one.prediction.metric,
        "where": "" if effect is None else effect.cell,
        "expectation": one.prediction.expectation,
        "movement": one.movement,
        "outcome": one.outcome,
        **measured,
        "calls_per_cell": None if effect is None else _calls_of(effect, calls),
        "tolerance": scores.rule.tolerance_of(one.prediction.metric),
        "words": one.words,
    }
