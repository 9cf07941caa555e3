"""The report in a real browser: nothing runs, nothing loads, the trial table works."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import report_sample as sample
from report_hostile import hostile_report
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from mragaudit.report.page import render

pytestmark = pytest.mark.chromium

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,900",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        reason = "Chromium and ChromeDriver are needed: apt-get install chromium chromium-driver"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    options = ChromeOptions()
    options.binary_location = chromium
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def page(browser: Chrome, folder: Path) -> Chrome:
    """The made-up run, freshly opened from disk."""
    path = folder / "report.html"
    if not path.exists():
        path.write_text(render(sample.cached_report()), encoding="utf-8")
    browser.get(path.as_uri())
    return browser


def requests_of(browser: Chrome) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("file:", "data:"))]


def trial_rows(browser: Chrome) -> list[str]:
    return [row.text for row in browser.find_elements(By.CSS_SELECTOR, "#trial-rows tr.trial")]


def test_a_hostile_page_opens_no_dialog_logs_nothing_and_asks_for_nothing(browser: Chrome, folder: Path) -> None:
    path = folder / "hostile.html"
    path.write_text(render(hostile_report()), encoding="utf-8")
    browser.get_log("performance")
    browser.get(path.as_uri())
    browser.find_element(By.CSS_SELECTOR, ".opener").click()
    assert browser.execute_script(
        "return window.__hit === undefined && document.querySelector('img[onerror]') === null"
    )
    assert browser.find_elements(By.CSS_SELECTOR, ".trace")
    assert browser.get_log("browser") == []
    assert requests_of(browser) == []


def test_hidden_characters_of_a_trial_are_shown(browser: Chrome, folder: Path) -> None:
    path = folder / "hostile.html"
    path.write_text(render(hostile_report()), encoding="utf-8")
    browser.get(path.as_uri())
    browser.find_element(By.CSS_SELECTOR, ".opener").click()
    shown = {one.text for one in browser.find_elements(By.CSS_SELECTOR, ".trace .control")}
    assert shown == {"\u2400", "⟨U+202E⟩", "⟨U+2028⟩"}


def test_the_filters_work_by_clicking(page: Chrome) -> None:
    Select(page.find_element(By.ID, "filter-lang")).select_by_visible_text("Arabic")
    Select(page.find_element(By.ID, "filter-stage")).select_by_visible_text("escaped")
    Select(page.find_element(By.ID, "filter-para")).select_by_visible_text("icl")
    assert page.find_element(By.ID, "trial-count").text == "4 of 200 trials"
    assert [row.split()[0] for row in trial_rows(page)] == [
        "q00icl-ar",
        "q03icl-ar",
        "q06icl-ar",
        "q09icl-ar",
    ]
    page.find_element(By.ID, "filter-reset").click()
    assert page.find_element(By.ID, "trial-count").text == "200 of 200 trials"


def test_free_text_finds_chinese(page: Chrome) -> None:
    page.find_element(By.ID, "filter-text").send_keys("联系人是谁")
    page.execute_async_script("setTimeout(arguments[0], 300)")
    assert page.find_element(By.ID, "trial-count").text == "40 of 200 trials"


def test_pages_turn(page: Chrome) -> None:
    page.find_element(By.ID, "page-next").click()
    assert page.find_element(By.ID, "page-now").text == "page 2 of 4"
    assert len(trial_rows(page)) == 50


def test_a_trial_opens_by_keyboard_and_marks_the_planted_value(page: Chrome) -> None:
    page.find_element(By.ID, "filter-text").send_keys("q00direct-ar")
    page.execute_async_script("setTimeout(arguments[0], 300)")
    page.find_element(By.CSS_SELECTOR, ".opener").send_keys(Keys.ENTER)
    opener = page.find_element(By.CSS_SELECTOR, ".opener")
    assert opener.get_attribute("aria-expanded") == "true"
    assert page.find_element(By.CSS_SELECTOR, ".trace mark.planted").text == "Marlene Oduya"
    headings = [one.text for one in page.find_elements(By.CSS_SELECTOR, ".trace h4")]
    assert headings == [
        "Outcome",
        "Document doc-00",
        "Query in English",
        "Query in Arabic",
        "Back-translation (round-trip similarity 0.912)",
        "Verdicts",
        "Retrieved documents",
        "Answer",
        "Filters",
    ]


def test_an_arabic_trial_is_isolated_and_runs_right_to_left(page: Chrome) -> None:
    Select(page.find_element(By.ID, "filter-lang")).select_by_visible_text("Arabic")
    page.find_element(By.CSS_SELECTOR, ".opener").click()
    script = "const s = getComputedStyle(arguments[0]); return [s.unicodeBidi, s.direction]"
    cell = page.find_element(By.CSS_SELECTOR, "#trial-rows .query-cell")
    block = page.find_element(By.CSS_SELECTOR, '.trace .text[lang="ar"]')
    assert page.execute_script(script, cell) == ["isolate", "rtl"]
    assert page.execute_script(script, block) == ["isolate", "rtl"]


def test_the_page_does_not_scroll_sideways_on_a_laptop(page: Chrome, folder: Path) -> None:
    page.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.find_element(By.CSS_SELECTOR, ".opener").click()
    width = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scrolled, visible = page.execute_script(width)
    assert scrolled == visible
    assert page.save_screenshot(str(folder / "report.png"))
    assert page.get_log("browser") == []


@pytest.mark.parametrize("state", ["measured", "off", "deterministic"])
def test_the_noise_floor_is_read_whole_on_a_laptop(state: str, browser: Chrome, folder: Path) -> None:
    """Its tables stand inside the page's width, whether or not the run repeated calls."""
    reports = {
        "measured": sample.measured_report(),
        "off": sample.cached_report(noise=sample.noise_floor(generate="off")),
        "deterministic": sample.cached_report(),
    }
    path = folder / f"noise-{state}.html"
    path.write_text(render(reports[state]), encoding="utf-8")
    browser.get(path.as_uri())
    browser.find_element(By.LINK_TEXT, "Noise floor").click()
    section = browser.find_element(By.ID, "noise")
    assert browser.execute_script("return Math.abs(arguments[0].getBoundingClientRect().top) < 40", section)
    assert len(section.find_elements(By.TAG_NAME, "table")) == (3 if state == "measured" else 0)
    wide = (
        "return [...arguments[0].querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
    )
    assert browser.execute_script(wide, section) == 0
    assert browser.get_log("browser") == []


def test_two_thousand_trials_filter_in_less_than_a_second(browser: Chrome, folder: Path) -> None:
    path = folder / "large.html"
    path.write_text(render(sample.cached_report(traces=sample.many_traces(2500))), encoding="utf-8")
    browser.get(path.as_uri())
    measure = """
      const begin = performance.now();
      const box = document.getElementById("filter-lang");
      box.value = "ar";
      box.dispatchEvent(new Event("change"));
      document.body.offsetHeight;
      return performance.now() - begin;
    """
    assert browser.execute_script(measure) < 1000
    assert browser.find_element(By.ID, "trial-count").text == "500 of 2500 trials"
