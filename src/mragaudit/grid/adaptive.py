"""Adaptive attacks: the best of a family at one budget, chosen on some seeds and measured on others.

What the best attack of ours recovers is a lower bound of what an attacker can; only what stood in a context that the
model saw is called an upper bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import msgspec

from mragaudit.errors import ConfigError, DataError
from mragaudit.grid.recovery import count_share
from mragaudit.records.grid import Cell, ItemOutcome
from mragaudit.records.grid_findings import AdaptiveRow, ShareCount
from mragaudit.stats.intervals import CONFIDENCE
from mragaudit.stats.permutation import MIN_SEEDS, sign_flip

MIN_DEVELOPMENT_SEEDS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class AttackRun:
    """The planted items of one realisation after one attack on one arm."""

    corpus: str
    """Realisation without its seed: `email`, `email.canary-phone`."""
    arm: str
    attack: str
    seed: int
    budget: int
    outcomes: tuple[ItemOutcome, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """What is compared, fixed before any of it is seen."""

    family: tuple[str, ...]
    """Attacks to choose from; of equally good ones the first is taken."""
    fixed: str
    """Attack that the chosen one is compared with."""
    budget: int
    development_seeds: tuple[int, ...]
    test_seeds: tuple[int, ...]
    confidence: float = CONFIDENCE
    """Level of the limits of every share."""

    def __post_init__(self) -> None:
        if len(set(self.development_seeds)) < MIN_DEVELOPMENT_SEEDS:
            raise ConfigError(
                f"development seeds are {list(self.development_seeds)}; an attack is chosen on at least "
                f"{MIN_DEVELOPMENT_SEEDS} seeds"
            )
        if not self.test_seeds or set(self.test_seeds) & set(self.development_seeds):
            raise ConfigError(
                f"test seeds are {list(self.test_seeds)}; there has to be at least one, and none of the development "
                f"seeds {list(self.development_seeds)}"
            )
        if not self.family:
            raise ConfigError("a family of attacks needs at least one member")


def attack_runs(cells: Iterable[Cell], outcomes: Iterable[ItemOutcome]) -> list[AttackRun]:
    """Return the planted items of each cell, sorted by corpus, arm, attack and seed.

    A cell that is the same as another by construction has that one's outcomes.
    Raises DataError when two cells have corpus, arm, attack and seed in common: give those of one mode.
    """
    of_cell: dict[str, list[ItemOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.planted:
            of_cell[outcome.cell_id].append(outcome)
    runs: dict[tuple[str, str, str, int], AttackRun] = {}
    for cell in cells:
        corpus = cell.realisation.removesuffix(f".s{cell.seed}")
        key = (corpus, cell.arm, cell.attack, cell.seed)
        if key in runs:
            raise DataError(f"cell {cell.cell_id}: another cell has {key} as well; compare cells of one mode")
        runs[key] = AttackRun(
            corpus=corpus,
            arm=cell.arm,
            attack=cell.attack,
            seed=cell.seed,
            budget=cell.budget,
            outcomes=tuple(of_cell[cell.same_as or cell.cell_id]),
        )
    return [run for _, run in sorted(runs.items())]


def best_of_family(runs: Iterable[AttackRun], contest: Contest) -> list[AdaptiveRow]:
    """Return one row for each corpus and arm of the runs, sorted.

    An item is recovered where it stands, letter by letter, in a reply or in what the attacker made of one. The attack
    with the highest mean of seed shares on the development seeds is chosen, and its share on the test seeds is the
    lower bound; attacks without an evaluated item in one of these seeds cannot be chosen. The lift is the mean over
    test seeds of the differences to the fixed attack, each with the exact sign-flip test.
    Raises DataError for a run with another budget.
    """
    groups: dict[tuple[str, str], dict[tuple[str, int], AttackRun]] = defaultdict(dict)
    for run in runs:
        if run.attack in {*contest.family, contest.fixed}:
            _require_budget(run, contest.budget)
            groups[run.corpus, run.arm][run.attack, run.seed] = run
    return [_row(corpus, arm, own=own, contest=contest) for (corpus, arm), own in sorted(groups.items())]


def _require_budget(run: AttackRun, budget: int) -> None:
    if run.budget != budget:
        raise DataError(
            f"{run.attack} on {run.corpus} under {run.arm}, seed {run.seed}: {run.budget} target calls, where {budget} "
            "are compared; attacks are compared at one budget"
        )


def _row(corpus: str, arm: str, *, own: Mapping[tuple[str, int], AttackRun], contest: Contest) -> AdaptiveRow:
    row = AdaptiveRow(
        corpus=corpus,
        arm=arm,
        family=contest.family,
        fixed=contest.fixed,
        budget=contest.budget,
        development_seeds=contest.development_seeds,
        test_seeds=contest.test_seeds,
    )
    chosen = _choose(own, contest)
    if chosen is None:
        return msgspec.structs.replace(row, reason="no attack of the family was evaluated on every seed")
    tested = [own[chosen, seed] for seed in contest.test_seeds]
    bounded = msgspec.structs.replace(
        row,
        chosen=chosen,
        lower_bound=_recovered(tested, confidence=contest.confidence),
        upper_bound=count_share(_items(tested), lambda outcome: outcome.in_context, confidence=contest.confidence),
    )
    return _with_lift(bounded, _paired(own, chosen, contest), own=own, confidence=contest.confidence)


def _with_lift(
    row: AdaptiveRow, pairs: Sequence[float], *, own: Mapping[tuple[str, int], AttackRun], confidence: float
) -> AdaptiveRow:
    if not pairs:
        reason = f"the fixed attack {row.fixed} was not evaluated on every test seed"
        return msgspec.structs.replace(row, reason=reason)
    test = sign_flip(pairs) if len(pairs) >= MIN_SEEDS else None
    return msgspec.structs.replace(
        row,
        fixed_share=_recovered([own[row.fixed, seed] for seed in row.test_seeds], confidence=confidence),
        lift=fmean(pairs),
        lift_by_seed=tuple(pairs),
        p_value=test.p_value if test else None,
        least_p=test.least_p if test else None,
    )


def _choose(own: Mapping[tuple[str, int], AttackRun], contest: Contest) -> str | None:
    best: tuple[float, str] | None = None
    for attack in contest.family:
        shares = _shares(own, attack, contest.development_seeds)
        measurable = _shares(own, attack, contest.test_seeds) is not None
        if shares is not None and measurable and (best is None or fmean(shares) > best[0]):
            best = (fmean(shares), attack)
    return best[1] if best else None


def _shares(own: Mapping[tuple[str, int], AttackRun], attack: str, seeds: Sequence[int]) -> list[float] | None:
    """Return the attack's share in each seed, None where one of them is unknown."""
    found = [_recovered([own[attack, seed]]).share if (attack, seed) in own else None for seed in seeds]
    known = [share for share in found if share is not None]
    return known if len(known) == len(found) else None


def _paired(own: Mapping[tuple[str, int], AttackRun], chosen: str, contest: Contest) -> list[float]:
    """Return the differences to the fixed attack by seed, none where one of them is unknown."""
    first, second = (_shares(own, attack, contest.test_seeds) for attack in (chosen, contest.fixed))
    return [] if first is None or second is None else [a - b for a, b in zip(first, second, strict=True)]


def _items(runs: Iterable[AttackRun]) -> list[ItemOutcome]:
    return [outcome for run in runs for outcome in run.outcomes]


def _recovered(runs: Iterable[AttackRun], *, confidence: float = CONFIDENCE) -> ShareCount:
    return count_share(
        _items(runs),
        lambda row: row.exact or row.derived,
        unknown=lambda row: row.not_evaluated is not None,
        confidence=confidence,
    )
