"""Predictions for a whole tree, as a table for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from mragaudit.hookaudit.attacks import AttackMap
from mragaudit.hookaudit.inventory import FileProblem, Inventory
from mragaudit.hookaudit.matrix import ActiveHooks, found_defenses, named_hooks
from mragaudit.hookaudit.metrics import MetricMap
from mragaudit.hookaudit.predictions import EXPECTATIONS, Prediction, PredictionGroup, grouped, predict
from mragaudit.hookaudit.render import NO_HOOK, printable, problem_line
from mragaudit.hookaudit.verdicts import Hook

EXPECTATION_STYLES = {
    "expected_to_move": "green",
    "indirect": "yellow",
    "nuisance": "magenta",
    "not_observable": "bold red",
}


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What `predict --format json` writes."""

    root: str
    defenses: tuple[ActiveHooks, ...]
    predictions: tuple[Prediction, ...]
    counts: dict[str, int]
    """Expectation → predictions."""
    problems: tuple[FileProblem, ...]
    """Files that were not audited; what they hold is in no prediction."""


def forecast(inventory: Inventory, *, metrics: MetricMap, attacks: AttackMap) -> Forecast:
    """Return what every metric of every attack ought to show of every class with hooks."""
    defenses = found_defenses(inventory.verdicts)
    predictions = predict(defenses, metrics, attacks=attacks)
    counts: dict[str, int] = {name: sum(one.expectation == name for one in predictions) for name in EXPECTATIONS}
    return Forecast(
        root=inventory.root,
        defenses=defenses,
        predictions=predictions,
        counts=counts,
        problems=inventory.problems,
    )


def render_forecast(made: Forecast) -> bytes:
    """Return the predictions as JSON."""
    return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def print_forecast(made: Forecast, *, console: Console, metrics: MetricMap) -> None:
    """Print the predictions by defense, what indirect and nuisance mean in them, and what could not be audited."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("defense", "attack", "expectation", "metric"):
        table.add_column(heading, overflow="fold")
    acting = {one.defense: one for one in made.defenses if one.active or one.undecided}
    idle = [one.defense for one in made.defenses if one.defense not in acting]
    groups = [group for group in grouped(made.predictions) if group.defense in acting]
    for before, group in zip([None, *groups], groups, strict=False):
        table.add_row(*_forecast_row(group, before=before, defense=acting[group.defense]))
    parts: list[Table | Text] = [table] if groups else []
    parts += [Text(printable(line)) for line in _reason_lines(made.predictions, metrics)]
    if idle:
        parts.append(Text(printable(f"acts nowhere, so that no metric can show an effect of it: {', '.join(idle)}")))
    if not made.defenses:
        parts.append(Text(NO_HOOK))
    parts += [Text(problem_line(problem), style="red") for problem in made.problems]
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in made.counts.items())
    parts.append(Text(f"{len(made.predictions)} predictions on {len(made.defenses)} defenses: {counts}"))
    console.print(Group(*parts))


def _forecast_row(group: PredictionGroup, *, before: PredictionGroup | None, defense: ActiveHooks) -> list[Text]:
    new_defense = before is None or before.defense != group.defense
    new_attacks = new_defense or before is None or before.attacks != group.attacks
    expectation = Text(group.expectation.replace("_", " "), style=EXPECTATION_STYLES[group.expectation])
    if group.evaded:
        expectation.append(f"\nmade to get round {named_hooks(group.evaded)}", style="dim")
    if group.open_hooks:
        expectation.append(f"\nopen: {named_hooks(group.open_hooks)}", style="magenta")
    return [
        Text(printable(_where(defense) if new_defense else "")),
        Text(", ".join(group.attacks) if new_attacks else ""),
        expectation,
        Text(", ".join(group.metrics)),
    ]


def _where(defense: ActiveHooks) -> str:
    lines = [defense.defense]
    lines += [f"acts at {named_hooks(defense.active)}"] if defense.active else []
    lines += [f"not told by the source: {named_hooks(defense.undecided)}"] if defense.undecided else []
    return "\n".join(lines)


def _reason_lines(predictions: Sequence[Prediction], metrics: MetricMap) -> list[str]:
    """Return why the metrics see a hook through another part or as a nuisance, each reason once."""
    found: dict[tuple[str, Hook, str], list[str]] = {}
    for one in predictions:
        metric = metrics.metric(one.metric)
        for hook in one.hooks:
            reason = metric.through.get(hook) or metric.nuisance.get(hook)
            if reason:
                names = found.setdefault((one.expectation, hook, reason), [])
                names += [] if one.metric in names else [one.metric]
    return [
        f"{expectation}, {named_hooks([hook])}: {reason} ({', '.join(names)})"
        for (expectation, hook, reason), names in sorted(found.items())
    ]
