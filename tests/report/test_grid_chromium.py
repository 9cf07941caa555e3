"""The page of the grid in a real browser, made from a run on scripted models."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from mragaudit.paths import RunPaths
from mragaudit.records.base import iter_records
from mragaudit.records.grid import GridDocument

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))

from pipeline import Pipeline, grid_settings

pytestmark = pytest.mark.chromium

SECTIONS = ("limits", "hooks", "matrix", "canaries", "types", "membership", "adaptive", "predictions", "certified")
"""In the order in which a person reads them; what they cost and all details come after."""
OUTSIDE = """
  const edge = document.documentElement.clientWidth + 1;
  return [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > edge && !one.closest(".scroll"))
    .map((one) => one.tagName + " " + one.textContent.slice(0, 40));
"""
UNREADABLE = re.compile(r"\b(nan|None|NaN|<NA>|inf)\b")


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    """Return a small run that lacks what it can lack: seeds, adaptive attacks, an answer to every call."""
    small = {"canaries": {"seeds": [1], "classes": ["email"]}, "adaptive": {"probes": []}}
    folder = tmp_path_factory.mktemp("grid")
    planned = Pipeline(folder, grid_settings(hook_audit=small)).grid("grid_plan", "grid_documents", "grid_hooks")
    documents = iter_records(planned.root / "documents.jsonl", GridDocument)
    title = min(one.title for one in documents if one.realisation == "email.s1" and one.split == "indexed")
    fails = {"generator": {"options": {"fail_on": title}, "attempts": 1}}
    pipeline = Pipeline(folder, grid_settings(hook_audit=small, roles=fails))
    return pipeline.grid("grid_calls", "grid_scores", "grid_tables", "grid_manifest", "grid_page")


@pytest.fixture(scope="module")
def page(browser: Chrome, grid: RunPaths, requests_of: Callable[[Chrome], list[str]]) -> Chrome:
    browser.get("about:blank")
    requests_of(browser)  # those of the browser's own first page
    browser.get(grid.report.as_uri())
    return browser


def test_the_page_runs_nothing_logs_nothing_and_asks_for_nothing(
    page: Chrome, requests_of: Callable[[Chrome], list[str]]
) -> None:
    assert page.find_elements(By.TAG_NAME, "script") == []
    assert page.get_log("browser") == []
    assert requests_of(page) == []


def test_the_sections_stand_in_the_order_in_which_they_are_read(page: Chrome) -> None:
    found = [one.get_attribute("id") for one in page.find_elements(By.CSS_SELECTOR, "main > section")]
    assert tuple(found[: len(SECTIONS)]) == SECTIONS
    links = page.execute_script("return [...document.querySelectorAll('nav a')].map((one) => one.hash.slice(1))")
    assert links == found


def test_every_cell_of_the_heat_map_says_in_words_what_its_colour_says(page: Chrome) -> None:
    cells = page.find_elements(By.CSS_SELECTOR, ".heat tbody td")
    spoken = {
        (cell.get_attribute("class").split("sight-")[1].replace("_", " "), cell.text.split("\n")[0])  # type: ignore[union-attr]
        for cell in cells
    }
    assert spoken == {
        ("interpretable", "interpretable"),
        ("indirect", "indirect"),
        ("nuisance", "nuisance only"),
        ("not observable", "not observable"),
    }


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_stands_outside_the_page_but_what_scrolls(width: int, page: Chrome) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    try:
        sizes = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        scrolled, visible = page.execute_script(sizes)
        assert scrolled <= visible
        assert page.execute_script(OUTSIDE) == []
    finally:
        page.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = false })")
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_table_has_a_caption_and_every_heading_says_what_it_heads(page: Chrome) -> None:
    assert page.execute_script(
        "return [...document.querySelectorAll('table')].every((one) => one.caption?.textContent)"
    )
    scopes = page.execute_script("return [...document.querySelectorAll('th')].map((one) => one.scope)")
    assert set(scopes) == {"col", "row"}


def test_what_is_unknown_is_a_dash_or_words(page: Chrome) -> None:
    cells = page.execute_script("return [...document.querySelectorAll('main td')].map((one) => one.textContent)")
    assert [text for text in cells if UNREADABLE.search(text)] == []
    assert "—" in cells
    assert "" not in {text.strip() for text in cells}


def test_what_was_not_run_or_lost_is_said_in_words(page: Chrome) -> None:
    flags = " ".join(one.text for one in page.find_elements(By.CSS_SELECTOR, ".flag"))
    assert "target calls have no reply" in flags
    assert "The grid has one realisation" in flags
    assert "No adaptive attack was run." in page.find_element(By.ID, "adaptive").text
    assert "Nothing is certified." in page.find_element(By.ID, "certified").text
