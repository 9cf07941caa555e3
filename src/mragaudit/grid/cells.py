"""The plan of the grid: one cell for every attack on every arm, and the further cells that its claims need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from mragaudit.config.hook_audit_section import HookAudit
from mragaudit.corpus.pubmedqa import CORPUS as PUBMEDQA
from mragaudit.corpus.sharding import shard_name
from mragaudit.defenses.arms import draws_noise
from mragaudit.grid.arms import NominalArm, nominal_arms
from mragaudit.grid.realisations import Realisation, adaptive_realisations, canary_realisations, corpus_realisations
from mragaudit.records.grid import Arm, Cell, Mode, Purpose

BENIGN = "benign"
"""Stands for an attack: the benign questions, which measure utility."""
MEMBERSHIP = "mi"
UNDEFENDED = "none"
CANARY_MODE: Mode = "targeted_queries"
"""Every canary document is asked for by its public title: a stress test, not a deployment rate."""


def plan_cells(settings: HookAudit) -> tuple[Cell, ...]:
    """Return all cells, sorted by id; those that are another one by construction name it in `same_as`."""
    cells = [
        *_grid(settings),
        *_canaries(settings),
        *_adaptive(settings),
        *_controls(settings),
    ]
    return tuple(sorted(cells, key=lambda cell: cell.cell_id))


def arms_of(settings: HookAudit, defenses: Sequence[Sequence[str]]) -> list[NominalArm]:
    """Return the nominal arms of some combinations."""
    return list(nominal_arms(defenses, epsilons=settings.epsilons, draws_noise=draws_noise))


def arms_by_name(settings: HookAudit) -> dict[str, Arm]:
    """Return every arm that some cell has."""
    every = [[UNDEFENDED], *settings.defenses, *settings.canaries.defenses, *settings.adaptive.defenses]
    return {one.arm.name: one.arm for one in arms_of(settings, every)}


def cells_to_run(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that no other one stands for."""
    return [cell for cell in cells if cell.same_as is None]


def deal_cells(cells: Iterable[Cell], *, n_shards: int) -> dict[str, str]:
    """Return the name of the shard of every cell, by the cell's id; shards make about as many target calls each.

    All arms of one attack on one realisation share a shard: those that act after the model, or not at all, put the same
    prompts, and a shard asks each prompt once. These groups are dealt from the largest down, each to the shard that has
    least so far.
    """
    dealt: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        dealt.setdefault((cell.purpose, cell.realisation, cell.mode, cell.attack), []).append(cell)
    loads = [0] * n_shards
    names: dict[str, str] = {}
    for key in sorted(dealt, key=lambda key: (-_calls(dealt[key]), key)):
        least = loads.index(min(loads))
        loads[least] += _calls(dealt[key])
        names |= {cell.cell_id: shard_name(least + 1, n_shards) for cell in dealt[key]}
    return names


def _calls(cells: Iterable[Cell]) -> int:
    return sum(cell.budget for cell in cells)


def _grid(settings: HookAudit) -> Iterator[Cell]:
    arms = arms_of(settings, settings.defenses)
    for realisation, mode, arm in product(corpus_realisations(settings), settings.modes, arms):
        for attack in (*settings.attacks, *([BENIGN] if settings.benign_questions else [])):
            yield _cell("grid", realisation, mode, arm, attack, budget=budget_of(settings, attack))


def budget_of(settings: HookAudit, attack: str) -> int:
    """Return the target calls that a cell of an attack may make."""
    if attack == BENIGN:
        return settings.benign_questions
    if attack == MEMBERSHIP:
        membership = settings.membership
        return membership.questions * (settings.n_members + settings.n_non_members)
    return settings.budget


def _canaries(settings: HookAudit) -> Iterator[Cell]:
    canaries = settings.canaries
    arms = arms_of(settings, canaries.defenses)
    for realisation, arm in product(canary_realisations(settings), arms):
        yield _cell("canary", realisation, CANARY_MODE, arm, canaries.attack, budget=canaries.budget)


def _adaptive(settings: HookAudit) -> Iterator[Cell]:
    adaptive = settings.adaptive
    if not adaptive.probes:
        return
    arms = arms_of(settings, adaptive.defenses)
    for realisation, arm in product(adaptive_realisations(settings), arms):
        for attack in (adaptive.fixed_attack, *adaptive.probes):
            yield _cell("adaptive", realisation, adaptive.mode, arm, attack, budget=adaptive.budget)


def _controls(settings: HookAudit) -> Iterator[Cell]:
    """Yield a cell for every extraction attack before a generator that echoes, and before one that is blind.

    A grid without any has the controls of the attack on canaries, since nothing is reported without controls. They are
    run on the first corpus with planted items; on PubMedQA, which has none, only where there is no other.
    """
    undefended = arms_of(settings, [[UNDEFENDED]])[0]
    realisation = min(corpus_realisations(settings), key=lambda one: one.corpus == PUBMEDQA)  # the first of equals
    attacks = [name for name in settings.attacks if name != MEMBERSHIP] or [settings.canaries.attack]
    purposes: tuple[Purpose, ...] = ("positive_control", "negative_control")
    for purpose, attack in product(purposes, attacks):
        yield _cell(purpose, realisation, settings.modes[0], undefended, attack, budget=settings.budget)


def _cell(
    purpose: Purpose, realisation: Realisation, mode: Mode, nominal: NominalArm, attack: str, *, budget: int
) -> Cell:
    def name(label: str) -> str:
        return f"{purpose}.{realisation.name}.{mode}.{label}.{attack}"

    own = name(nominal.label) if nominal.repeats else name(nominal.arm.name)
    return Cell(
        cell_id=own,
        purpose=purpose,
        corpus=realisation.corpus,
        realisation=realisation.name,
        seed=realisation.seed,
        mode=mode,
        arm=nominal.arm.name,
        attack=attack,
        budget=budget,
        same_as=name(nominal.arm.name) if nominal.repeats else None,
    )
