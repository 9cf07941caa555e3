"""What the probe saw of a hook."""

from __future__ import annotations

from typing import Literal

import msgspec

from mragaudit.hookaudit.verdicts import Hook, HookVerdict

ProbeOutcome = Literal["changed", "unchanged", "raised", "not_run"]


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What came of running one hook on the probe inputs."""

    file: str
    name: str
    hook: Hook
    outcome: ProbeOutcome
    n_inputs: int
    """Inputs on which the hook ran to its end."""
    n_changed: int
    detail: str
    """Why it raised or did not run; empty otherwise."""

    @property
    def words(self) -> str:
        """The outcome for a person: `unchanged` claims no more than was seen."""
        if self.outcome == "changed":
            return f"changed {self.n_changed} of {self.n_inputs} inputs"
        if self.outcome == "unchanged":
            return f"no effect seen on these {self.n_inputs} inputs"
        return f"{self.outcome.replace('_', ' ')}: {self.detail}"


def disagreement(verdict: HookVerdict, seen: Observation) -> str:
    """Return how static verdict and observation contradict each other, empty where they do not."""
    expected = verdict.default if verdict.status == "conditional" else verdict.status
    if expected == "active" and seen.outcome == "unchanged":
        return "the source says active, no effect was seen on these inputs"
    if expected == "inactive" and seen.outcome == "changed":
        return "the source says inactive, a change was seen"
    return ""
