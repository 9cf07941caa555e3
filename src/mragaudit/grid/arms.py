"""Arms: defenses and their combinations at each nominal epsilon, those alike by construction recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mragaudit.records.grid import Arm


@dataclass(frozen=True, kw_only=True, slots=True)
class NominalArm:
    """An arm as the plan of the grid names it."""

    label: str
    """Defenses and epsilon: `lprag@5`."""
    arm: Arm
    """What is run for it."""
    repeats: bool
    """Whether an earlier nominal arm is the same: nothing in it draws noise, so epsilon changes nothing."""


def nominal_arms(
    defenses: Sequence[Sequence[str]], *, epsilons: Sequence[float], draws_noise: Callable[[Sequence[str]], bool]
) -> Iterator[NominalArm]:
    """Yield every combination at every epsilon, combination by combination.

    `draws_noise` says whether some defenses have an active call site that draws noise.
    """
    for parts in defenses:
        noisy = draws_noise(parts)
        name = "+".join(parts)
        for place, epsilon in enumerate(epsilons):
            label = f"{name}@{epsilon:g}"
            arm = Arm(name=label if noisy else name, defenses=tuple(parts), epsilon=float(epsilon) if noisy else None)
            yield NominalArm(label=label, arm=arm, repeats=not noisy and place > 0)


def distinct_arms(nominal: Sequence[NominalArm]) -> tuple[Arm, ...]:
    """Return the arms that are run, in the order of the plan."""
    return tuple(one.arm for one in nominal if not one.repeats)
