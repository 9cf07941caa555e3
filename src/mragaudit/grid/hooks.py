"""Where the arms of the grid act: the inventory of the defenses' own source, by defense and by arm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pandas as pd

from mragaudit.defenses.coverage import Acting, coverage
from mragaudit.grid.cells import UNDEFENDED
from mragaudit.hookaudit.inventory import Inventory
from mragaudit.hookaudit.matrix import ActiveHooks, Cell, active_hooks, build_matrix, combined
from mragaudit.hookaudit.metrics import MetricMap
from mragaudit.hookaudit.probe.records import Observation, disagreement
from mragaudit.hookaudit.verdicts import CODES, HookVerdict
from mragaudit.records.grid import Arm
from mragaudit.registry import names, plugin
from mragaudit.tables.frames import Row, frame

HOOK_COLUMNS = (
    *("defense", "code", "hook", "place", "declared", "static", "kind", "by_default", "observed", "n_inputs"),
    *("n_changed", "disagreement", "evidence"),
)
MATRIX_COLUMNS = ("arm", "metric", "sight", "hooks", "reported_as_effect", "words")
COVERAGE_COLUMNS = ("defenses", "leak_class", "covered_at", "changes_retrieval_at", "open_hooks", "is_open", "limits")
NOT_PROBED = "not probed"


class HookFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`hooks.json`: what source and probe say of the defenses of the grid."""

    inventory: Inventory
    observations: tuple[Observation, ...] | None
    """null where nothing was probed."""
    not_probed: str
    """Why, empty where it was."""


def class_names() -> dict[str, str]:
    """Return the name of a defense by the name of its class."""
    return {plugin("defense", name).target.partition(":")[2]: name for name in names("defense")}


def verdicts_of(defense: str, inventory: Inventory) -> list[HookVerdict]:
    """Return the verdicts on the hooks of a defense of the grid."""
    known = class_names()
    return [verdict for verdict in inventory.verdicts if known.get(verdict.class_name or "") == defense]


def of_defenses(inventory: Inventory) -> Inventory:
    """Return an inventory of the defenses alone: a combination has hooks as well, and they are those of its parts."""
    known = class_names()
    verdicts = tuple(one for one in inventory.verdicts if one.class_name in known)
    return msgspec.structs.replace(inventory, verdicts=verdicts)


def arm_hooks(arms: Iterable[Arm], inventory: Inventory) -> tuple[ActiveHooks, ...]:
    """Return where each arm acts under its defaults: wherever one of its parts does."""
    return tuple(_arm_hooks(arm, inventory) for arm in arms)


def _arm_hooks(arm: Arm, inventory: Inventory) -> ActiveHooks:
    parts = [active_hooks(name, verdicts_of(name, inventory)) for name in arm.defenses]
    return msgspec.structs.replace(combined(parts), defense=arm.name)


def hooks_table(findings: HookFindings, defenses: Sequence[str]) -> pd.DataFrame:
    """Return one row for every hook of every defense: declared, static, observed."""
    seen = {(one.file, one.name, one.hook): one for one in findings.observations or ()}
    made: list[Row] = []
    for defense in defenses:
        for verdict in verdicts_of(defense, findings.inventory):
            made.append(_hook_row(defense, verdict, seen.get((verdict.file, verdict.name, verdict.hook))))
    return frame(made, HOOK_COLUMNS)


def _hook_row(defense: str, verdict: HookVerdict, seen: Observation | None) -> Row:
    declared = {True: "active", False: "inactive", None: ""}[verdict.declared]
    return {
        "defense": defense,
        "code": CODES[verdict.hook],
        "hook": verdict.hook,
        "place": f"{verdict.file}:{verdict.line}",
        "declared": declared,
        "static": verdict.status,
        "kind": verdict.kind,
        "by_default": verdict.default,
        "observed": NOT_PROBED if seen is None else seen.words,
        "n_inputs": None if seen is None else seen.n_inputs,
        "n_changed": None if seen is None else seen.n_changed,
        "disagreement": "" if seen is None else disagreement(verdict, seen),
        "evidence": verdict.evidence,
    }


def matrix_table(acting: Sequence[ActiveHooks], metrics: MetricMap) -> pd.DataFrame:
    """Return one row for every arm and metric: what the metric can say of the arm, in words."""
    return frame((_matrix_row(cell) for cell in build_matrix(acting, metrics)), MATRIX_COLUMNS)


def _matrix_row(cell: Cell) -> Row:
    return {
        "arm": cell.defense,
        "metric": cell.metric,
        "sight": cell.sight,
        "hooks": " ".join(CODES[hook] for hook in cell.hooks),
        "reported_as_effect": cell.reported_as_effect,
        "words": cell.words,
    }


def coverage_table(combinations: Iterable[Sequence[str]]) -> pd.DataFrame:
    """Return one row for every combination and class of leak: which active hooks act on it, and which stay open."""
    return frame(
        (row for parts in combinations if tuple(parts) != (UNDEFENDED,) for row in _coverage_rows(parts)),
        COVERAGE_COLUMNS,
    )


def _coverage_rows(parts: Sequence[str]) -> Iterator[Row]:
    for one in coverage(parts):
        yield {
            "defenses": "+".join(one.defenses),
            "leak_class": one.leak_class,
            "covered_at": _named(one.covered),
            "changes_retrieval_at": _named(one.indirect),
            "open_hooks": " ".join(one.open_hooks),
            "is_open": one.is_open,
            "limits": "; ".join(f"{acting.defense}: {acting.limits}" for acting in one.covered),
        }


def _named(acting: Sequence[Acting]) -> str:
    return ", ".join(f"{one.defense} at {one.hook}" for one in acting)
