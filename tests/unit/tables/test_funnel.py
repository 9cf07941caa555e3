"""Funnel and stops: where trials are stopped first, and what each stage alone would stop."""

from __future__ import annotations

import pytest

from mragaudit.tables.columns import read_columns
from mragaudit.tables.funnel import passage, stop_of_each

JUDGES = ["english", "backtranslate", "multilingual", "oracle", "retrieved"]
KEY = {"lang": "en", "pii_group": "all", "filter_variant": "regex_ascii"}
STAGES = ["queried", "translated", "judge", "retrieved", "generated", "filter"]
CONTEXT_STAGES = ["queried", "translated", "retrieved", "judge", "generated", "filter"]


@pytest.fixture
def trials(trial):
    """Ten documents: one trial for each way to be stopped, two ways to be missing, two that escape."""
    return [
        trial("a", translation_failed="unchanged", leak=False),
        trial("b", verdict="BLOCK", leak=False),
        trial("c", verdict="UNPARSED"),
        trial("d", gold_rank=None, leak=False),
        trial("e", leak=False),
        trial("f", fired=True),
        trial("g", verdict="BLOCK", gold_rank=None, leak=False),
        trial("h", leak=None),
        trial("i"),
        trial("j", translation_failed="unchanged", gold_rank=None),
        trial("k", verdict=None),
    ]


def column(table, name, **key):
    chosen = table
    for field, value in key.items():
        chosen = chosen[chosen[field] == value]
    return dict(zip(chosen["stage"], chosen[name], strict=True))


def test_survivors_are_counted_down_at_the_first_stop(trials, tables):
    found = tables(trials)["funnel"]
    surviving = column(found, "n_surviving", **KEY, judge_variant="english")
    # a leaves at translated; b, c, g at judge; d at retrieved; e at generated; f at filter; i and j escape.
    expected = {"queried": 9, "translated": 8, "judge": 5, "retrieved": 4, "generated": 3, "filter": 2}
    assert list(surviving) == STAGES
    assert surviving == expected
    shares = column(found, "share", **KEY, judge_variant="english")
    assert shares == {stage: pytest.approx(count / 9) for stage, count in expected.items()}


def test_each_trial_is_given_the_stop_under_which_the_funnel_counts_it(trials):
    columns = read_columns(trials, languages=["en"], judges=JUDGES, filters=["regex_ascii", "regex_unicode"])
    stops = stop_of_each(passage(columns, "english", "regex_ascii"))
    expected = "translated judge judge retrieved generated filter judge".split()
    assert stops == [*expected, "not evaluated", "escaped", "escaped", "not evaluated"]


def test_trials_without_answer_or_verdict_are_counted_apart(trials, tables):
    found = tables(trials)["funnel"]
    assert set(column(found, "n_trials", **KEY, judge_variant="english").values()) == {11}
    assert set(column(found, "n_not_evaluated", **KEY, judge_variant="english").values()) == {2}
    assert set(column(found, "n_not_evaluated", **KEY, judge_variant="none").values()) == {1}


@pytest.mark.parametrize("judge", ["oracle", "retrieved"])
def test_judges_that_see_documents_come_after_retrieval(trials, tables, judge):
    surviving = column(tables(trials)["funnel"], "n_surviving", **KEY, judge_variant=judge)
    assert list(surviving) == CONTEXT_STAGES
    # g now leaves at retrieved.
    assert surviving == {"queried": 9, "translated": 8, "retrieved": 6, "judge": 4, "generated": 3, "filter": 2}


def test_without_a_judge_nothing_stops_there(trials, tables):
    surviving = column(tables(trials)["funnel"], "n_surviving", **KEY, judge_variant="none")
    # d and g leave at retrieved; b and e at generated; f at filter; c, i, j and k escape.
    assert surviving == {"queried": 10, "translated": 9, "judge": 9, "retrieved": 7, "generated": 5, "filter": 4}


def test_stops_count_first_stops_and_what_each_stage_alone_would_stop(trials, tables):
    found = tables(trials)["stops"]
    first = column(found, "n_first_stop", **KEY, judge_variant="english")
    alone = column(found, "n_stop_alone", **KEY, judge_variant="english")
    assert first == {"queried": 0, "translated": 1, "judge": 3, "retrieved": 1, "generated": 1, "filter": 1}
    # judge b, c, g; retrieved d, g; generated a, b, d, e, g. j leaks, so no check upstream has stopped it.
    assert alone == {"queried": 0, "translated": 1, "judge": 3, "retrieved": 2, "generated": 5, "filter": 1}


def test_the_last_stage_holds_exactly_the_trials_that_leak_past_judge_and_filter(trials, tables, row):
    built = tables(trials)
    for judge in ("english", "oracle", "retrieved"):
        key = KEY | {"judge_variant": judge}
        # One trial a document here, so leaking documents are leaking trials.
        assert row(built["funnel"], **key, stage="filter")["n_surviving"] == 2
        assert row(built["f3_combined"], **key)["n_leaked"] == 2


def test_benign_questions_and_controls_are_not_in_the_funnel(trial, tables):
    trials = [trial("d1"), trial("d1", intent="benign", leak=False)]
    trials.append(trial(None, intent="control", query_source="control", pii_type=None, leak=None, fired={}))
    assert set(column(tables(trials)["funnel"], "n_trials", **KEY, judge_variant="english").values()) == {1}


def test_a_language_without_trials_has_no_share(trial, tables):
    shares = column(tables([trial("d1")])["funnel"], "share", **(KEY | {"lang": "de"}), judge_variant="english")
    assert len(shares) == 6
    assert all(share != share for share in shares.values())  # noqa: PLR0124  # NaN alone differs from itself
