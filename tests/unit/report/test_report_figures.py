"""Figures as SVG text."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

import numpy as np
import pandas as pd
import report_sample as sample

from mragaudit.report.figures import draw_figures
from mragaudit.report.model import PublishedFigure, PublishedFigures


def words_of(svg: str) -> list[str]:
    root = Xml.fromstring(svg)  # noqa: S314 - our own SVG
    return ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_same_tables_give_the_same_bytes_and_no_date() -> None:
    figures = sample.cached_report().figures
    assert draw_figures(sample.tables(), sample.LANGUAGES) == figures
    assert set(figures) == {"funnel", "leak_rates", "judges", "retrieval", "translation"}
    assert not any("dc:date" in svg for svg in figures.values())


def test_text_stays_text_with_a_fallback_font() -> None:
    svg = sample.cached_report().figures["funnel"]
    assert {"No judge, no filter", "Judge english, filter regex_ascii", "escaped"} <= set(words_of(svg))
    assert "font-family: 'DejaVu Sans', Verdana, Arial, sans-serif" in svg


def test_the_funnel_prints_its_counts_and_no_bare_zero() -> None:
    counts = [word for word in words_of(sample.cached_report().figures["funnel"]) if word.isdigit()]
    assert counts.count("24") == 1
    assert "0" not in counts


def test_a_cell_without_documents_has_no_bar_but_words() -> None:
    tables = sample.tables()
    empty = tables["f1_output_only"].lang == "sw"
    tables["f1_output_only"].loc[empty, ["n_documents", "n_leaked", "n_not_evaluated"]] = 0
    tables["f1_output_only"].loc[empty, ["rate", "ci_low", "ci_high"]] = np.nan
    assert words_of(draw_figures(tables, sample.LANGUAGES)["leak_rates"]).count("n = 0") == 3


def test_each_query_source_has_its_own_row_of_panels() -> None:
    tables = {name: pd.concat([table, table.assign(query_source="human")]) for name, table in sample.tables().items()}
    found = words_of(draw_figures(tables, sample.LANGUAGES)["funnel"])
    assert (found.count("template queries"), found.count("human queries")) == (2, 2)


def test_published_figures_are_marked_in_their_panel_only() -> None:
    one = PublishedFigure(
        finding="F1",
        lang="en",
        pii_group="unstructured",
        judge_variant="none",
        filter_variant="regex_ascii",
        low=0.875,
        high=0.875,
    )
    published = PublishedFigures(citation="c", models={}, figures=(one,))
    rates = draw_figures(sample.tables(), sample.LANGUAGES, published=published)["leak_rates"]
    assert len(re.findall(r">published<", rates)) == 1


def test_whiskers_are_of_the_configured_level() -> None:
    tables = sample.tables()
    usual, wider = (draw_figures(tables, sample.LANGUAGES, confidence=level) for level in (0.95, 0.99))
    assert usual["leak_rates"] != wider["leak_rates"]
    assert usual["funnel"] == wider["funnel"]
