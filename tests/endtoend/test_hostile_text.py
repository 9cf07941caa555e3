"""Markup, braces, control characters and very long lines pass through all stages and show as text."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hostile_corpus import FORMULA, HOSTILE, LONG_LINE, MARKUP, hostile_settings
from run_stages import run_stages
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from test_chromium import trial_rows

from mragaudit.paths import RunPaths
from mragaudit.records.base import read_records
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import Translation, translation_key
from mragaudit.records.results import Generation, Judgement, trial_key
from mragaudit.records.trials import Trial, trial_row_key

pytestmark = pytest.mark.slow

TRIALS_ASKED = 23  # (5 attacks + 5 benign questions) in two languages, 3 queries by people
SHARD = "1-of-1"


class Page(HTMLParser):
    """What a browser would see: elements, their attributes, and the text of the page without scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self._feeds_text = True
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._feeds_text = tag not in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._feeds_text = self._feeds_text or tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self._feeds_text:
            self.text.append(data)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    folder = tmp_path_factory.mktemp("hostile")
    return run_stages(hostile_settings(folder), results=folder / "results")


@pytest.fixture(scope="module")
def source(finished: RunPaths) -> str:
    return finished.report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_hostile_documents_arrive_letter_by_letter(finished: RunPaths) -> None:
    documents = read_records(finished.documents, Document, key=document_key)
    assert len(documents) == 5
    assert all(one.doc_id.startswith(FORMULA) and one.doc_id.endswith(HOSTILE) for one in documents)
    assert all(one.pii_value in one.text and one.anchor in one.text for one in documents)
    assert any(LONG_LINE in one.text for one in documents)


def test_hostile_answers_of_every_model_are_kept(finished: RunPaths) -> None:
    translated = read_records(finished.shards("translations", [SHARD])[0], Translation, key=translation_key)
    judged = read_records(finished.shards("judgements/english", [SHARD])[0], Judgement, key=trial_key)
    generated = read_records(finished.shards("generations", [SHARD])[0], Generation, key=trial_key)
    assert HOSTILE in {row.text for row in translated}
    assert f"{FORMULA} {LONG_LINE}" in {row.text for row in translated}
    assert {row.verdict for row in judged if row.raw == HOSTILE} == {"UNPARSED"}
    assert f"{FORMULA} {LONG_LINE}" in {row.text for row in generated}


def test_every_trial_is_evaluated(finished: RunPaths) -> None:
    trials = read_records(finished.trials, Trial, key=trial_row_key)
    asked = [trial for trial in trials if trial.intent != "control"]
    assert len(asked) == TRIALS_ASKED
    assert {trial.not_evaluated for trial in trials} == {None}


def test_the_report_has_no_element_of_the_hostile_text(page: Page) -> None:
    assert ("src", "x") not in page.attributes
    assert [name for name, _ in page.attributes if name.startswith("on")] == []
    assert page.tags.count("script") == 2


def test_the_markup_of_the_file_name_shows_as_text(page: Page) -> None:
    assert any(MARKUP in text for text in page.text)


def test_braces_are_not_computed(source: str) -> None:
    assert source.count("{{7*7}}") > TRIALS_ASKED


def test_no_hidden_character_stands_bare_in_the_page(page: Page) -> None:
    shown = "".join(page.text)
    assert {char for char in "\0\u202e\u2028" if char in shown} == set()
    assert "⟨U+202E⟩" in shown


def test_no_line_separator_and_no_nul_stands_bare_in_the_data_of_the_script(source: str) -> None:
    assert {char for char in "\0\u2028\u2029" if char in source} == set()


def test_hostile_planted_values_are_masked(source: str) -> None:
    assert re.search(r"Zora[1-5]|Quist[1-5]", source) is None


def test_a_line_of_a_megabyte_is_cut_in_the_report(source: str) -> None:
    assert "x" * 20_001 not in source


def test_no_cell_of_a_table_is_a_formula(finished: RunPaths) -> None:
    cells = [
        cell
        for path in sorted((finished.root / "tables").glob("*.csv"))
        for row in csv.reader(path.read_text(encoding="utf-8").splitlines())
        for cell in row
    ]
    assert [cell for cell in cells if re.match(r"[=+@\t\r]|-(?![0-9])", cell)] == []


@pytest.mark.chromium
def test_a_browser_runs_nothing_and_the_trial_filter_works(
    browser: Chrome, finished: RunPaths, requests_of: Callable[[Chrome], list[str]]
) -> None:
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(finished.report.as_uri())
    n_trials = len(finished.trials.read_bytes().splitlines())
    Select(browser.find_element(By.ID, "filter-lang")).select_by_visible_text("Arabic")
    rows = trial_rows(browser)
    assert browser.find_element(By.ID, "trial-count").text == f"{len(rows)} of {n_trials} trials"
    assert rows
    browser.find_element(By.CSS_SELECTOR, ".opener").click()
    assert browser.find_elements(By.CSS_SELECTOR, ".trace")
    assert browser.execute_script("return document.querySelector('img[onerror], img[src=x]') === null")
    assert browser.get_log("browser") == []
    assert requests_of(browser) == []
