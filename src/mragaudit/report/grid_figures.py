"""Figures of the hook audit: canaries by arm, types of named entities by arm, and what came out call by call."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mragaudit.report.figures import BLUE, INK, ORANGE, STYLE, svg_text

ROW_INCHES = 0.34
CURVES = {"retrieved_rate": "retrieved by an answered call", "rate": "an item leaked"}
OF_CURVE = {"retrieved_rate": "n_documents", "rate": "n_with_items"}
LINES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-"},
    {"color": ORANGE, "linestyle": "-"},
    {"color": INK, "linestyle": "--"},
    {"color": BLUE, "linestyle": ":"},
    {"color": ORANGE, "linestyle": "-."},
)
STRICT = ("EMAIL_REAL", "PERSON_NAME")


def draw_canaries(canaries: pd.DataFrame) -> str:
    """Return one panel a class: share recovered by arm with limits, and the ceiling that the model saw."""
    classes = list(dict.fromkeys(canaries["canary_class"]))
    height = ROW_INCHES * len(canaries) + 0.9 * len(classes) + 0.4
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, height), layout="constrained")
        axes = figure.subplots(len(classes), 1, squeeze=False, sharex=True)[:, 0]
        for ax, name in zip(axes, classes, strict=True):
            _recovery(ax, canaries[canaries["canary_class"] == name], title=str(name).replace("_", " "))
        axes[-1].set_xlabel("share of canaries")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)
        return svg_text(figure)


def _recovery(ax: Axes, rows: pd.DataFrame, *, title: str) -> None:
    at = np.arange(len(rows))
    rate, low, high = (rows[f"exact_{part}"].to_numpy(float) for part in ("rate", "ci_low", "ci_high"))
    ax.hlines(at, low, high, color=BLUE, lw=1.6)
    ax.plot(rate, at, "o", color=BLUE, label="recovered, exact match")
    ax.plot(rows["in_context_rate"].to_numpy(float), at, "|", color=INK, ms=12, label="stood in a context (ceiling)")
    ax.set_yticks(at, [str(arm) for arm in rows["arm"]])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_title(title, loc="left")


def draw_leak_types(leak_types: pd.DataFrame) -> str:
    """Return one panel a strict type: items a run by attack, without and with each defense."""
    strict = leak_types[leak_types["item_type"].isin(STRICT)]
    arms = list(dict.fromkeys(strict["arm"]))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.4, ROW_INCHES * len(arms) + 1.4), layout="constrained")
        axes = figure.subplots(1, len(STRICT), squeeze=False, sharey=True)[0]
        for ax, item_type in zip(axes, STRICT, strict=True):
            _types(ax, strict[strict["item_type"] == item_type], arms=arms, title=item_type)
        axes[0].set_yticks(np.arange(len(arms)), arms)
        axes[0].set_ylim(len(arms) - 0.5, -0.5)
        return svg_text(figure)


def draw_extraction_curve(curve: pd.DataFrame) -> str:
    """Return two panels a corpus and mode: documents reached and leaking after each call, undefended, a line an attack.

    `curve` holds the rows of one arm.
    """
    places = list(dict.fromkeys(zip(curve["corpus"], curve["mode"], strict=True)))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.4, 2.9 * len(places) + 0.5), layout="constrained")
        axes = figure.subplots(len(places), len(CURVES), squeeze=False, sharey=True)
        for row, (corpus, mode) in zip(axes, places, strict=True):
            here = curve[(curve["corpus"] == corpus) & (curve["mode"] == mode)]
            for ax, (rate, title) in zip(row, CURVES.items(), strict=True):
                where = f"{corpus}, {str(mode).replace('_', ' ')}"
                _curves(ax, here, rate=rate, title=f"{title}: {where}, n = {_denominators(here, OF_CURVE[rate])}")
            row[0].set_ylabel("share of documents")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=5, frameon=False)
        return svg_text(figure)


def _denominators(rows: pd.DataFrame, name: str) -> str:
    """Return of how many documents the shares are: of some attacks fewer, where runs with a lost call are left out."""
    least, most = int(rows[name].min()), int(rows[name].max())
    return str(most) if least == most else f"{least} to {most}"


def _curves(ax: Axes, rows: pd.DataFrame, *, rate: str, title: str) -> None:
    for number, (attack, of_attack) in enumerate(rows.groupby("attack", sort=True)):
        style = LINES[number % len(LINES)]
        values = of_attack[rate].to_numpy(float, na_value=np.nan)
        ax.plot(of_attack["after_calls"].to_numpy(int), values, label=str(attack), **style)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("target calls")
    ax.set_title(title, loc="left")


def _types(ax: Axes, rows: pd.DataFrame, *, arms: list[str], title: str) -> None:
    mean = rows.groupby("arm")["per_run"].mean().reindex(arms)
    for place, arm in enumerate(arms):
        values = rows.loc[rows["arm"] == arm, "per_run"].to_numpy(float)
        ax.plot(values, np.full(len(values), place), "o", color=BLUE, alpha=0.5, ms=4)
    ax.plot(mean.to_numpy(float), np.arange(len(arms)), "D", color=ORANGE, mec=INK, ms=6)
    ax.set_xlim(left=-0.2)
    ax.set_xlabel("different items a run")
    ax.set_title(title, loc="left")
