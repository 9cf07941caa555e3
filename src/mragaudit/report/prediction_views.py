"""Predictions of the hook audit as its page prints them, with the attacks and the scores of a run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mragaudit.hookaudit.attacks import Attack, AttackMap
from mragaudit.hookaudit.matrix import named_hooks
from mragaudit.hookaudit.predictions import (
    Effect,
    Prediction,
    PredictionGroup,
    PredictionScores,
    ScoreCount,
    ScoredPrediction,
    grouped,
)
from mragaudit.report import words
from mragaudit.report.hooks_views import text_table
from mragaudit.report.tables import TableView

SPEC_WORDS = {
    "published": "published",
    "partly_published": "published in part",
    "assumption": "assumption",
    "own": "our own",
}
COUNTED = (
    *("n", "right", "wrong", "undecided", "moved_up", "moved_down"),
    *("not_moved", "unclear", "not_evaluated", "not_run"),
)
SCORE_NUMBERS = ("baseline", "defended", "difference", "n", "not evaluated")
SCORE_HEADERS = (
    *("defense", "attack", "metric", "predicted", "came out", "cell", "baseline", "defended", "difference"),
    *("interval", "n", "not evaluated", "why"),
)


class PredictionsView(msgspec.Struct, frozen=True, kw_only=True):
    """What attacks ought to show."""

    table: TableView
    idle: tuple[str, ...]
    """Defenses of which no metric can show an effect; they have no rows in the table."""


class ScoresView(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says of the predictions."""

    summary: str
    rule: str
    counts: TableView
    wrong: TableView
    undecided: TableView
    all: TableView


def attacks_view(attacks: AttackMap) -> TableView:
    """Return the attacks with the origin of their steps, so that an assumption is marked where results stand."""
    rows = [(one.name, one.title, SPEC_WORDS[one.spec], _origin(one), one.aim) for one in attacks.attacks]
    headers = ("attack", "title", "steps", "source, and what is ours in it", "aim")
    return text_table(headers, rows, caption="The attacks; assumptions about their steps are ours")


def _origin(attack: Attack) -> str:
    ours = f"ours: {attack.assumed}" if attack.assumed else ""
    return "; ".join(part for part in (attack.source, ours) if part) or words.MISSING


def predictions_view(predictions: Sequence[Prediction]) -> PredictionsView:
    """Return the predictions by defense, attacks of which the same is predicted together."""
    acting = {one.defense for one in predictions if one.hooks or one.open_hooks}
    idle = dict.fromkeys(one.defense for one in predictions if one.defense not in acting)
    rows = [
        (
            group.defense,
            ", ".join(group.attacks),
            group.expectation.replace("_", " "),
            ", ".join(group.metrics),
            _remarks(group),
        )
        for group in grouped(predictions)
        if group.defense in acting
    ]
    caption = f"{len(predictions)} predictions, one for every defense, attack and metric of the attack"
    table = text_table(("defense", "attacks", "expectation", "metrics", "remark"), rows, caption=caption)
    return PredictionsView(table=table, idle=tuple(idle))


def _remarks(group: PredictionGroup) -> str:
    remarks = [f"made to get round {named_hooks(group.evaded)}"] if group.evaded else []
    remarks += [f"open: the source does not tell of {named_hooks(group.open_hooks)}"] if group.open_hooks else []
    return "; ".join(remarks) or words.MISSING


def scores_view(scores: PredictionScores) -> ScoresView:
    """Return how the predictions came out: in a sentence, counted, the wrong and undecided ones, and all."""
    right, wrong, undecided = (scores.count(outcome) for outcome in ("right", "wrong", "undecided"))
    summary = (
        f"Of {right + wrong + undecided} evaluated effects of which something firm was predicted, {right} came out "
        f"right, {wrong} wrong and {undecided} undecided. {scores.count('apart')} more may move or stay and are "
        f"counted apart; {scores.count('not_evaluated')} were not evaluated, {scores.count('not_run')} not run."
    )
    of = {name: [one for one in scores.scored if one.outcome == name] for name in ("wrong", "undecided")}
    return ScoresView(
        summary=summary,
        rule=_rule(scores),
        counts=_counts_table(scores.counts),
        wrong=_score_table(of["wrong"], caption="Predictions that came out wrong"),
        undecided=_score_table(of["undecided"], caption="Predictions that the run does not decide"),
        all=_score_table(scores.scored, caption="All predictions with their effects"),
    )


def _rule(scores: PredictionScores) -> str:
    rule = scores.rule
    own = "".join(f", {name} ±{tolerance:g}" for name, tolerance in rule.tolerances.items())
    return (
        "Moved: the interval of the difference excludes 0. Not moved: it lies inside the tolerance "
        f"(±{rule.tolerance:g}{own}, in the unit of the metric), or both arms are the same byte for byte. Unclear: "
        f"neither, fewer than {rule.min_units} units, no interval, or one of no width at 0."
    )


def _counts_table(counts: Sequence[ScoreCount]) -> TableView:
    rows = [
        (one.expectation.replace("_", " "), *(words.as_count(getattr(one, name)) for name in COUNTED)) for one in counts
    ]
    headers = ("predicted", *(name.replace("_", " ") for name in COUNTED))
    return text_table(headers, rows, caption="Effects by what was predicted of them", numeric=headers[1:])


def _score_table(scored: Sequence[ScoredPrediction], *, caption: str) -> TableView:
    rows = [(*_predicted(one), *_measured(one.effect), one.words) for one in scored]
    return text_table(SCORE_HEADERS, rows, caption=caption, numeric=SCORE_NUMBERS)


def _predicted(one: ScoredPrediction) -> tuple[str, ...]:
    made, outcome, movement = one.prediction, one.outcome.replace("_", " "), one.movement.replace("_", " ")
    came_out = outcome if outcome == movement else f"{outcome}: {movement}"
    return made.defense, made.attack, made.metric, made.expectation.replace("_", " "), came_out


def _measured(effect: Effect | None) -> tuple[str, ...]:
    if effect is None:
        return (words.MISSING,) * 7
    return (
        effect.cell or words.MISSING,
        words.as_number(effect.baseline),
        words.as_number(effect.defended),
        words.as_signed(effect.difference),
        _interval(effect),
        words.as_count(effect.n),
        words.as_count(effect.n_not_evaluated),
    )


def _interval(effect: Effect) -> str:
    if effect.ci_low is None:
        return words.MISSING
    limits = words.as_signed_interval(effect.ci_low, effect.ci_high)
    return f"{limits} ({words.method_in_words(effect.ci_method, confidence=effect.ci_level)})"
