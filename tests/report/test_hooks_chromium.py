"""The page of the hook audit in a real browser: it reads without colour, without script and on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hooks_sample import hooks_report, scored_page
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from mragaudit.report.hooks_page import render_hooks

pytestmark = pytest.mark.chromium

CONTRAST = """
  const light = (colour) => {
    const part = (value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.match(/[0-9.]+/g).map((one) => part(Number(one) / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    while (one && getComputedStyle(one).backgroundColor === "rgba(0, 0, 0, 0)") one = one.parentElement;
    return one ? getComputedStyle(one).backgroundColor : "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll(arguments[0])].map((one) => {
    const pair = [light(getComputedStyle(one).color), light(ground(one))].sort((a, b) => b - a);
    return (pair[0] + 0.05) / (pair[1] + 0.05);
  });
"""
"""Contrast of text and ground by WCAG 2.2, of every element that a selector finds."""


@pytest.fixture(scope="module")
def page(
    browser: Chrome, tmp_path_factory: pytest.TempPathFactory, requests_of: Callable[[Chrome], list[str]]
) -> Chrome:
    path = tmp_path_factory.mktemp("hooks") / "page.html"
    path.write_text(render_hooks(hooks_report()), encoding="utf-8")
    browser.get("about:blank")
    requests_of(browser)  # those of the browser's own first page
    browser.get(path.as_uri())
    return browser


def test_the_page_logs_nothing_and_asks_for_nothing(page: Chrome, requests_of: Callable[[Chrome], list[str]]) -> None:
    assert page.find_elements(By.TAG_NAME, "script") == []
    assert page.execute_script("return window.__hit === undefined")
    assert page.get_log("browser") == []
    assert requests_of(page) == []


def test_every_cell_of_the_heat_map_says_in_words_what_its_colour_says(page: Chrome) -> None:
    cells = page.find_elements(By.CSS_SELECTOR, ".heat tbody td")
    spoken = {
        (cell.get_attribute("class").split("sight-")[1], cell.text.split("\n")[0])  # type: ignore[union-attr]
        for cell in cells
    }
    assert spoken == {
        ("interpretable", "interpretable"),
        ("indirect", "indirect"),
        ("nuisance", "nuisance only"),
        ("not_observable", "not observable"),
    }
    grounds = {cell.value_of_css_property("background-color") for cell in cells}
    assert len(grounds) == 4


def test_every_heading_of_the_tables_says_what_it_heads(page: Chrome) -> None:
    scopes = page.execute_script("return [...document.querySelectorAll('th')].map((one) => one.scope)")
    assert set(scopes) == {"col", "row"}
    captions = page.execute_script("return [...document.querySelectorAll('table')].every((one) => one.caption)")
    assert captions


@pytest.mark.parametrize("selector", [".sight", ".sight .small", ".status", ".heat th .small", ".place", ".clash"])
def test_text_stands_out_from_its_ground(page: Chrome, selector: str) -> None:
    found = page.execute_script(CONTRAST, selector)
    assert found
    assert min(found) >= 4.5


def test_the_page_does_not_scroll_sideways_on_a_laptop(page: Chrome) -> None:
    page.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    width = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scrolled, visible = page.execute_script(width)
    page.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = false })")
    assert scrolled == visible


def test_on_paper_the_folded_tables_are_open_and_the_map_keeps_its_colours(page: Chrome) -> None:
    folded = "return document.querySelector('details table').checkVisibility({contentVisibilityAuto: true})"
    assert not page.execute_script(folded)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        # Another medium is laid out in the next frame, not at once.
        assert WebDriverWait(page, 10).until(lambda one: one.execute_script(folded))
        cell = page.find_element(By.CSS_SELECTOR, ".heat tbody td")
        assert cell.value_of_css_property("print-color-adjust") == "exact"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_place_leads_to_its_line(page: Chrome) -> None:
    link = page.find_element(By.LINK_TEXT, "code.py:3")
    assert link.get_attribute("href") == "https://host.example/blob/main/src/code.py#L3"


def test_scores_fit_a_laptop_and_show_what_came_out_wrong_unfolded(browser: Chrome, tmp_path: Path) -> None:
    path = tmp_path / "scores.html"
    path.write_text(scored_page(), encoding="utf-8")
    browser.get(path.as_uri())
    wrong = browser.find_element(By.XPATH, "//table[caption='Predictions that came out wrong']")
    assert wrong.is_displayed()
    width = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scrolled, visible = browser.execute_script(width)
    assert scrolled == visible
