"""Stage `monitor_tables`: what the replay shows, as tables; no store and no model is needed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import pandas as pd

from mragaudit.config import Settings
from mragaudit.monitor.evaluation.alarms import collections_table, false_alarms_table
from mragaudit.monitor.evaluation.detection import detection_table, languages_table
from mragaudit.monitor.evaluation.replayed import MONTH_DAYS, MONTH_SECONDS, Replayed, Rules
from mragaudit.monitor.evaluation.thresholds import (
    cells_of,
    chosen_cell,
    curves_table,
    part_of,
    recommendation_table,
    scores_of,
    sweep_table,
)
from mragaudit.monitor.evaluation.throttling import throttling_table
from mragaudit.monitor.grid import settings_of
from mragaudit.monitor.rejudge import Actor, actors_of
from mragaudit.records.base import iter_records, read_records, write_text
from mragaudit.records.replay import CountedQuery, DeliveredQuery, Part, QueryEvent, event_key
from mragaudit.stages.aggregate import to_csv
from mragaudit.stages.gates import require_same_ids
from mragaudit.stages.monitor_files import monitor_settings, profiles_of

logger = logging.getLogger(__name__)


def run(
    *,
    traffic: Sequence[Path],
    counts: Sequence[Path],
    delivered: Path,
    tables: Mapping[str, Path],
    settings: Settings,
) -> None:
    """Write `monitor/tables/*.csv`; `traffic` and `counts` are files of the same parts in the same order."""
    rules = rules_of(settings)
    parts = {
        part_name(asked): replayed(part_name(asked), asked, found, settings=settings)
        for asked, found in zip(traffic, counts, strict=True)
    }
    built = build_tables(parts, delivered=iter_records(delivered, DeliveredQuery), rules=rules, settings=settings)
    for name, path in tables.items():
        write_text(path, to_csv(built[name]))
    logger.info("monitor_tables: %d tables", len(tables))


def part_name(path: Path) -> Part:
    """Return which part of the traffic a file holds."""
    part: Part = msgspec.convert(path.stem, type=Part)
    return part


def rules_of(settings: Settings) -> Rules:
    """Return what is evaluated: the monitor's settings, and the roles that the profiles name."""
    profiles = profiles_of(settings)
    roles = {name: one.role for name, one in profiles.benign.items() if one.role is not None}
    return Rules(settings=monitor_settings(settings), roles=roles, confidence=settings.statistics.confidence)


def replayed(part: Part, traffic: Path, counts: Path, *, settings: Settings) -> Replayed:
    """Return one part of the traffic with its counts; raises GateError when a query was not counted."""
    events = read_records(traffic, QueryEvent, key=event_key)
    found = {row.query_id: row for row in read_records(counts, CountedQuery, key=event_key)}
    require_same_ids(expected=(one.query_id for one in events), actual=found, where=str(counts))
    actors = actors_of(events, found)
    months = _span_months(actors) if part == "log" else settings.monitor.days / MONTH_DAYS
    return Replayed(part=part, actors=actors, months_per_user=months)


def _span_months(actors: Sequence[Actor]) -> float:
    """Return the months that a log spans, for which each of its users was watched."""
    times = [one.event.time for actor in actors for one in (actor.asked[0], actor.asked[-1])]
    return (max(times) - min(times)) / MONTH_SECONDS


def build_tables(
    parts: Mapping[Part, Replayed], *, delivered: Iterable[DeliveredQuery], rules: Rules, settings: Settings
) -> dict[str, pd.DataFrame]:
    """Return the tables by name; thresholds are chosen on `development` alone."""
    ordered = list(parts.values())
    arrays = {part: part_of(one, rules) for part, one in parts.items()}
    cells = cells_of(settings.monitor.sweep, rules.settings)
    scores = {part: scores_of(one, cells, rules=rules) for part, one in arrays.items()}
    budgets = settings.monitor.false_alarm_budgets
    development = arrays["development"], scores["development"]
    chosen = {budget: chosen_cell(*development, budget=budget, rules=rules) for budget in budgets}
    named = {
        f"budget {budget:g}": settings_of(cell, rules.settings) for budget, cell in chosen.items() if cell is not None
    }
    return {
        "detection": detection_table(ordered, rules=rules),
        "false_alarms": false_alarms_table(ordered, chosen=named, rules=rules),
        "collections": collections_table(ordered, rules=rules),
        "sweep": sweep_table(list(arrays.values()), list(scores.values()), rules=rules),
        "curves": curves_table(list(arrays.values()), rules=rules),
        "recommendation": recommendation_table(list(arrays.values()), chosen, rules=rules),
        "throttling": throttling_table(parts["check"], delivered, confidence=rules.confidence),
        "languages": languages_table(ordered, languages=settings.languages, rules=rules),
    }
