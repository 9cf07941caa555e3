"""The page of the hook audit: what stands in it, and that other people's code reaches it as text only."""

from __future__ import annotations

import re

import pytest
from hooks_sample import LINKS, hooks_report, inventory, made_scores, scored_page

from mragaudit.errors import DataError
from mragaudit.hookaudit.matrix import found_defenses
from mragaudit.hookaudit.metrics import shipped_metrics
from mragaudit.report.hooks_page import render_hooks
from mragaudit.report.hooks_views import SourceLinks, hooks_view, matrix_view
from mragaudit.report.prediction_views import scores_view


@pytest.fixture(scope="module")
def page():
    return render_hooks(hooks_report())


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def row(view, name):
    return next(one for one in view.rows if "".join(one.name) == name)


def test_the_same_inventory_gives_the_same_page():
    report = hooks_report()
    assert render_hooks(report) == render_hooks(report)


def test_code_of_others_reaches_the_page_as_text_only(page):
    body = page[page.index("<body>") :]
    assert "&lt;script&gt;window.__hit=1" in body
    assert "<script" not in body
    assert "<img" not in body
    assert "\u202e" not in body


def test_the_page_loads_nothing_but_its_own_styles(page):
    assert "default-src 'none'" in page
    assert re.findall(r"(?:src|href)=\"(?!#|https://host\.example/)[^\"]*", page) == []


def test_a_row_shows_declaration_source_and_observation_and_where_they_clash():
    report = hooks_report()
    view = hooks_view(report.inventory, observations=report.observations, links=LINKS)
    masker, noise = row(view, "Masker.process_response"), row(view, "Masker.perturb_scores")
    assert (masker.declared, masker.status, masker.observed) == (
        "active",
        "active",
        "no effect seen on these 5 inputs",
    )
    assert masker.clash == "the source says active, no effect was seen on these inputs"
    assert (noise.status, noise.details, noise.observed) == ("inactive", ("returns input",), "not probed")
    assert noise.clash == "declared active, the source says inactive"


def test_a_conditional_hook_names_its_setting_and_its_default():
    found = row(hooks_view(inventory()), "Gate.process_response")
    assert (found.status, found.details) == (
        "conditional",
        ("by default inactive", "decided by self.strict", "returns copy"),
    )


def test_without_a_probe_nothing_is_said_of_observation():
    page = render_hooks(hooks_report(probed=False))
    assert "observed" not in text_of(page[page.index("<body>") :])


def test_without_an_address_of_the_source_places_are_text():
    page = render_hooks(hooks_report(links=None))
    assert '<span class="place">code.py:3</span>' in page


def test_files_that_were_not_audited_are_named(page):
    assert "1 of the files could not be audited" in page
    assert "broken.py, line 1" in page


def test_the_heat_map_says_what_is_not_told():
    view = matrix_view(found_defenses(inventory().verdicts), shipped_metrics())
    riddle = next(one for one in view.rows if one.defense == "Riddle")
    assert riddle.where == "acts nowhere; not told by the source: H4 response"
    assert [(cell.word, cell.open_codes) for cell in riddle.cells[:1]] == [("not observable", "H4")]
    recall = [metric.name for metric in shipped_metrics().metrics].index("recall_at_k")
    assert riddle.cells[recall].open_codes == ""


def test_the_names_of_metrics_stand_whole_in_their_pieces():
    view = matrix_view((), shipped_metrics())
    assert ["".join(metric.parts) for metric in view.metrics] == [one.name for one in shipped_metrics().metrics]
    assert view.metrics[2].parts == ("nel_", "strict.", "person_", "name")


def test_a_defense_that_acts_nowhere_is_a_sentence_and_no_rows(page):
    predictions = page[page.index('id="predictions"') :]
    assert "Acts nowhere, so that every metric of every attack is <em>not observable</em>:" in predictions
    assert "<bdi>Idle</bdi>" in predictions
    assert ">Idle</td>" not in predictions


def test_assumptions_about_attacks_stay_marked(page):
    assert re.search(r">pm</td>.*?>assumption</td>.*?ours: that PM means mutated prompts", page)


def test_scores_are_summed_up_in_a_sentence_with_their_rule():
    view = scores_view(made_scores())
    assert view.summary == (
        "Of 3 evaluated effects of which something firm was predicted, 1 came out right, 1 wrong and 1 undecided. "
        "1 more may move or stay and are counted apart; 0 were not evaluated, 42 not run."
    )
    assert "(±0.05, nel_strict ±0.5, in the unit of the metric)" in view.rule


def test_the_counts_hold_a_row_for_every_expectation():
    rows = {one[0].text: [cell.text for cell in one[1:]] for one in scores_view(made_scores()).counts.rows}
    assert rows == {
        "expected to move": ["44", "1", "1", "1", "0", "1", "1", "1", "0", "41"],
        "indirect": ["0", "—", "—", "—", "0", "0", "0", "0", "0", "0"],
        "nuisance": ["1", "—", "—", "—", "0", "1", "0", "0", "0", "0"],
        "not observable": ["1", "0", "0", "0", "0", "0", "0", "0", "0", "1"],
    }


def test_a_wrong_prediction_shows_its_figures_with_the_name_of_the_interval():
    (wrong,) = scores_view(made_scores()).wrong.rows
    assert [cell.text for cell in wrong] == [
        *("masker", "pm", "canary_recovery", "expected to move", "wrong: not moved", "email, in domain"),
        *("0.500", "0.500", "+0.000", "\u22120.040 to +0.040 (95 % paired bootstrap over documents)"),
        *("40", "2", "the interval lies inside ±0.05"),
    ]


def test_the_macro_of_the_scores_stands_on_any_page():
    assert "Of 3 evaluated effects" in scored_page()


@pytest.mark.parametrize("url", ["javascript:alert({file})", "https://host.example/blob", "file:///{file}"])
def test_an_address_that_leads_to_no_source_is_refused(url):
    with pytest.raises(DataError, match="does not lead to a source file"):
        SourceLinks(url=url)


def test_a_file_name_is_quoted_in_its_address():
    links = SourceLinks(url="https://host.example/{file}?l={line}", folder=".")
    assert links.to("a b/ü.py", 7) == "https://host.example/a%20b/%C3%BC.py?l=7"
