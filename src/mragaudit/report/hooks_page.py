"""The hook audit of someone's code as one HTML file that loads nothing and runs no script."""

from __future__ import annotations

import msgspec
from markupsafe import Markup

from mragaudit.hookaudit.attacks import AttackMap
from mragaudit.hookaudit.inventory import Inventory
from mragaudit.hookaudit.matrix import found_defenses
from mragaudit.hookaudit.metrics import MetricMap
from mragaudit.hookaudit.predictions import predict
from mragaudit.hookaudit.probe.records import Observation
from mragaudit.report import hooks_views as views
from mragaudit.report.page import content_policy, environment, template_text
from mragaudit.report.prediction_views import attacks_view, predictions_view


class HooksReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the page is made from."""

    inventory: Inventory
    observations: tuple[Observation, ...] | None
    """None where nothing was probed."""
    metrics: MetricMap
    attacks: AttackMap
    links: views.SourceLinks | None
    """None: places are text."""


def render_hooks(report: HooksReport) -> str:
    """Return the whole page; the same input gives the same bytes. Free text can reach it as text only."""
    style = hooks_style()
    defenses = found_defenses(report.inventory.verdicts)
    predictions = predict(defenses, report.metrics, attacks=report.attacks)
    content = {
        "root": report.inventory.root,
        "policy": content_policy(style=style, script=""),
        "style": Markup(style),  # noqa: S704 - our own files
        "hooks": views.hooks_view(report.inventory, observations=report.observations, links=report.links),
        "matrix_view": views.matrix_view(defenses, report.metrics),
        "attacks": attacks_view(report.attacks),
        "predictions_view": predictions_view(predictions),
    }
    page = environment().get_template("hooks.html.j2").render(content)
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def hooks_style() -> str:
    """Return the styles that the macros of the hook audit need, those of all pages among them."""
    return template_text("report.css") + template_text("hooks.css")
