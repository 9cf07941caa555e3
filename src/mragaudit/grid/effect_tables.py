"""Effects and scored predictions as tables, each beside what its metric can say of the arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from mragaudit.hookaudit.matrix import Cell
from mragaudit.hookaudit.predictions import Effect, PredictionScores, ScoredPrediction
from mragaudit.tables.frames import Row, frame

EFFECT_COLUMNS = (
    *("arm", "attack", "metric", "where", "n", "n_not_evaluated", "baseline", "defended", "difference"),
    *("ci_low", "ci_high", "ci_method", "identical", "sight", "reported_as_effect", "words"),
)
PREDICTION_COLUMNS = (
    *("arm", "attack", "metric", "where", "expectation", "movement", "outcome", "n", "n_not_evaluated"),
    *("difference", "ci_low", "ci_high", "ci_method", "tolerance", "words"),
)


def effects_table(effects: Sequence[Effect], cells: Mapping[tuple[str, str], Cell]) -> pd.DataFrame:
    """Return one row an effect; `reported_as_effect` is false where the metric cannot see the arm's active hooks."""
    return frame((_effect_row(effect, cells[effect.defense, effect.metric]) for effect in effects), EFFECT_COLUMNS)


def _effect_row(effect: Effect, cell: Cell) -> Row:
    return {
        "arm": effect.defense,
        "attack": effect.attack,
        "metric": effect.metric,
        "where": effect.cell,
        **{name: getattr(effect, name) for name in EFFECT_COLUMNS[4:13]},
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
            **{name: row[name] for name in ("baseline", "defended", "difference", "ci_low", "ci_high")},
            ci_method=row["ci_method"] or "",
            n=int(row["n"]),
            n_not_evaluated=int(row["n_not_evaluated"]),
            identical=bool(row["identical"]),
        )


def predictions_table(scores: PredictionScores) -> pd.DataFrame:
    """Return one row for every prediction and effect: right, wrong, undecided, or apart where it allows both."""
    return frame((_prediction_row(one, scores) for one in scores.scored), PREDICTION_COLUMNS)


def _prediction_row(one: ScoredPrediction, scores: PredictionScores) -> Row:
    effect = one.effect
    measured = {} if effect is None else {name: getattr(effect, name) for name in PREDICTION_COLUMNS[7:13]}
    return {
        "arm": one.prediction.defense,
        "attack": one.prediction.attack,
        "metric": one.prediction.metric,
        "where": "" if effect is None else effect.cell,
        "expectation": one.prediction.expectation,
        "movement": one.movement,
        "outcome": one.outcome,
        **measured,
        "tolerance": scores.rule.tolerance_of(one.prediction.metric),
        "words": one.words,
    }
