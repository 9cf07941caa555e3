"""Several defenses as one: which part acts when."""

from __future__ import annotations

import numpy as np
import pytest

from mragaudit.defenses.arms import draws_noise, make_arm
from mragaudit.defenses.base import BaseDefense
from mragaudit.defenses.composition import Composition
from mragaudit.errors import ConfigError
from mragaudit.protocols import GenerateRequest, Message, Prompt
from mragaudit.rag.hooks import REFUSED_SCORE, Turn
from mragaudit.records.grid import Arm

SCORES = np.linspace(0.1, 0.9, 9)
TEXT = "Margaret Oduya, margaret.oduya@corp.example, +1 202-555-0147"
REQUEST = GenerateRequest(
    prompt=Prompt(messages=(Message("user", "Who?"),), shared=0), max_tokens=8, stop=("\n",), repeat=0
)


def turn(seed: int = 0, principal: str = "p") -> Turn:
    return Turn(principal=principal, session="s", rng=np.random.default_rng(seed))


def arm(*defenses: str, epsilon: float | None = None) -> Arm:
    return Arm(name="+".join(defenses), defenses=defenses, epsilon=epsilon)


class Signed(BaseDefense):
    """Writes its sign at every hook."""

    declared_hooks = ("query", "documents", "response")

    def __init__(self, sign: str) -> None:
        self.sign = sign

    def process_query(self, query, *, turn):  # noqa: ARG002  # as the protocol has it
        return query + self.sign

    def perturb_scores(self, scores, *, turn):  # noqa: ARG002
        return 2 * scores + ord(self.sign)

    def rewrite_documents(self, documents, *, turn):  # noqa: ARG002
        return [document + self.sign for document in documents]

    def process_generation(self, request, *, turn):  # noqa: ARG002
        return GenerateRequest(prompt=request.prompt, max_tokens=8, stop=(*request.stop, self.sign))

    def process_response(self, response, *, turn):  # noqa: ARG002
        return response + self.sign


class Refusing(BaseDefense):
    """Refuses the first document and every question about it."""

    def process_query(self, query, *, turn):  # noqa: ARG002
        return None if "first" in query else query

    def perturb_scores(self, scores, *, turn):  # noqa: ARG002
        return np.where(np.arange(len(scores)) == 0, REFUSED_SCORE, scores)


class Counting(BaseDefense):
    """Counts the questions that reach it."""

    def __init__(self) -> None:
        self.seen = 0

    def process_query(self, query, *, turn):  # noqa: ARG002
        self.seen += 1
        return query


def test_the_parts_act_in_the_stated_order_on_the_way_in_and_in_reverse_on_the_way_out():
    both = Composition([Signed("a"), Signed("b")])
    assert both.process_query("q", turn=turn()) == "qab"
    assert both.perturb_scores(np.array([1.0]), turn=turn()).tolist() == [2 * (2 + 97) + 98]
    assert both.rewrite_documents(["d", "e"], turn=turn()) == ["dab", "eab"]
    assert both.process_generation(REQUEST, turn=turn()).stop == ("\n", "a", "b")
    assert both.process_response("r", turn=turn()) == "rba"


def test_the_part_stated_first_has_the_last_word_on_the_reply():
    masker = make_arm(arm("pad"), k=5)
    writer = Signed(" ann@corp.example")
    assert Composition([masker, writer]).process_response("Write to", turn=turn()) == "Write to [EMAIL]"
    assert Composition([writer, masker]).process_response("Write to", turn=turn()) == "Write to ann@corp.example"


def test_a_question_that_one_part_refuses_does_not_reach_those_behind_it():
    behind = Counting()
    both = Composition([Refusing(), behind])
    assert both.process_query("the first", turn=turn()) is None
    assert behind.seen == 0
    assert both.process_query("the second", turn=turn()) == "the second"
    assert behind.seen == 1


def test_a_document_that_one_part_refuses_stays_refused():
    dp_r = make_arm(arm("dp_r", epsilon=1.0), k=5)
    scores = Composition([Refusing(), dp_r]).perturb_scores(SCORES, turn=turn())
    assert scores[0] == REFUSED_SCORE
    assert np.isfinite(scores[1:]).all()


