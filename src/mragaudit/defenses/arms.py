"""Arms of the grid as objects: one defense or several, at one nominal epsilon."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import cast

from mragaudit import registry
from mragaudit.defenses.base import BaseDefense
from mragaudit.defenses.composition import Composition
from mragaudit.errors import ConfigError
from mragaudit.records.grid import Arm

Options = Mapping[str, Mapping[str, object]]
"""Defense → options of its constructor."""


def defense_class(name: str) -> type[BaseDefense]:
    """Return the class of a defense; raises ConfigError with the nearest name for an unknown one."""
    return cast(type[BaseDefense], registry.load("defense", name))


def draws_noise(defenses: Iterable[str]) -> bool:
    """Return whether any of the defenses has an active random call site, so that epsilon makes a difference."""
    return any(defense_class(name).random_hooks for name in defenses)


def make_arm(arm: Arm, *, k: int, public_threshold: float | None = None, options: Options | None = None) -> BaseDefense:
    """Return a new object for one cell: the arm's only defense, or the composition of all in their order.

    Every part that draws noise gets the arm's epsilon. `k` is how many documents the pipeline retrieves;
    `public_threshold` is asked for by a score filter alone (`private_rag.public_threshold`). `options` holds further
    options by defense, which have the last word. Raises ConfigError for what does not fit together.
    """
    options = options or {}
    _check(arm, options)
    parts = [
        _make(name, arm=arm, given={"k": k, "threshold": public_threshold}, options=options.get(name, {}))
        for name in arm.defenses
    ]
    return parts[0] if len(parts) == 1 else Composition(parts)


def _check(arm: Arm, options: Options) -> None:
    if not arm.defenses:
        raise ConfigError(f'arm "{arm.name}" names no defense; the baseline is "none"')
    for name in arm.defenses:
        if arm.defenses.count(name) > 1:
            raise ConfigError(f'arm "{arm.name}" names the defense "{name}" twice')
    for name in options:
        defense_class(name)
    if arm.epsilon is None and draws_noise(arm.defenses):
        raise ConfigError(f'arm "{arm.name}" draws noise; it needs an epsilon')


def _make(name: str, *, arm: Arm, given: Mapping[str, object], options: Mapping[str, object]) -> BaseDefense:
    made = defense_class(name)
    taken = inspect.signature(made).parameters
    context = {key: value for key, value in given.items() if key in taken and value is not None}
    if "threshold" in taken and "threshold" not in {*context, *options}:
        raise ConfigError(f'arm "{arm.name}": {name} needs a threshold from public queries')
    if made.random_hooks:
        context["epsilon"] = arm.epsilon
    return cast(BaseDefense, registry.create("defense", name, options={**context, **options}))
