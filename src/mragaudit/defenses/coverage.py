"""What a combination of defenses covers and leaves open, by class of leak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from mragaudit.defenses.arms import defense_class
from mragaudit.defenses.base import HOOK_ORDER, HookName, LeakClass

LEAK_CLASSES: tuple[LeakClass, ...] = get_args(LeakClass)


@dataclass(frozen=True, kw_only=True, slots=True)
class Acting:
    """A defense at one of its hooks, for a class of leaks, and what gets past it."""

    defense: str
    hook: HookName
    limits: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CoverageRow:
    """One class of leaks under one combination."""

    defenses: tuple[str, ...]
    leak_class: LeakClass
    covered: tuple[Acting, ...]
    """What acts on the leaking thing itself, by hook and then in the stated order."""
    indirect: tuple[Acting, ...]
    """What only changes how often it is retrieved."""
    open_hooks: tuple[HookName, ...]
    """Hooks of the pipeline at which no part of the combination acts on this class itself."""

    @property
    def is_open(self) -> bool:
        """Whether nothing acts on it at any hook."""
        return not self.covered


def coverage(defenses: Sequence[str]) -> tuple[CoverageRow, ...]:
    """Return one row a class of leaks, in a fixed order; raises ConfigError for an unknown defense."""
    return tuple(_row(tuple(defenses), leak_class) for leak_class in LEAK_CLASSES)


def _row(defenses: tuple[str, ...], leak_class: LeakClass) -> CoverageRow:
    covered = _acting(defenses, leak_class, direct=True)
    hooks = {acting.hook for acting in covered}
    return CoverageRow(
        defenses=defenses,
        leak_class=leak_class,
        covered=covered,
        indirect=_acting(defenses, leak_class, direct=False),
        open_hooks=tuple(hook for hook in HOOK_ORDER if hook not in hooks),
    )


def _acting(defenses: tuple[str, ...], leak_class: LeakClass, *, direct: bool) -> tuple[Acting, ...]:
    found = [
        Acting(defense=name, hook=cover.hook, limits=cover.limits)
        for name in defenses
        for cover in defense_class(name).covers
        if cover.leak_class == leak_class and cover.direct == direct
    ]
    return tuple(sorted(found, key=lambda acting: HOOK_ORDER.index(acting.hook)))