def test_the_first_part_draws_what_it_would_draw_alone():
    alone = make_arm(arm("dp_r", epsilon=5.0), k=5).perturb_scores(SCORES, turn=turn(3))
    both = make_arm(arm("dp_r", "lprag", epsilon=5.0), k=5).perturb_scores(SCORES, turn=turn(3))
    assert alone.tobytes() == both.tobytes()


def test_a_combination_declares_the_hooks_of_all_its_parts():
    both = make_arm(arm("lprag", "dp_r", epsilon=1.0), k=5)
    assert (both.declared_hooks, both.random_hooks) == (("scores", "documents", "response"), ("scores",))


def everything(defense: BaseDefense, seed: int) -> tuple[object, ...]:
    """What each hook makes of an input that it ought to change, over twenty questions."""
    return tuple(
        (
            defense.process_query(TEXT, turn=turn(number + seed)),
            defense.perturb_scores(SCORES, turn=turn(number + seed)).tobytes(),
            defense.rewrite_documents([TEXT], turn=turn(number + seed)),
            defense.process_generation(REQUEST, turn=turn(number + seed)),
            defense.process_response(TEXT, turn=turn(number + seed)),
        )
        for number in range(20)
    )


ARMS = [("none",), ("dp_r",), ("ca_dp",), ("private_rag",), ("pad",), ("lprag",), ("dp_r", "lprag"), ("pad", "lprag")]


@pytest.mark.parametrize("defenses", ARMS, ids="+".join)
def test_epsilon_makes_a_difference_exactly_where_an_arm_is_said_to_draw_noise(defenses):
    made = [make_arm(arm(*defenses, epsilon=epsilon), k=5, public_threshold=0.5) for epsilon in (1.0, 5.0)]
    same = everything(made[0], 10) == everything(made[1], 10)
    assert same is not draws_noise(defenses)


@pytest.mark.parametrize("defenses", ARMS, ids="+".join)
def test_the_same_noise_gives_the_same_bytes_and_every_cell_its_own_object(defenses):
    made = [make_arm(arm(*defenses, epsilon=1.0), k=5, public_threshold=0.5) for _ in range(2)]
    assert made[0] is not made[1]
    assert everything(made[0], 4) == everything(made[1], 4)


@pytest.mark.parametrize("defenses", ARMS, ids="+".join)
def test_an_arm_acts_at_the_hooks_that_it_declares_and_at_no_other(defenses):
    made = make_arm(arm(*defenses, epsilon=1.0), k=5, public_threshold=0.5)
    seen = {
        "query": made.process_query(TEXT, turn=turn()) != TEXT,
        "scores": made.perturb_scores(SCORES, turn=turn()).tolist() != SCORES.tolist(),
        "documents": made.rewrite_documents([TEXT], turn=turn()) != [TEXT],
        "generation": made.process_generation(REQUEST, turn=turn()) != REQUEST,
        "response": made.process_response(TEXT, turn=turn()) != TEXT,
    }
    assert {hook for hook, changed in seen.items() if changed} == set(made.declared_hooks)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (arm("dp_rr"), {}, 'did you mean "dp_r"'),
        (arm(), {}, 'the baseline is "none"'),
        (arm("pad", "pad"), {}, '"pad" twice'),
        (arm("dp_r"), {}, "needs an epsilon"),
        (arm("private_rag", epsilon=1.0), {}, "threshold from public queries"),
        (arm("dp_r", epsilon=1.0), {"dp_r": {"sensitivty": 2}}, 'did you mean "sensitivity"'),
        (arm("dp_r", epsilon=1.0), {"dp_r": {"sensitivity": 3}}, r"dp_r\.sensitivity: .*value 3; allowed: 1, 2$"),
        (arm("pad"), {"pat": {}}, 'did you mean "pad"'),
    ],
)
def test_arms_that_do_not_fit_together_are_refused(given, options, said):
    with pytest.raises(ConfigError, match=said):
        make_arm(given, k=5, options=options)


def test_options_reach_the_defense_that_they_are_for():
    made = make_arm(arm("private_rag", epsilon=2.0), k=7, public_threshold=0.6, options={"private_rag": {"k": 3}})
    assert (made.epsilon, made.k, made.threshold) == (2.0, 3, 0.6)
