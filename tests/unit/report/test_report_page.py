"""The page as bytes: stable, closed to the network, hostile text shown as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pandas as pd
import pytest
import report_sample as sample
import yaml
from report_hostile import HOSTILE, hostile_report

from mragaudit.errors import DataError
from mragaudit.report.model import RoleModel, names_published_models, published_from
from mragaudit.report.page import render
from mragaudit.report.tables import headline_view
from mragaudit.report.trial_data import escape_json, trial_json

PUBLISHED = published_from(yaml.safe_load(Path("resources/published/figures.yaml").read_text(encoding="utf-8")))


class Elements(HTMLParser):
    """Collects start tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def text_of(page: str) -> str:
    body = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


@pytest.fixture(scope="module")
def page() -> str:
    return render(sample.cached_report(published=PUBLISHED))


@pytest.fixture(scope="module")
def hostile() -> str:
    return render(hostile_report())


def test_the_same_input_gives_the_same_bytes(page: str) -> None:
    assert render(sample.report_input(published=PUBLISHED)) == page


def test_the_policy_hashes_are_those_of_the_inlined_blocks(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert policy
    assert style
    assert script
    digests = [base64.b64encode(hashlib.sha256(block[1].encode()).digest()).decode() for block in (style, script)]
    assert policy[1] == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_loaded_from_outside(page: str) -> None:
    sources = [attrs.get("src") or "" for _, attrs in Elements(page).found if "src" in attrs]
    assert len(sources) == 5
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert {tag for tag, _ in Elements(page).found} & {
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
    } == set()


def test_flip_rates_stand_with_n_lost_calls_and_interval() -> None:
    text = text_of(render(sample.measured_report()))
    assert "generate — leak or no leak (attacks) 49 1 1 0.020 0.004 to 0.107 two-sided 95 % Wilson" in text
    assert "generate — right or wrong (benign) 0 0 0 not evaluated (n = 0) — —" in text
    assert "backtranslate: not measured. The backend llama_cpp is deterministic by construction" in text


def test_the_page_says_which_difference_between_two_runs_may_be_noise() -> None:
    """English F1: 1 of 49 answers changed sides, so at most 0.107 of trials and 0.321 of documents with 3 trials each.

    Of 4 such documents at most 2 change with probability 0.900 and at most 3 with 0.989. Other languages: translations
    add their 0.214, and 4 documents are all of them.
    """
    text = text_of(render(sample.measured_report()))
    assert "F1 English ≤ 0.107 3 4 0.750" in text
    assert "F3, judge english English ≤ 0.242 4 4 1.000" in text
    assert "F1 each other language ≤ 0.321 4 4 1.000" in text


def test_an_unmeasured_stage_leaves_every_difference_that_it_bears_on_unknown() -> None:
    measured = sample.measured_report()
    floor = sample.noise_floor(translate="off", judge="measured", generate="measured")
    text = text_of(render(msgspec.structs.replace(measured, noise=floor)))
    assert "F1 English ≤ 0.107 3 4 0.750" in text
    assert "F1 each other language not measured not measured 4 not measured" in text
    assert "translate: not measured. noise.stages says so." in text


def test_calls_that_were_all_lost_leave_a_difference_unknown_and_a_stage_that_asked_nothing_adds_none() -> None:
    lost = [
        msgspec.structs.replace(pair, flips=dict.fromkeys(pair.flips), not_evaluated="first call: lost")
        if pair.stage == "judge"
        else pair
        for pair in sample.repeat_pairs()
        if pair.stage != "translate"
    ]
    measured = sample.measured_report()
    tables = {**measured.tables, "noise": sample.noise_of(lost)}
    text = text_of(render(msgspec.structs.replace(measured, tables=tables)))
    assert "F1 each other language ≤ 0.107 3 4 0.750" in text
    assert "F3, judge english English not measured not measured 4 not measured" in text


def test_a_run_that_measured_no_noise_says_that_it_is_unknown() -> None:
    text = text_of(render(sample.cached_report(noise=sample.noise_floor(judge="off", generate="off"))))
    assert "The noise floor was not measured : how large a difference between two runs may be noise is unknown." in text
    assert "judge, generate: not measured. noise.stages says so." in text
    assert "may change sides" not in text


def test_a_run_on_deterministic_models_says_that_nothing_had_to_be_measured(page: str) -> None:
    text = text_of(page)
    assert "Every language model of this run is deterministic by construction, so nothing had to be measured" in text
    assert "translate, backtranslate, judge, generate: not measured. The backend llama_cpp" in text


def test_hostile_text_makes_no_element_and_no_handler(hostile: str) -> None:
    found = Elements(hostile).found
    assert [attrs for tag, attrs in found if tag == "img" and attrs.get("src") == "x"] == []
    assert [name for _, attrs in found for name in attrs if name.startswith("on")] == []
    assert [tag for tag, _ in found].count("script") == 2


def test_template_expressions_in_text_are_not_evaluated(hostile: str) -> None:
    assert "{{7*7}}" in hostile
    assert "49" not in re.findall(r"\d+", text_of(hostile).replace("U+", ""))


def test_hidden_characters_reach_the_html_only_as_words(hostile: str) -> None:
    outside = re.sub(r'<script type="application/json".*?</script>', "", hostile, flags=re.DOTALL)
    assert not set("\0\u202e\u2028") & set(outside)
    assert "⟨U+202E⟩abc⟨U+2028⟩d␀e" in outside


def test_a_line_of_a_megabyte_is_cut(hostile: str) -> None:
    assert "[shown: 20,000 of " in hostile
    assert "x" * 20_001 not in hostile
    data = json.loads(re.search(r'id="trial-data">(.*?)</script>', hostile, re.DOTALL)[1])  # type: ignore[index]
    assert [len(HOSTILE) + 1_000_000] == [text[1] for text in data["texts"] if isinstance(text, list)]


def test_the_json_cannot_end_its_script_block() -> None:
    raw = trial_json([sample.trace(0, lang="en", answer=HOSTILE + "\ud800")], sample.LANGUAGES)
    assert not set("<>&\u2028\ud800") & set(raw)
    assert HOSTILE + "\ud800" in json.loads(raw)["texts"]
    assert escape_json('"<&"') == '"\\u003c\\u0026"'


def test_each_text_is_stored_once() -> None:
    data = json.loads(trial_json(sample.cached_report().traces, sample.LANGUAGES))
    assert len(data["trials"]) == 200
    assert len(data["texts"]) == len({json.dumps(text) for text in data["texts"]})


def test_an_empty_cell_says_not_evaluated(page: str) -> None:
    row = re.search(r"<tr><td dir=\"auto\">zh</td><td dir=\"auto\">english</td>(.*?)</tr>", page, re.DOTALL)
    assert row is not None
    assert re.findall(r">([^<]+)</td>", row[1]) == [
        "0",
        "0",
        "0",
        "not evaluated (n = 0)",
        "—",
        "—",
        "0",
        "—",
    ]


def test_intervals_are_named_in_words(page: str) -> None:
    assert "one-sided 95 % Wilson upper bound" in page
    assert "95 % percentile bootstrap over documents" in page
    assert "wilson_one_sided" not in page


def test_published_figures_stand_beside_only_where_given(page: str) -> None:
    assert "0.875 (35 of 40)" in page
    assert "0.425 to 0.775 (n = 40); range over zh de ar sw" in page
    assert "0.770 (n = 300); about; all attack trials: 100 documents, 3 paraphrases" in page
    assert "0.697 to 0.730 (n = 300); range over zh de ar sw" in page
    assert "Documents, query\ntemplates, prompts and hardware differ from the published ones" in page
    assert "0.875 (35 of 40)" not in render(sample.cached_report())


def test_no_published_figure_stands_beside_queries_that_people_wrote() -> None:
    tables = dict(sample.cached_report().tables)
    tables["f1_output_only"] = tables["f1_output_only"].assign(query_source="human")
    page = render(sample.cached_report(published=PUBLISHED, tables=tables))
    assert "0.875 (35 of 40)" not in page
    assert "0.175 (7 of 40)" in page


def test_a_setting_that_departs_from_the_published_one_is_named() -> None:
    one = msgspec.structs.replace(PUBLISHED, differences=("retrieve.k is 3, published 5",))
    page = render(sample.cached_report(published=one))
    assert "Settings that differ too: retrieve.k is 3, published 5." in page


def test_published_models_are_compared_by_bare_name() -> None:
    def model(role: str, name: str) -> RoleModel:
        return RoleModel(role=role, backend="vllm", model=name, revision="", licence="", embedded=False)

    same = tuple(model(role, f"Owner/{name}") for role, name in PUBLISHED.models.items())
    assert names_published_models(PUBLISHED, same)
    assert not names_published_models(PUBLISHED, (*same[:-1], model("embedder", "other")))


def test_a_wrong_key_of_the_published_figures_is_refused() -> None:
    with pytest.raises(DataError, match=r"published figures: .*extra"):
        published_from({"citation": "x", "models": {}, "figures": [], "extra": 1})


def test_a_language_without_leak_says_where_its_trials_stopped(page: str) -> None:
    sentence = "Chinese: none of 30 attack trials escaped. "
    assert sentence + "translation failed: 2; document not retrieved: 4; value not in the answer: 24." in page
    assert "Swahili: none of" not in page


def test_cells_whose_counts_differ_are_named(page: str) -> None:
    assert "F1, de, unstructured, filter none: 2 verbatim, 3 by the published rule" in page


def test_a_constant_judge_is_flagged(page: str) -> None:
    assert "Answers alike on all controls: multilingual in sw." in page


def test_embedded_models_are_called_an_instrument_check(page: str) -> None:
    sentence = "This run uses small embedded models: it is a check of the instrument."
    assert sentence in page
    model = RoleModel(role="judge", backend="vllm", model="m", revision="", licence="", embedded=False)
    assert sentence not in render(sample.cached_report(models=(model,)))


def test_query_sources_are_kept_apart() -> None:
    tables = {name: pd.concat([table, table.assign(query_source="human")]) for name, table in sample.tables().items()}
    page = render(sample.cached_report(tables=tables))
    assert re.search(r"<td dir=\"auto\">en</td><td dir=\"auto\">human</td>", page)
    assert not re.search(r"<td dir=\"auto\">en</td><td dir=\"auto\">human</td>", render(sample.cached_report()))


def test_a_missing_table_is_refused() -> None:
    with pytest.raises(DataError, match="missing: funnel"):
        sample.cached_report(tables={k: v for k, v in sample.tables().items() if k != "funnel"})


def test_a_headline_block_rate_has_its_interval_and_counts_judged_trials_alone() -> None:
    tables = {**sample.tables()}
    judges = tables["judges"].copy()
    judges[["n_attack", "n_attack_evaluated", "block_rate"]] = [30, 28, 0.5]
    judges[["block_ci_low", "block_ci_high"]] = [0.25, 0.75]
    tables["judges"] = judges
    shown = headline_view(sample.cached_report(tables=tables))
    place = [header.text for header in shown.headers].index("attacks blocked")
    assert {row[place].text for row in shown.rows} == {"0.500 [0.250 to 0.750] (28)"}


def test_every_interval_says_the_configured_level() -> None:
    floor = msgspec.structs.replace(sample.noise_floor(), confidence=0.9)
    text = text_of(render(sample.cached_report(noise=floor)))
    assert "two-sided 90 % Wilson" in text
    assert "95 %" not in text
