"""Stage `monitor_page`: the monitor's findings on one page; no store and no model is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mragaudit.config import Settings
from mragaudit.monitor.core import MonitorCore
from mragaudit.monitor.evaluation.replayed import HOUR_SECONDS, Replayed, Rules
from mragaudit.monitor.rejudge import Actor, Judgement, judge
from mragaudit.monitor.risk import SIGNALS
from mragaudit.paths import MONITOR_TABLES, RunPaths
from mragaudit.records.base import write_text
from mragaudit.report.monitor_figures import Floats, Timeline
from mragaudit.report.monitor_page import MonitorReport, render_monitor
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.monitor_files import profiles_of
from mragaudit.stages.monitor_tables import replayed, rules_of

SHOWN = ("low_and_slow", "confidential_pulls", "daily_reader")
"""Profiles whose first account is drawn over time: a sweep, targeted pulls, and an honest user."""


def run(*, run_folder: Path, html: Path, settings: Settings) -> None:
    """Write `monitor/report.html`."""
    paths = RunPaths(run_folder)
    rules = rules_of(settings)
    files = [paths.monitor / folder / "check.jsonl" for folder in ("traffic", "replay")]
    check = replayed("check", *files, settings=settings)
    report = MonitorReport(
        run=settings.run,
        tables={name: read_table(paths.monitor_table(name)) for name in MONITOR_TABLES},
        confidence=settings.statistics.confidence,
        timelines=timelines(check, rules),
        settings_summary=list(_summary(rules, settings)),
        profiles=list(_reasons(settings)),
        roles=sorted(rules.roles),
    )
    write_text(html, render_monitor(report))


def timelines(check: Replayed, rules: Rules) -> list[Timeline]:
    """Return the timeline of the first account of each shown profile; of any actor where none is there."""
    core = MonitorCore(rules.settings)
    actors = [_first(check.actors, name) for name in SHOWN]
    chosen = [one for one in actors if one is not None] or list(check.actors[:1])
    return [timeline(one, judge(one, core), throttle_at=rules.settings.composite.throttle_at) for one in chosen]


def _first(actors: Sequence[Actor], profile: str) -> Actor | None:
    found = [one for one in actors if one.profile == profile]
    return next((one for one in found if one.lang == "en"), found[0] if found else None)


def timeline(actor: Actor, judgements: Sequence[Judgement], *, throttle_at: float) -> Timeline:
    """Return an actor's scores over time."""
    scores: dict[str, Floats] = {name: np.array([_score(one, name) for one in judgements]) for name in SIGNALS}
    composite = [np.nan if one.decision.composite is None else one.decision.composite for one in judgements]
    seen: set[str] = set()
    documents = []
    for one in actor.asked:
        seen.update(document.doc_id for document in one.event.documents)
        documents.append(len(seen))
    start = actor.asked[0].event.time
    lang = f", {actor.lang}" if actor.lang else ""
    return Timeline(
        title=f"{actor.profile.replace('_', ' ')}{lang} ({actor.kind})",
        hours=np.array([(one.event.time - start) / HOUR_SECONDS for one in actor.asked]),
        scores={**scores, "composite": np.array(composite)},
        throttle_at=throttle_at,
        throttled=np.array([one.decision.throttled for one in judgements]),
        documents=np.array(documents),
    )


def _score(judgement: Judgement, name: str) -> float:
    found = next((one.score for one in judgement.decision.signals if one.signal == name), None)
    return np.nan if found is None else found


def _summary(rules: Rules, settings: Settings) -> Iterator[tuple[str, str]]:
    monitor, given = settings.monitor, rules.settings
    yield "volume", f"more than {given.volume.max_queries} queries in {given.volume.window_seconds:g} s"
    yield "coverage", f"more than {given.coverage.max_share:g} of the collection in {given.coverage.window_seconds:g} s"
    sensitivity = given.sensitivity
    share = f"more than {sensitivity.max_share:g} sensitive in {sensitivity.window_seconds:g} s"
    yield "sensitivity", f"{share}, or than the baseline"
    yield "weights", ", ".join(f"{name} {weight:g}" for name, weight in given.composite.weights.items())
    yield "throttled from", f"{given.composite.throttle_at:g}, released below {given.composite.release_at:g}"
    yield "smallest collection for shares", f"{given.min_collection} documents"
    yield "development seeds", ", ".join(map(str, monitor.development_seeds))
    yield "check seeds", ", ".join(map(str, monitor.check_seeds))
    yield "users, attackers of each profile a seed", f"{monitor.users_per_seed}, {monitor.attackers_per_seed}"
    yield "days of every user", str(monitor.days)
    yield "access log", monitor.access_log or "none"
    yield "answers of the audit used", "yes" if monitor.answers else "no: items disclosed are not evaluated"


def _reasons(settings: Settings) -> Iterator[tuple[str, str]]:
    profiles = profiles_of(settings)
    for name, benign in profiles.benign.items():
        yield name, benign.reason
    for name in type(profiles.attackers).model_fields:
        yield name, getattr(profiles.attackers, name).reason
