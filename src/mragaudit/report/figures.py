"""The figures as SVG text, drawn by matplotlib without global state, the same bytes for the same tables.

Colours are Okabe and Ito's (2008), told apart by colour-blind readers; hatches and labels carry them in
print.
Plots name languages by ASCII code, because plotting libraries reverse Arabic and lack Chinese glyphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

import matplotlib as mpl
import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mragaudit.report.flow import NO_GUARD, NOT_EVALUATED, Flow, flows, select, values_of
from mragaudit.report.model import Finding, Language, PublishedFigures
from mragaudit.report.words import STAGE_WORDS
from mragaudit.stats.intervals import CONFIDENCE, conditional_rates
from mragaudit.tables.funnel import ESCAPED, stage_order

BLUE, SKY, GREEN, ORANGE, RED, GREY = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#DDDDDD"
INK = "#222222"
STAGE_STYLE: dict[Any, Any] = {
    "queried": ("#FFFFFF", ""),
    "translated": (SKY, ""),
    "judge": (BLUE, ""),
    "retrieved": (GREEN, ""),
    "generated": (GREY, ""),
    "filter": (ORANGE, ""),
    ESCAPED: (RED, "//"),
    NOT_EVALUATED: ("#FFFFFF", "xx"),
}
LIGHT_TEXT = frozenset({"judge", "retrieved"})
LABEL_SHARE = 0.045  # a narrower segment has no room for its count
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "mragaudit",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 0.6,
}
FONT_FALLBACK = "'DejaVu Sans', Verdana, Arial, sans-serif"  # where the reader's machine lacks the first

Floats = npt.NDArray[np.float64]


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What every drawing needs to know."""

    tables: Mapping[str, pd.DataFrame]
    langs: list[str]
    """ASCII language codes in order."""
    sources: list[str | None]
    """Query sources, one row of panels each; `[None]` where the tables do not tell."""
    judge: str
    output_filter: str
    confidence: float
    published: PublishedFigures | None


def draw_figures(
    tables: Mapping[str, pd.DataFrame],
    languages: Sequence[Language],
    *,
    confidence: float = CONFIDENCE,
    published: PublishedFigures | None = None,
    default_judge: str = "english",
    default_filter: str = "regex_ascii",
) -> dict[str, str]:
    """Return the figures as SVG text: funnel, leak_rates, judges, retrieval, translation.

    Bars of F1 and F3 carry two-sided Wilson intervals of that level from the tables' counts. Where the tables keep
    query sources apart, each source has its own row of panels. A cell with n = 0 has no bar but
    the words `n = 0`.
    """
    found: list[str | None] = [*values_of(tables["f1_output_only"], "query_source")]
    scene = Scene(
        tables=tables,
        langs=[one.code for one in languages],
        sources=found or [None],
        judge=default_judge,
        output_filter=default_filter,
        confidence=confidence,
        published=published,
    )
    with mpl.rc_context(STYLE):
        return {name: svg_text(draw(scene)) for name, draw in DRAWINGS.items()}


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG text, the same bytes for the same figure."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue().replace("'DejaVu Sans'", FONT_FALLBACK)


