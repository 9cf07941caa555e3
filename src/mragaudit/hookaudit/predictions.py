"""What each metric of each attack ought to show of a defense, from source alone, and how a run bears it out.

The rules of scoring are ours; docs/decisions/0006-hook-inventory.md gives their reasons.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from mragaudit.errors import ConfigError, DataError, did_you_mean
from mragaudit.hookaudit.attacks import Attack, AttackMap
from mragaudit.hookaudit.matrix import ORDER, ActiveHooks, cell, named_hooks
from mragaudit.hookaudit.metrics import Metric, MetricMap, Sight
from mragaudit.hookaudit.verdicts import Hook
from mragaudit.stats.intervals import CONFIDENCE

Expectation = Literal["expected_to_move", "indirect", "nuisance", "not_observable"]
Movement = Literal["moved_up", "moved_down", "not_moved", "unclear", "not_evaluated", "not_run"]
Outcome = Literal["right", "wrong", "undecided", "apart", "not_evaluated", "not_run"]

EXPECTATIONS: tuple[Expectation, ...] = get_args(Expectation)
FIRM: frozenset[Expectation] = frozenset({"expected_to_move", "not_observable"})
"""Predictions that can be wrong; the others allow a movement and its absence."""
MIN_UNITS = 6
"""Paired units below which no movement is called: with five, the exact two-sided sign test at 5 % can never reject
(2 / 2**5 = 0.0625), so neither should an interval."""

_Shared: TypeAlias = tuple[Expectation, tuple[Hook, ...], tuple[Hook, ...]]
_EXPECTATION: dict[Sight, Expectation] = {
    "interpretable": "expected_to_move",
    "indirect": "indirect",
    "nuisance": "nuisance",
    "not_observable": "not_observable",
}


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What one metric of one attack ought to show of one defense."""

    defense: str
    attack: str
    metric: str
    expectation: Expectation
    hooks: tuple[Hook, ...]
    """Active hooks on which the expectation rests."""
    open_hooks: tuple[Hook, ...] = ()
    """Hooks of which the source does not tell and that would make another expectation of it."""
    evaded: tuple[Hook, ...] = ()
    """Hooks among `hooks` whose change the attack is made to get round."""
    words: str


class Effect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run measured: one metric of one attack, with a defense against without, on the same units.

    Estimates, difference and limits are in the unit of the metric and None where nothing could be evaluated. Raises
    ValueError where they contradict one another.
    """

    defense: str
    """Name of the defense arm, as the predictions have it."""
    attack: str
    metric: str
    cell: str = ""
    """What tells effects of one defense, attack and metric apart (corpus, mode, epsilon); empty where there is one."""
    baseline: float | None
    defended: float | None
    difference: float | None
    """Defended minus baseline."""
    ci_low: float | None
    ci_high: float | None
    ci_method: str
    """Name of the interval of the difference; empty where there is none."""
    ci_level: float = CONFIDENCE
    """Confidence level of the limits."""
    n: int
    """Units evaluated in both arms."""
    n_not_evaluated: int
    identical: bool = False
    """Whether what the metric reads was the same byte for byte in both arms on every unit, so that the difference is 0
    by construction and no sample of it."""

    def __post_init__(self) -> None:
        problem = _contradiction(self)
        if problem:
            raise ValueError(f"{self.name}: {problem}")

    @property
    def name(self) -> str:
        """Defense, attack, metric and cell, for a person."""
        return " ".join(part for part in (self.defense, self.attack, self.metric, self.cell) if part)


def _contradiction(effect: Effect) -> str:  # noqa: PLR0911  # one way out for each rule
    """Return what does not fit together in an effect, empty where all does."""
    estimates, limits = (effect.baseline, effect.defended, effect.difference), (effect.ci_low, effect.ci_high)
    if min(effect.n, effect.n_not_evaluated) < 0:
        return "counts are not negative"
    if any((value is None) != (effect.n == 0) for value in estimates):
        return "baseline, defended and difference are all given, or all missing where n is 0"
    if any((value is None) != (not effect.ci_method) for value in limits):
        return "an interval has two limits and a name"
    if not all(math.isfinite(value) for value in (*estimates, *limits) if value is not None):
        return "a figure is not finite; what could not be evaluated is None"
    if effect.ci_low is not None and effect.ci_high is not None and effect.ci_low > effect.ci_high:
        return f"the lower limit {effect.ci_low} is above the upper one {effect.ci_high}"
    if effect.identical and effect.difference != 0:
        return f"identical arms have the difference 0, not {effect.difference}"
    return ""


class ScoringRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a metric counts as moved; stated with every result."""

    tolerance: float
    """Differences inside ± this, in the unit of the metric, count as no movement."""
    tolerances: dict[str, float] = {}
    """Metric → its own tolerance."""
    min_units: int = MIN_UNITS

    def __post_init__(self) -> None:
        for name, tolerance in {"tolerance": self.tolerance, **self.tolerances}.items():
            if not tolerance > 0:
                raise ValueError(f"{name}: a tolerance is above 0, not {tolerance}")

    def tolerance_of(self, metric: str) -> float:
        """Return the tolerance of a metric."""
        return self.tolerances.get(metric, self.tolerance)


class ScoredPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction and what a run says of it."""

    prediction: Prediction
    effect: Effect | None
    """None where the run has none."""
    movement: Movement
    outcome: Outcome
    """`apart` for predictions that allow both."""
    words: str


class ScoreCount(msgspec.Struct, frozen=True, kw_only=True):
    """How the effects came out on which one kind of prediction was made.

    The first three add up to the outcomes of firm predictions, `None` for those that allow both; the next six add up to
    `n`.
    """

    expectation: Expectation
    n: int
    right: int | None
    wrong: int | None
    undecided: int | None
    moved_up: int
    moved_down: int
    not_moved: int
    unclear: int
    not_evaluated: int
    not_run: int


class PredictionScores(msgspec.Struct, frozen=True, kw_only=True):
    """All predictions of a run, scored; effects of one run are not independent, so the counts have no interval."""

    rule: ScoringRule
    scored: tuple[ScoredPrediction, ...]
    counts: tuple[ScoreCount, ...]

    def count(self, outcome: Outcome) -> int:
        """Return how many effects have an outcome."""
        return sum(one.outcome == outcome for one in self.scored)


def predict(defenses: Sequence[ActiveHooks], metrics: MetricMap, *, attacks: AttackMap) -> tuple[Prediction, ...]:
    """Return a prediction for every defense, attack and metric of that attack, in this order.

    Raises ConfigError for an attack that is scored by an unknown metric.
    """
    pairs = [(attack, _metric_of(attack, name, metrics)) for attack in attacks.attacks for name in attack.metrics]
    return tuple(_prediction(defense, attack, metric=metric) for defense in defenses for attack, metric in pairs)


def _metric_of(attack: Attack, name: str, metrics: MetricMap) -> Metric:
    try:
        return metrics.metric(name)
    except ConfigError as error:
        raise ConfigError(f'attack "{attack.name}": {error}') from error


def _prediction(defense: ActiveHooks, attack: Attack, *, metric: Metric) -> Prediction:
    found = cell(defense, metric)
    evaded = tuple(hook for hook in found.hooks if hook in attack.evades)
    words = found.words
    if evaded:
        words += f"; the attack is made to get round {named_hooks(evaded)}, so the metric may stay"
    return Prediction(
        defense=defense.defense,
        attack=attack.name,
        metric=metric.name,
        expectation=_EXPECTATION[found.sight],
        hooks=found.hooks,
        open_hooks=open_hooks(defense, metric),
        evaded=evaded,
        words=words,
    )


def open_hooks(defense: ActiveHooks, metric: Metric) -> tuple[Hook, ...]:
    """Return the undecided hooks that would give the metric a better sight than the decided ones do."""
    decided = [ORDER.index(metric.sight(hook)) for hook in defense.active if hook not in defense.undecided]
    best = min(decided, default=len(ORDER) - 1)
    return tuple(hook for hook in defense.undecided if ORDER.index(metric.sight(hook)) < best)


class PredictionGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Attacks on one defense of which the same is predicted for all their metrics; one row of a table to be read."""

    defense: str
    attacks: tuple[str, ...]
    metrics: tuple[str, ...]
    expectation: Expectation
    open_hooks: tuple[Hook, ...]
    evaded: tuple[Hook, ...]


def grouped(predictions: Sequence[Prediction]) -> tuple[PredictionGroup, ...]:
    """Return the predictions by defense and by attacks that share all of theirs, a row for each expectation."""
    rows: dict[tuple[str, str], dict[_Shared, tuple[str, ...]]] = {}
    for one in predictions:
        of_attack = rows.setdefault((one.defense, one.attack), {})
        shared = (one.expectation, one.open_hooks, one.evaded)
        of_attack[shared] = (*of_attack.get(shared, ()), one.metric)
    attacks: dict[tuple[str, tuple[tuple[_Shared, tuple[str, ...]], ...]], tuple[str, ...]] = {}
    for (defense, attack), of_attack in rows.items():
        alike = (defense, tuple(of_attack.items()))
        attacks[alike] = (*attacks.get(alike, ()), attack)
    return tuple(
        PredictionGroup(
            defense=defense, attacks=names, metrics=metrics, expectation=expectation, open_hooks=unknown, evaded=evaded
        )
        for (defense, of_attack), names in attacks.items()
        for (expectation, unknown, evaded), metrics in of_attack
    )


