"""Figures of the exfiltration monitor: one user's signals over time, curves of thresholds, languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mragaudit.report.figures import BLUE, GREEN, INK, ORANGE, RED, STYLE, svg_text
from mragaudit.report.words import as_level

Floats = npt.NDArray[np.float64]
SIGNAL_STYLE: Mapping[str, tuple[str, str]] = {
    "volume": (BLUE, "--"),
    "coverage": (GREEN, "-."),
    "sensitivity": (ORANGE, ":"),
    "composite": (RED, "-"),
}
CURVE_MARKS: Mapping[str, str] = {"volume": "s", "coverage": "^", "sensitivity": "D", "composite": "o"}
LEAST_SHOWN_RATE = 0.01
"""Below this many spells a user-month the axis is linear, so that 0 has a place."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One account's scores at each of its queries."""

    title: str
    hours: Floats
    """Since its first query, shape `(n_queries,)`."""
    scores: Mapping[str, Floats]
    """Signal, or `composite` → score from 0 to 1, NaN where not evaluated; shape `(n_queries,)`."""
    throttle_at: float
    throttled: npt.NDArray[np.bool_]
    documents: npt.NDArray[np.int64]
    """Distinct documents returned up to and with each query."""


def draw_timelines(timelines: Sequence[Timeline]) -> str:
    """Return one panel an account: scores, composite, and the moment of throttling."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.4, 2.5 * len(timelines) + 0.5), layout="constrained")
        axes = figure.subplots(len(timelines), 1, squeeze=False)
        for ax, timeline in zip(axes[:, 0], timelines, strict=True):
            _timeline(ax, timeline)
        axes[-1, 0].set_xlabel("hours since the first query")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
        return svg_text(figure)


def _timeline(ax: Axes, timeline: Timeline) -> None:
    for name, (colour, dash) in SIGNAL_STYLE.items():
        width = 2.0 if name == "composite" else 1.2
        ax.step(timeline.hours, timeline.scores[name], where="post", color=colour, ls=dash, lw=width, label=name)
    ax.axhline(timeline.throttle_at, color="#888888", lw=0.9, label=f"throttled from {timeline.throttle_at:g}")
    ax.fill_between(
        timeline.hours, -0.02, 1.06, where=timeline.throttled.tolist(), step="post", color=RED, alpha=0.1, lw=0
    )
    ax.set_ylim(-0.02, 1.06)
    ax.set_xlim(left=0.0)
    ax.set_ylabel("score")
    ax.set_title(timeline.title, loc="left")
    ax.grid(visible=True, axis="y", color="#E5E5E5", linewidth=0.7)
    _moment(ax, timeline)


def _moment(ax: Axes, timeline: Timeline) -> None:
    found = np.flatnonzero(timeline.throttled)
    if not found.size:
        ax.set_title("never throttled", loc="right", fontsize=8.5)
        return
    first = int(found[0])
    before = int(timeline.documents[first - 1]) if first else 0
    ax.axvline(float(timeline.hours[first]), color=INK, lw=1.0)
    ax.set_title(
        f"throttled at {timeline.hours[first]:.1f} h (vertical line), query {first + 1}, after {before} documents",
        loc="right",
        fontsize=8.5,
    )


def draw_curves(curves: pd.DataFrame) -> str:
    """Return ROC and cost curves of the check seeds: one line a signal, large marks at the configured thresholds."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.4, 3.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        for signal in SIGNAL_STYLE:
            rows = curves[curves["signal"] == signal].sort_values("scale")
            _curve(left, rows, signal=signal, value="rate", limits=("ci_low", "ci_high"))
            _curve(
                right, rows, signal=signal, value="documents_median", limits=("documents_ci_low", "documents_ci_high")
            )
        left.set_ylabel("share of attackers throttled")
        left.set_ylim(0.0, 1.04)
        right.set_ylabel("documents taken before (median)")
        right.set_ylim(bottom=0.0)
        for ax in (left, right):
            _alarm_axis(ax)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
        return svg_text(figure)


def _curve(ax: Axes, rows: pd.DataFrame, *, signal: str, value: str, limits: tuple[str, str]) -> None:
    colour, dash = SIGNAL_STYLE[signal]
    x, y = _column(rows, "spells_per_user_month"), _column(rows, value)
    ax.plot(x, y, color=colour, ls=dash, lw=1.4, marker=".", ms=4, label=signal)
    here = rows[rows["scale"] == 1.0]
    if len(here):
        place, low, high = (_column(here, name) for name in ("spells_per_user_month", *limits))
        ax.vlines(place, low, high, color=colour, lw=1.2)
        ax.plot(place, _column(here, value), CURVE_MARKS[signal], color=colour, ms=8, mec="#333333", mew=0.6)


def _column(rows: pd.DataFrame, name: str) -> Floats:
    return rows[name].to_numpy(dtype=np.float64)


def _alarm_axis(ax: Axes) -> None:
    ax.set_xscale("symlog", linthresh=LEAST_SHOWN_RATE * 10)
    ax.set_xlim(left=-LEAST_SHOWN_RATE)
    ax.set_xlabel("spells of throttling a benign user-month")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.grid(visible=True, color="#E5E5E5", linewidth=0.7)
    ax.set_axisbelow(True)


def draw_languages(languages: pd.DataFrame) -> str:
    """Return the same sweep in every language: targets found, and time until throttled."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.4, 0.34 * len(languages) + 1.3), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        _dots(left, languages, names=("target_found_rate", "target_found_ci_low", "target_found_ci_high"))
        left.set_xlim(0.0, 1.04)
        left.set_title("targets found", loc="left")
        left.set_xlabel(f"share of documents, two-sided {as_level()} Wilson")
        _dots(middle, languages, names=("documents_median", "documents_ci_low", "documents_ci_high"))
        middle.set_title("documents before throttling", loc="left")
        _dots(right, languages, names=("hours_median", "hours_ci_low", "hours_ci_high"))
        right.set_title("hours before throttling", loc="left")
        for ax in (middle, right):
            ax.set_xlim(left=0.0)
            ax.set_xlabel("median over attackers, with its limits")
        return svg_text(figure)


def _dots(ax: Axes, rows: pd.DataFrame, *, names: tuple[str, str, str]) -> None:
    value, low, high = (_finite(_column(rows, name)) for name in names)
    place = np.arange(len(rows))
    ax.hlines(place, low, high, color=BLUE, lw=1.4)
    ax.plot(value, place, "o", color=BLUE, ms=5.5, mec="#333333", mew=0.5)
    for y in np.flatnonzero(np.isnan(value)):
        ax.text(0.02, float(y), "never", va="center", fontsize=8, transform=_across(ax))
    ax.set_yticks(place, labels=[str(one) for one in rows["lang"]])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=True, axis="x", color="#E5E5E5", linewidth=0.7)
    ax.set_axisbelow(True)


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nan)


def _across(ax: Axes) -> Any:
    """Return a transform with x as a share of the axes and y in data."""
    return ax.get_yaxis_transform()
