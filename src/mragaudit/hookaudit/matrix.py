"""The interpretability matrix: what a metric can say of a defense, from the hooks at which the defense acts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mragaudit.hookaudit.metrics import Metric, MetricMap, Sight
from mragaudit.hookaudit.verdicts import CODES, HOOKS, Hook, HookVerdict, Plain

ORDER: tuple[Sight, ...] = ("interpretable", "indirect", "nuisance", "not_observable")


class ActiveHooks(msgspec.Struct, frozen=True, kw_only=True):
    """Where a defense acts under its defaults."""

    defense: str
    active: tuple[Hook, ...]
    undecided: tuple[Hook, ...] = ()
    """Hooks of which the source does not tell; they count for nothing and are named beside every cell."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One defense and one metric."""

    defense: str
    metric: str
    sight: Sight
    hooks: tuple[Hook, ...]
    """Active hooks by which the sight holds."""
    words: str

    @property
    def reported_as_effect(self) -> bool:
        """Whether a shift of the metric may be called an effect of the defense."""
        return self.sight in {"interpretable", "indirect"}


def active_hooks(defense: str, verdicts: Iterable[HookVerdict]) -> ActiveHooks:
    """Return where a defense acts, by the verdicts on its hooks; a conditional hook counts as it is by default.

    Of several verdicts on one hook (its synchronous and asynchronous form) one that acts is enough; where they differ
    the hook is named among the undecided as well.
    """
    found: dict[Hook, set[Plain]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.hook, set()).add(status_by_default(verdict))
    active = tuple(hook for hook in HOOKS if "active" in found.get(hook, set()))
    undecided = tuple(hook for hook in HOOKS if "unknown" in found.get(hook, set()) or len(found.get(hook, set())) > 1)
    return ActiveHooks(defense=defense, active=active, undecided=undecided)


def status_by_default(verdict: HookVerdict) -> Plain:
    """Return what a hook is under its defaults."""
    if verdict.status == "conditional":
        return verdict.default or "unknown"
    return verdict.status


def found_defenses(verdicts: Iterable[HookVerdict]) -> tuple[ActiveHooks, ...]:
    """Return where each class with hooks acts, and the functions of each module together, in the order of the verdicts.

    A class goes by its name, by name and file where two have the same, a module by its file.
    """
    parts: dict[tuple[str, str | None], list[HookVerdict]] = {}
    for verdict in verdicts:
        parts.setdefault((verdict.module_file or verdict.file, verdict.class_name), []).append(verdict)
    times = Counter(class_name for _, class_name in parts)
    return tuple(
        active_hooks(_defense_name(file, class_name, unique=times[class_name] == 1), found)
        for (file, class_name), found in parts.items()
    )


def _defense_name(file: str, class_name: str | None, *, unique: bool) -> str:
    if class_name is None:
        return f"functions of {file}"
    return class_name if unique else f"{class_name} ({file})"


def combined(parts: Sequence[ActiveHooks]) -> ActiveHooks:
    """Return where a combination of defenses acts: wherever one of them does."""
    active = {hook for part in parts for hook in part.active}
    undecided = {hook for part in parts for hook in part.undecided} - active
    return ActiveHooks(
        defense="+".join(part.defense for part in parts),
        active=tuple(hook for hook in HOOKS if hook in active),
        undecided=tuple(hook for hook in HOOKS if hook in undecided),
    )


def build_matrix(defenses: Iterable[ActiveHooks], metrics: MetricMap) -> tuple[Cell, ...]:
    """Return one cell for every defense and metric, defense by defense."""
    return tuple(cell(defense, metric) for defense in defenses for metric in metrics.metrics)


def cell(defense: ActiveHooks, metric: Metric) -> Cell:
    """Return the best sight that the metric has of the defense's active hooks, in words.

    An interpretable metric of a defense that acts at other hooks as well says so: its shift is of all of them together.
    """
    by_sight: dict[Sight, list[Hook]] = {known: [] for known in ORDER}
    for hook in defense.active:
        by_sight[metric.sight(hook)].append(hook)
    sight: Sight = next((sight for sight in ORDER if by_sight[sight]), ORDER[-1])
    hooks = tuple(by_sight[sight])
    words = _words(defense, metric, sight=sight, by_sight=by_sight)
    return Cell(defense=defense.defense, metric=metric.name, sight=sight, hooks=hooks, words=words)


def _words(defense: ActiveHooks, metric: Metric, *, sight: Sight, by_sight: Mapping[Sight, list[Hook]]) -> str:
    if not defense.active:
        told = " that the source tells of" if defense.undecided else ""
        text = f"acts nowhere{told}: a shift is chance or another mechanism"
    elif sight == "interpretable":
        text = f"acts at {named_hooks(by_sight[sight])}, which the metric observes"
        if by_sight["nuisance"]:
            text += f"; a nuisance as well at {_reasons(by_sight['nuisance'], metric.nuisance)}"
    elif sight == "indirect":
        text = f"seen only through {_reasons(by_sight[sight], metric.through)}"
    elif sight == "nuisance":
        text = f"no effect can be read off: {_reasons(by_sight[sight], metric.nuisance)}"
    else:
        text = f"acts at {named_hooks(by_sight[sight])}, which the metric does not observe"
    if defense.undecided:
        text += f"; not told by the source: {named_hooks(defense.undecided)}"
    return text


def named_hooks(hooks: Iterable[Hook]) -> str:
    """Return hooks with their codes, for a sentence."""
    return ", ".join(f"{CODES[hook]} {hook}" for hook in hooks)


def _reasons(hooks: Iterable[Hook], reasons: Mapping[Hook, str]) -> str:
    return "; ".join(f"{CODES[hook]} {hook} ({reasons[hook]})" for hook in hooks)