def score_predictions(
    predictions: Sequence[Prediction], effects: Sequence[Effect], *, rule: ScoringRule
) -> PredictionScores:
    """Return every prediction with each of its effects and what came of it, and the counts by expectation.

    The first of these rules that holds says how a metric moved:

    | movement | when |
    |---|---|
    | unclear | there are fewer than `min_units` units |
    | not moved | both arms are identical |
    | unclear | there is no interval |
    | moved up, moved down | the interval of the difference excludes 0 |
    | unclear | the interval has no width |
    | not moved | the interval lies inside ± the tolerance |
    | unclear | otherwise |

    A firm prediction whose effect is unclear is undecided, and so is one that rests on what the source does not tell.
    Predictions that allow both (indirect, nuisance) stand apart. Raises DataError for an effect without prediction and
    for two of one name.
    """
    by_key = _by_key(predictions, effects)
    scored = tuple(
        _scored(prediction, effect, rule) for prediction in predictions for effect in by_key[_key(prediction)] or [None]
    )
    counts = tuple(_count(expectation, scored) for expectation in EXPECTATIONS)
    return PredictionScores(rule=rule, scored=scored, counts=counts)


def _key(one: Prediction | Effect) -> tuple[str, str, str]:
    return one.defense, one.attack, one.metric


def _by_key(
    predictions: Sequence[Prediction], effects: Sequence[Effect]
) -> dict[tuple[str, str, str], list[Effect | None]]:
    found: dict[tuple[str, str, str], list[Effect | None]] = {_key(prediction): [] for prediction in predictions}
    if len(found) < len(predictions):
        raise DataError("two predictions have the same defense, attack and metric; defenses need names of their own")
    twice = [name for name, times in Counter(effect.name for effect in effects).items() if times > 1]
    if twice:
        raise DataError(f"two effects are called {twice[0]}; tell them apart by `cell`")
    for effect in effects:
        if _key(effect) not in found:
            near = did_you_mean(" ".join(_key(effect)), [" ".join(key) for key in found])
            raise DataError(f"the effect {effect.name} has no prediction; {near}")
        found[_key(effect)].append(effect)
    return found


def _scored(prediction: Prediction, effect: Effect | None, rule: ScoringRule) -> ScoredPrediction:
    movement, reason = classify(effect, rule)
    outcome = _outcome(prediction, movement)
    if outcome == "undecided" and prediction.open_hooks:
        reason += f"; the source does not tell whether {named_hooks(prediction.open_hooks)} acts"
    return ScoredPrediction(prediction=prediction, effect=effect, movement=movement, outcome=outcome, words=reason)


def classify(effect: Effect | None, rule: ScoringRule) -> tuple[Movement, str]:
    """Return whether a metric moved by the rule of `score_predictions`, and why."""
    if effect is None:
        return "not_run", "the run has no such cell"
    if effect.difference is None:
        return "not_evaluated", f"n = 0, {effect.n_not_evaluated} not evaluated"
    if effect.n < rule.min_units:
        return "unclear", f"{effect.n} units, fewer than {rule.min_units}"
    if effect.identical:
        return "not_moved", "both arms are the same byte for byte"
    if effect.ci_low is None or effect.ci_high is None:
        return "unclear", "no interval"
    return _by_interval(effect.ci_low, effect.ci_high, tolerance=rule.tolerance_of(effect.metric))


def _by_interval(low: float, high: float, *, tolerance: float) -> tuple[Movement, str]:
    inside = -tolerance < low and high < tolerance
    if low > 0 or high < 0:
        small = f", though by less than {tolerance:g}" if inside else ""
        return ("moved_up" if low > 0 else "moved_down"), f"the interval excludes 0{small}"
    if low == high:
        return "unclear", "an interval without width shows no doubt and proves nothing"
    if inside:
        return "not_moved", f"the interval lies inside ±{tolerance:g}"
    return "unclear", f"the interval holds 0 and reaches beyond ±{tolerance:g}"


def _outcome(prediction: Prediction, movement: Movement) -> Outcome:
    if movement == "not_evaluated" or movement == "not_run":  # noqa: PLR1714  # mypy narrows by == only
        return movement
    if prediction.expectation not in FIRM:
        return "apart"
    if movement == "unclear" or prediction.open_hooks:
        return "undecided"
    moved = movement != "not_moved"
    return "right" if moved == (prediction.expectation == "expected_to_move") else "wrong"


def _count(expectation: Expectation, scored: Sequence[ScoredPrediction]) -> ScoreCount:
    chosen = [one for one in scored if one.prediction.expectation == expectation]
    movements, outcomes = Counter(one.movement for one in chosen), Counter(one.outcome for one in chosen)
    firm = expectation in FIRM
    return ScoreCount(
        expectation=expectation,
        n=len(chosen),
        right=outcomes["right"] if firm else None,
        wrong=outcomes["wrong"] if firm else None,
        undecided=outcomes["undecided"] if firm else None,
        **{name: movements[name] for name in get_args(Movement)},
    )
