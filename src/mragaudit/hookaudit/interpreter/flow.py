"""The ways out of a block."""

from __future__ import annotations

from dataclasses import dataclass, field

from mragaudit.hookaudit.interpreter.machine import Returned
from mragaudit.hookaudit.interpreter.state import State


@dataclass(slots=True)
class Flow:
    """The ways out of a block."""

    nexts: list[State] = field(default_factory=list)
    returns: list[Returned] = field(default_factory=list)
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)

    def add(self, other: Flow) -> None:
        """Take over all ways out of another block but its end."""
        self.returns += other.returns
        self.breaks += other.breaks
        self.continues += other.continues
