"""Runs under other settings: whether one of them decides what a hook is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mragaudit.hookaudit.classification import OWN_SOURCE
from mragaudit.hookaudit.interpreter.machine import Setting
from mragaudit.hookaudit.interpreter.values import Const, Opaque, Value
from mragaudit.hookaudit.runs import Outcome
from mragaudit.hookaudit.verdicts import Plain, Status

MAX_RUNS = 24
MAX_STEPS_OF_ALL_RUNS = 30_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The status over all settings that were tried."""

    status: Status
    default: Plain | None = None
    condition: str | None = None
    other: Outcome | None = None
    setting: Setting | None = None

    @property
    def says_inactive(self) -> bool:
        """Whether the hook is inactive, at least by default."""
        return self.status == "inactive" or self.default == "inactive"

    @property
    def fail_open(self) -> bool:
        """Whether the other setting leads to a fail-open handler."""
        return self.other is not None and self.other.notes.fail_open_line is not None


def explore(base: Outcome, run: Callable[[dict[str, Value]], Outcome], assumed: dict[str, Value]) -> Finding:
    """Try other values of the settings that decided; a second one where the first leads to it."""
    runs = 0
    pending: list[tuple[dict[str, Value], Outcome]] = [(assumed, base)]
    steps = base.notes.steps
    if base.evidence == OWN_SOURCE:
        return Finding(status=base.status)
    while pending:
        assumed, outcome = pending.pop(0)
        for key, setting in sorted(outcome.notes.settings.items(), key=lambda item: _urgency(item[1])):
            if runs >= MAX_RUNS or steps > MAX_STEPS_OF_ALL_RUNS:
                return Finding(status=base.status)
            if not setting.decided or key in assumed or key in pending_keys(pending, assumed):
                continue
            results = []
            for other in alternatives(setting, base.status, used=key in outcome.notes.used):
                runs += 1
                results.append(run({**assumed, key: other}))
                steps += results[-1].notes.steps
                finding = _compare(base, results, setting=setting, key=key)
                if finding is not None:
                    return finding
            if len(assumed) < 2 and results:  # noqa: PLR2004  # three settings deep
                first = alternatives(setting, base.status, used=key in outcome.notes.used)[0]
                pending.append(({**assumed, key: first}, results[0]))
    return Finding(status=base.status)


def _urgency(setting: Setting) -> tuple[bool, int]:
    """Return the order in which settings are tried: those that the hook itself reads first, plain switches first."""
    if isinstance(setting.default, Const) and isinstance(setting.default.value, bool):
        return setting.early, 0
    return setting.early, 1 if setting.empty else 2


def pending_keys(pending: list[tuple[dict[str, Value], Outcome]], assumed: dict[str, Value]) -> set[str]:
    """Return the settings that stand to be combined with the assumed ones anyway."""
    return {key for other, _ in pending for key in other if len(other) == len(assumed) + 1 and assumed}


def alternatives(setting: Setting, status: Plain, *, used: bool) -> list[Value]:  # noqa: PLR0911  # one for each default
    """Return the other values worth trying: a switch the other way, something where there is nothing.

    A value that is there (a pattern, a list of entities) is not taken away from a hook that acts by it.
    """
    flags = frozenset({setting.key})
    default = setting.default
    if default is None:
        if used:
            return []
        return [Const(True, flags), Const(False, flags)]
    if isinstance(default, Const) and isinstance(default.value, bool):
        return [Const(not default.value, flags)]
    filled = isinstance(default, Const) and bool(default.value)
    if not filled and setting.empty:
        return [Opaque(f"another value of `{setting.text}`", flags, truthy=True, settled=True)]
    if setting.compared and isinstance(default, Const) and isinstance(default.value, str) and status == "active":
        return [Const("\0another value", flags)]
    if status == "inactive":
        return [Opaque(f"another value of `{setting.text}`", flags, settled=True)]
    return []


def _compare(base: Outcome, results: list[Outcome], *, setting: Setting, key: str) -> Finding | None:
    """Return the conditional verdict where another value of a setting leads to another status."""
    condition = setting.condition
    if setting.default is None:
        statuses = {result.status for result in (base, *results)}
        if len(results) < 2 or len(statuses) == 1:  # noqa: PLR2004  # both ways of a switch
            return None
        acting = next((result for result in (*results, base) if result.status != "inactive"), base)
        return Finding(status="conditional", default="unknown", condition=condition, other=acting, setting=setting)
    other = results[-1]
    relevant = {(one, two) for one in ("active", "inactive", "unknown") for two in ("active", "inactive", "unknown")}
    relevant -= {("active", "active"), ("inactive", "inactive"), ("unknown", "unknown"), ("active", "unknown")}
    if not setting.is_switch:
        relevant = {("inactive", "active"), ("active", "inactive")}
    if (base.status, other.status) not in relevant:
        return None
    default: Plain = "unknown" if key.startswith("import:") else base.status
    return Finding(status="conditional", default=default, condition=condition, other=other, setting=setting)