def _grid(scene: Scene, *, columns: int, width: float, row_height: float) -> tuple[Figure, npt.NDArray[np.object_]]:
    rows = len(scene.sources)
    figure = Figure(figsize=(width, row_height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, axes


def _of_source(table: pd.DataFrame, source: str | None) -> pd.DataFrame:
    if source is None or "query_source" not in table.columns:
        return table
    return select(table, query_source=source)


def _title(scene: Scene, text: str, *, source: str | None) -> str:
    return text if len(scene.sources) == 1 else f"{text}\n{source} queries"


def _share_axis(ax: Axes, *, horizontal: bool) -> None:
    limit = ax.set_xlim if horizontal else ax.set_ylim
    limit(0.0, 1.02)
    ax.grid(visible=True, axis="x" if horizontal else "y", color="#E5E5E5", linewidth=0.7)
    ax.set_axisbelow(True)


def _language_rows(ax: Axes, langs: Sequence[str]) -> None:
    ax.set_yticks(range(len(langs)), labels=list(langs))
    ax.set_ylim(len(langs) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _draw_funnel(scene: Scene) -> Figure:
    figure, axes = _grid(scene, columns=2, width=10.4, row_height=0.42 * len(scene.langs) + 1.5)
    guards = ((NO_GUARD, NO_GUARD, "No judge, no filter"), _default_guard(scene))
    for row, source in enumerate(scene.sources):
        for column, (judge, output_filter, title) in enumerate(guards):
            ax = axes[row, column]
            found = flows(scene.tables["funnel"], scene.langs, judge=judge, output_filter=output_filter, source=source)
            _stacked(ax, found, order=[*stage_order(scene.judge), ESCAPED, NOT_EVALUATED])
            ax.set_title(_title(scene, title, source=source), loc="left")
            ax.set_ylim(len(scene.langs) - 0.4, -0.6)  # a source asked in fewer languages keeps the bars' height
            ax.set_xlabel("share of attack trials (numbers: trials)")
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8.5)
    return figure


def _default_guard(scene: Scene) -> tuple[str, str, str]:
    return scene.judge, scene.output_filter, f"Judge {scene.judge}, filter {scene.output_filter}"


def _stacked(ax: Axes, found: Sequence[Flow], *, order: Sequence[str]) -> None:
    left = np.zeros(len(found))
    totals = np.array([max(flow.n_trials, 1) for flow in found], dtype=np.float64)
    for stage in order:
        counts = np.array([flow.counts[stage] for flow in found], dtype=np.float64)
        colour, hatch = STAGE_STYLE[stage]
        bars = ax.barh(
            np.arange(len(found)), counts / totals, left=left, height=0.74, color=colour, hatch=hatch,
            edgecolor="#444444", linewidth=0.5, label=STAGE_WORDS[stage],
        )  # fmt: skip
        labels = [f"{int(k)}" if k / n >= LABEL_SHARE else "" for k, n in zip(counts, totals, strict=True)]
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if hatch else None
        for text in ax.bar_label(bars, labels=labels, label_type="center", fontsize=8):
            text.set_color("white" if stage in LIGHT_TEXT else INK)
            if box and text.get_text():
                text.set_bbox(box)
        left = left + counts / totals
    _language_rows(ax, [flow.lang for flow in found])
    ax.set_xlim(0.0, 1.0)


def _draw_rates(scene: Scene) -> Figure:
    filters = values_of(scene.tables["f1_output_only"], "filter_variant")
    figure, axes = _grid(scene, columns=len(filters) + 1, width=10.4, row_height=2.7)
    for row, source in enumerate(scene.sources):
        for column, output_filter in enumerate(filters):
            table = select(_of_source(scene.tables["f1_output_only"], source), filter_variant=output_filter)
            ax = axes[row, column]
            _rate_bars(ax, scene, table=table)
            _published_marks(ax, scene, finding="F1", judge=NO_GUARD, output_filter=output_filter)
            ax.set_title(_title(scene, f"F1, filter {output_filter}", source=source), loc="left")
        guarded = select(
            _of_source(scene.tables["f3_combined"], source),
            judge_variant=scene.judge,
            filter_variant=scene.output_filter,
        )
        ax = axes[row, len(filters)]
        _rate_bars(ax, scene, table=guarded)
        _published_marks(ax, scene, finding="F3", judge=scene.judge, output_filter=scene.output_filter)
        ax.set_title(_title(scene, f"F3, {scene.judge} + {scene.output_filter}", source=source), loc="left")
        axes[row, 0].set_ylabel("share of documents leaked")
    return figure


def _rate_bars(ax: Axes, scene: Scene, *, table: pd.DataFrame) -> None:
    rows = select(table, pii_group="unstructured").set_index("lang").reindex(scene.langs)
    leaked = rows["n_leaked"].fillna(0).to_numpy(dtype=np.float64)
    n = (rows["n_documents"] - rows["n_not_evaluated"]).fillna(0).to_numpy(dtype=np.float64)
    cells = conditional_rates(leaked, n, confidence=scene.confidence)
    place = np.arange(len(scene.langs), dtype=np.float64)
    ax.bar(place, np.nan_to_num(cells.rate), width=0.62, color=SKY, edgecolor="#444444", linewidth=0.6)
    _whiskers(ax, place, low=cells.low, high=cells.high, rate=cells.rate)
    for x, total in zip(place, n, strict=True):
        if total == 0:
            ax.text(float(x), 0.02, "n = 0", ha="center", rotation=90, fontsize=8)
    labels = [f"{lang}\nn={int(total)}" for lang, total in zip(scene.langs, n, strict=True)]
    ax.set_xticks(place, labels=labels, fontsize=8)
    _share_axis(ax, horizontal=False)


def _whiskers(ax: Axes, place: Floats, *, low: Floats, high: Floats, rate: Floats) -> None:
    known = ~np.isnan(rate)
    # The limits can miss the rate by a rounding error at 0 and at 1.
    below, above = np.maximum(rate - low, 0.0), np.maximum(high - rate, 0.0)
    ax.errorbar(
        place[known],
        rate[known],
        yerr=np.vstack([below[known], above[known]]),
        fmt="none",
        ecolor=INK,
        capsize=3,
        lw=1,
    )


def _published_marks(ax: Axes, scene: Scene, *, finding: Finding, judge: str, output_filter: str) -> None:
    if scene.published is None:
        return
    for x, lang in enumerate(scene.langs):
        one = scene.published.find(finding, lang=lang, group="unstructured", judge=judge, output_filter=output_filter)
        if one is None:
            continue
        ax.plot([x + 0.4, x + 0.4], [one.low, one.high], color=RED, lw=1.5)
        marker = "D" if one.low == one.high else "_"
        ends = [one.low, one.high]
        ax.plot([x + 0.4] * 2, ends, marker, color=RED, ms=4, label="published", clip_on=False, ls="none")
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        ax.legend(handles[:1], labels[:1], loc="upper right", frameon=False, fontsize=8)


def _draw_judges(scene: Scene) -> Figure:
    variants = values_of(scene.tables["judges"], "judge_variant")
    figure, axes = _grid(scene, columns=max(len(variants), 1), width=10.4, row_height=0.34 * len(scene.langs) + 1.35)
    for row, source in enumerate(scene.sources):
        for column, variant in enumerate(variants):
            ax = axes[row, column]
            table = select(_of_source(scene.tables["judges"], source), judge_variant=variant)
            cells = table.set_index("lang").reindex(scene.langs)
            _interval_dots(ax, cells, prefix=("block_rate", "block"), style=("o", BLUE, "attacks blocked", -0.14))
            style = ("s", ORANGE, "benign blocked (false positives)", 0.14)
            _interval_dots(ax, cells, prefix=("false_positive_rate", "fpr"), style=style)
            _language_rows(ax, scene.langs)
            _share_axis(ax, horizontal=True)
            ax.set_xlim(-0.04, 1.04)
            ax.set_title(_title(scene, f"judge {variant}", source=source), loc="left")
    axes[-1, axes.shape[1] // 2].set_xlabel("share of trials, with the table's interval")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return figure


def _interval_dots(
    ax: Axes, cells: pd.DataFrame, *, prefix: tuple[str, str], style: tuple[str, str, str, float]
) -> None:
    marker, colour, label, shift = style
    rate = cells[prefix[0]].to_numpy(dtype=np.float64)
    low = cells[f"{prefix[1]}_ci_low"].to_numpy(dtype=np.float64)
    high = cells[f"{prefix[1]}_ci_high"].to_numpy(dtype=np.float64)
    place = np.arange(len(cells)) + shift
    known = ~np.isnan(rate)
    ax.hlines(place[known], low[known], high[known], color=colour, lw=1.4)
    ax.plot(rate[known], place[known], marker, color=colour, ms=5.5, label=label, mec="#333333", mew=0.5)


def _draw_retrieval(scene: Scene) -> Figure:
    figure, axes = _grid(scene, columns=2, width=8.4, row_height=2.5)
    for row, source in enumerate(scene.sources):
        for column, intent in enumerate(("attack", "benign")):
            ax = axes[row, column]
            table = select(_of_source(scene.tables["retrieval"], source), intent=intent)
            _recall(ax, table, langs=scene.langs)
            ax.set_title(_title(scene, f"{intent} queries", source=source), loc="left")
        axes[row, 0].set_ylabel("recall at k")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    return figure


def _recall(ax: Axes, table: pd.DataFrame, *, langs: Sequence[str]) -> None:
    parts = [part for _, part in table.groupby("paraphrase", dropna=False, sort=False)]
    shapes = list(zip(("o", "s", "^", "D"), (BLUE, ORANGE, GREEN, RED), strict=True))
    width = 0.7 / max(len(parts), 1)
    for number, part in enumerate(parts):
        marker, colour = shapes[number % len(shapes)]
        deepest = part[part["k"] == part["k"].max()].set_index("lang").reindex(langs)
        place = np.arange(len(langs)) + (number - (len(parts) - 1) / 2) * width
        rate = deepest["recall_at_k"].to_numpy(dtype=np.float64)
        low, high = (deepest[f"recall_ci_{end}"].to_numpy(dtype=np.float64) for end in ("low", "high"))
        name = values_of(part, "paraphrase") or ["no paraphrase"]
        ax.vlines(place, low, high, color=colour, lw=1.4)
        ax.plot(place, rate, marker, color=colour, ms=5, label=name[0], mec="#333333", mew=0.5, clip_on=False)
    ax.set_xticks(range(len(langs)), labels=list(langs))
    _share_axis(ax, horizontal=False)


def _draw_translation(scene: Scene) -> Figure:
    measures = (
        ("anchor_kept_rate", "anchor kept"),
        ("language_ok_rate", "right language"),
        ("median_round_trip_similarity", "round-trip similarity (median)"),
        ("median_length_ratio", "length ratio (median)"),
    )
    figure, axes = _grid(scene, columns=len(measures), width=10.4, row_height=0.3 * len(scene.langs) + 1.0)
    for row, source in enumerate(scene.sources):
        cells = _of_source(scene.tables["translation"], source).set_index("lang").reindex(scene.langs)
        for column, (measure, title) in enumerate(measures):
            ax = axes[row, column]
            value = cells[measure].to_numpy(dtype=np.float64)
            ax.barh(
                np.arange(len(value)),
                np.nan_to_num(value),
                height=0.6,
                color=SKY,
                edgecolor="#444444",
                lw=0.6,
            )
            for y in np.flatnonzero(np.isnan(value)):
                ax.text(0.02, float(y), "none", va="center", fontsize=8)
            _language_rows(ax, scene.langs)
            if measure != "median_length_ratio":
                _share_axis(ax, horizontal=True)
            ax.set_title(_title(scene, title, source=source), loc="left")
    return figure


DRAWINGS: dict[str, Callable[[Scene], Figure]] = {
    "funnel": _draw_funnel,
    "leak_rates": _draw_rates,
    "judges": _draw_judges,
    "retrieval": _draw_retrieval,
    "translation": _draw_translation,
}
