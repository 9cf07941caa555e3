"""The report as one HTML file that loads nothing: styles, script, figures and trials stand inside it."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mragaudit.report import tables, words
from mragaudit.report.masking import require_masked
from mragaudit.report.model import ReportInput
from mragaudit.report.noise import noise_view
from mragaudit.report.trial_data import trial_json


def render(report: ReportInput) -> str:
    """Return the whole page; the same input gives the same bytes.

    Free text can reach the page as text only: templates escape, the script inserts trials as text nodes,
    figures are images, and a content security policy allows the two hashed blocks and data images only.
    Raises DataError when the report says that it is masked and a planted value is not.
    """
    require_masked(report)
    with words.interval_level(report.noise.confidence):
        return _page(report)


def _page(report: ReportInput) -> str:
    style, script = template_text("report.css"), template_text("report.js")
    content = {
        "report": report,
        "level": words.as_level(),
        "policy": content_policy(style=style, script=script),
        "style": Markup(style),  # noqa: S704 - our own file
        "script": Markup(script),  # noqa: S704 - our own file
        "trial_json": Markup(trial_json(report.traces, report.languages)),  # noqa: S704 - escaped by trial_json
        "figure_uri": {name: image_uri(svg) for name, svg in report.figures.items()},
        "embedded": any(one.embedded for one in report.models),
        **_views(report),
    }
    page = environment().get_template("report.html.j2").render(content)
    # A lone surrogate has no UTF-8 form; the templates show theirs as words, this covers attribute values.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _views(report: ReportInput) -> dict[str, Any]:
    judge, output_filter = report.default_judge, report.default_filter
    return {
        "headline": tables.headline_view(report),
        "findings": tables.finding_views(report),
        "funnel_open": tables.funnel_view(report, judge="none", output_filter="none"),
        "funnel_guarded": tables.funnel_view(report, judge=judge, output_filter=output_filter),
        "stops": tables.stops_view(report),
        "simple": tables.simple_views(report),
        "contrasts": tables.contrast_views(report),
        "differences": tables.count_differences(report),
        "silent": tables.silent_languages(report),
        "constant": constant_judges(report),
        "noise": noise_view(report),
    }


def constant_judges(report: ReportInput) -> list[str]:
    """Return `variant in language` for each judge that answers alike on all controls."""
    rows = report.tables["judges"].to_dict("records")
    return [f"{row['judge_variant']} in {row['lang']}" for row in rows if str(row["constant"]).lower() in {"true", "1"}]


def content_policy(*, style: str, script: str) -> str:
    """Return the policy: nothing from anywhere, but this style, this script (by hash) and data images."""
    return (
        f"default-src 'none'; style-src '{_source_hash(style)}'; script-src '{_source_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _source_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def image_uri(svg: str) -> str:
    """Return an SVG as a data URI: as an image it can run no script and load nothing."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode('utf-8')).decode('ascii')}"


@cache
def template_text(name: str) -> str:
    """Return one of the package's own template files as text."""
    return files("mragaudit.report").joinpath("templates", name).read_text(encoding="utf-8")


def environment() -> Environment:
    """Return the environment of all pages: escaping, strict about names, control characters shown."""
    made = Environment(
        loader=PackageLoader("mragaudit.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(count=words.as_count, share=words.as_share, number=words.as_number)
    return made


def _shown(value: Any) -> Any:
    """Show control characters of free text and cut it; markup of our own passes through."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return words.visible(words.clip(value))
    return value
