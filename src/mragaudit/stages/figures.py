"""Stage `figures`: tables into SVG; no model is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.records.base import write_text
from mragaudit.report.figures import draw_figures
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.reporting import (
    default_filter,
    default_judge,
    languages_of,
    published_beside,
)


def run(*, tables: Mapping[str, Path], figures: Mapping[str, Path], settings: Settings) -> None:
    """Write `figures/*.svg`."""
    drawn = draw_figures(
        {name: read_table(path) for name, path in tables.items()},
        languages_of(settings),
        confidence=settings.statistics.confidence,
        published=published_beside(settings),
        default_judge=default_judge(settings),
        default_filter=default_filter(settings),
    )
    for name, path in figures.items():
        write_text(path, drawn[name])
