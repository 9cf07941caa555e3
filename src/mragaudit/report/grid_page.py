"""The hook audit's grid as one HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pandas as pd
from markupsafe import Markup

from mragaudit.hookaudit.attacks import AttackMap
from mragaudit.hookaudit.inventory import Inventory
from mragaudit.hookaudit.matrix import ActiveHooks
from mragaudit.hookaudit.metrics import MetricMap
from mragaudit.hookaudit.predictions import PredictionScores
from mragaudit.hookaudit.probe.records import Observation
from mragaudit.report import grid_views as views
from mragaudit.report import words
from mragaudit.report.grid_figures import draw_canaries, draw_extraction_curve, draw_leak_types
from mragaudit.report.hooks_page import hooks_style
from mragaudit.report.hooks_views import hooks_view, matrix_view
from mragaudit.report.page import content_policy, environment, image_uri
from mragaudit.report.prediction_views import attacks_view, scores_view

ALL_KINDS = "all"


class GridReport(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the page is made from."""

    run: str
    tables: Mapping[str, pd.DataFrame]
    confidence: float
    """Level of the tables' intervals."""
    inventory: Inventory
    observations: tuple[Observation, ...] | None
    not_probed: str
    """Why nothing was probed; empty where it was."""
    acting: Sequence[ActiveHooks]
    """Where each defended arm acts."""
    metrics: MetricMap
    attacks: AttackMap
    scores: PredictionScores
    modes: Mapping[str, str]
    """Mode → what the attacker knows in it."""
    settings_summary: Sequence[tuple[str, str]]


def render_grid(report: GridReport) -> str:
    """Return the whole page; the same input gives the same bytes. Free text can reach it as text only."""
    with words.interval_level(report.confidence):
        return _page(report)


def _page(report: GridReport) -> str:
    style, tables = hooks_style(), report.tables
    content = {
        "report": report,
        "level": words.as_level(),
        "policy": content_policy(style=style, script=""),
        "style": Markup(style),  # noqa: S704 - our own files
        "figure_uri": {name: image_uri(svg) for name, svg in _figures(tables).items()},
        "warnings": list(views.warnings(tables, not_probed=report.not_probed)),
        "plan": views.plan_sentence(tables["cells"]),
        "certified": views.verdict_sentences(tables["certification"]),
        "hooks": hooks_view(report.inventory, observations=report.observations, links=None),
        "matrix_view": matrix_view(report.acting, report.metrics),
        "attacks": attacks_view(report.attacks),
        "scored": scores_view(report.scores),
        "leak_types": views.leak_types_views(tables["leak_types"]),
        "leaks": views.leaks_view(tables["leaks"], kind=ALL_KINDS, utility=tables["utility"]),
        **{
            name: getattr(views, f"{name}_view")(tables[name], utility=tables["utility"])
            for name in ("canaries", "certification", "extraction", "attack_success", "membership", "adaptive")
        },
        **{
            name: getattr(views, f"{name}_view")(tables[name])
            for name in ("splits", "utility", "coverage", "controls", "cells", "effects")
        },
    }
    page = environment().get_template("grid.html.j2").render(content)
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    drawn: dict[str, str] = {}
    if len(tables["canaries"]):
        drawn["canaries"] = draw_canaries(tables["canaries"])
    if len(tables["leak_types"]):
        drawn["leak_types"] = draw_leak_types(tables["leak_types"])
    curve = tables["extraction_curve"]
    undefended = curve[curve["arm"] == views.UNDEFENDED]
    if len(undefended):
        drawn["extraction_curve"] = draw_extraction_curve(undefended)
    return drawn
