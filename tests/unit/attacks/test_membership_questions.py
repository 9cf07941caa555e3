from __future__ import annotations

import pytest

from driving import drive, make_tools
from mragaudit.attacks.mi import MembershipInference
from mragaudit.attacks.steps import Candidate
from mragaudit.errors import ConfigError

CANDIDATES = (
    Candidate(candidate_id="a", title="Project Heron", text="Project Heron orders granite from the quarry."),
    Candidate(candidate_id="b", title="Project Otter", text="Project Otter orders lanterns from the quarry."),
)


def test_each_candidate_is_asked_about_three_times_by_title_and_rarest_words() -> None:
    run = drive(MembershipInference(), lambda _: "", tools=make_tools(budget=6, candidates=CANDIDATES))
    assert sorted(ask.candidate or "" for ask in run.asks) == ["a"] * 3 + ["b"] * 3
    assert all(
        "Project Heron" in ask.text and "heron and granite" in ask.text for ask in run.asks if ask.candidate == "a"
    )


def test_a_budget_below_three_questions_each_gives_all_candidates_the_same_number() -> None:
    run = drive(MembershipInference(), lambda _: "", tools=make_tools(budget=5, candidates=CANDIDATES))
    assert sorted(ask.candidate or "" for ask in run.asks) == ["a", "a", "b", "b"]
    assert run.outcome.counts == {"questions_per_candidate": 2}


def test_a_budget_below_one_question_each_is_refused_with_the_right_one() -> None:
    with pytest.raises(ConfigError, match="give it 2 to 6"):
        drive(MembershipInference(), lambda _: "", tools=make_tools(budget=1, candidates=CANDIDATES))


def test_the_order_of_candidates_is_drawn() -> None:
    many = [Candidate(candidate_id=str(at), title=f"T{at}", text="granite") for at in range(10)]
    run = drive(MembershipInference(), lambda _: "", tools=make_tools(budget=10, candidates=many))
    assert [ask.candidate for ask in run.asks] != [str(at) for at in range(10)]
    assert {ask.candidate for ask in run.asks} == {str(at) for at in range(10)}


def test_no_candidates_mean_no_questions() -> None:
    assert drive(MembershipInference(), lambda _: "", tools=make_tools()).asks == ()
