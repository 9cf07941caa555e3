"""The exfiltration monitor's findings as one HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
import pandas as pd
from markupsafe import Markup

from mragaudit.report import monitor_views as views
from mragaudit.report import words
from mragaudit.report.monitor_figures import Timeline, draw_curves, draw_languages, draw_timelines
from mragaudit.report.page import content_policy, environment, image_uri, template_text


class MonitorReport(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the page is made from."""

    run: str
    tables: Mapping[str, pd.DataFrame]
    confidence: float
    """Level of the tables' intervals."""
    timelines: Sequence[Timeline]
    settings_summary: Sequence[tuple[str, str]]
    profiles: Sequence[tuple[str, str]]
    """Profile of a user or attacker, and the reason of its rates."""
    roles: Collection[str]
    """Benign profiles for which a role is given."""


def render_monitor(report: MonitorReport) -> str:
    """Return the whole page; the same input gives the same bytes. Free text can reach it as text only."""
    with words.interval_level(report.confidence):
        return _page(report)


def _page(report: MonitorReport) -> str:
    style = template_text("report.css")
    tables = report.tables
    curves, alarms = tables["curves"], tables["false_alarms"]
    languages = tables["languages"]
    check = languages[languages["part"] == "check"] if len(languages) else languages
    figures = {
        "timelines": draw_timelines(report.timelines),
        "curves": draw_curves(curves[curves["part"] == "check"]),
        **({"languages": draw_languages(check)} if len(check) else {}),
    }
    content = {
        "report": report,
        "level": words.as_level(),
        "policy": content_policy(style=style, script=""),
        "style": Markup(style),  # noqa: S704 - our own file
        "figure_uri": {name: image_uri(svg) for name, svg in figures.items()},
        "detection": views.detection_view(tables["detection"]),
        "signals": views.signals_view(tables["detection"]),
        "alarms": views.alarms_view(alarms, settings=views.CONFIGURED),
        "alarms_by_signal": views.alarms_view(alarms, settings=views.CONFIGURED, by_signal=True),
        "alarms_chosen": [
            (name, views.alarms_view(alarms, settings=name))
            for name in alarms["settings"].unique()
            if name != views.CONFIGURED
        ],
        "recommendation": views.recommendation_view(tables["recommendation"]),
        "throttling": views.throttling_view(tables["throttling"]),
        "languages": views.languages_view(languages) if len(check) else None,
        "collections": views.collections_view(tables["collections"]),
        "missed": views.missed(tables["detection"]),
        "roles": views.roles_needed(alarms, roles=report.roles),
        "unevaluated": views.unevaluated(tables["detection"], alarms),
    }
    page = environment().get_template("monitor.html.j2").render(content)
    return page.encode("utf-8", "backslashreplace").decode("utf-8")
