from __future__ import annotations

import itertools

import numpy as np
import pytest

from mragaudit.leaks.membership import MASK, Exchange, Inquiry, membership_scores, shape_like
from mragaudit.stats.auc import folded_auc

DOCUMENTS = [
    "Project Heron orders granite from the quarry.",
    "Project Otter orders lanterns from the quarry.",
    "Project Raven orders velvet from the market.",
    "Project Drift orders copper from the harbour.",
]
REPLIES = [
    "The granite comes from the quarry.",
    "Ask Mara Velten at mv@host.example, extension 4711.",
    "No such thing.",
    "No.",
]


def inquiries(replies: list[str | None]) -> list[Inquiry]:
    return [
        Inquiry(text=text, exchanges=(Exchange(question="What about it?", reply=reply),))
        for text, reply in zip(DOCUMENTS, replies, strict=True)
    ]


def pairwise_auc(scores: list[float | None]) -> float:
    """Of the first two, which are members, against the last two."""
    pairs = itertools.product(scores[:2], scores[2:])
    return float(np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs]))  # type: ignore[operator]


def test_equal_weights_of_three_z_scores_worked_by_hand() -> None:
    # lengths 2 and 4: z -1, 1; keyword hits 0 and 1: z -1, 1; presence 0 for both: counts nothing
    given = [
        Inquiry(text="granite", exchanges=(Exchange(question="?", reply="No"),)),
        Inquiry(text="zinc", exchanges=(Exchange(question="?", reply="zinc"),)),
    ]
    assert membership_scores(given) == [-2.0, 2.0]


def test_neutral_text_behind_every_reply_leaves_the_auc_and_the_scores() -> None:
    before = membership_scores(inquiries(list(REPLIES)))
    after = membership_scores(inquiries([f"{reply} thank you for asking" for reply in REPLIES]))
    assert after == before
    assert pairwise_auc(after) == pairwise_auc(before) == 1.0


def test_labels_dealt_anew_give_one_half_on_the_average_and_the_observed_auc_within_the_null() -> None:
    scores = membership_scores(inquiries(list(REPLIES)))
    deals = [[scores[at] for at in deal] for deal in itertools.permutations(range(4))]
    assert np.mean([pairwise_auc(deal) for deal in deals]) == pytest.approx(0.5)
    folded = folded_auc(scores[:2], scores[2:], generator=np.random.default_rng(1))
    # of the six deals the one observed and its mirror reach 1: two members and two others show nothing
    assert folded is not None
    assert (folded.auc, folded.p_value, folded.null_high) == (1.0, pytest.approx(2 / 6), 1.0)


def test_the_same_reply_for_all_makes_all_scores_equal() -> None:
    assert membership_scores(inquiries(["I cannot say."] * 4)) == [0.0] * 4


def test_a_keyword_of_the_question_is_no_hit_when_the_reply_echoes_it() -> None:
    given = [
        Inquiry(text="granite", exchanges=(Exchange(question="Is it granite?", reply="granite"),)),
        Inquiry(text="marbles", exchanges=(Exchange(question="Is it?", reply="plaster"),)),
    ]
    assert membership_scores(given) == [0.0, 0.0]


def test_a_candidate_with_a_missing_reply_has_no_score_and_does_not_move_the_others() -> None:
    scores = membership_scores(inquiries([REPLIES[0], None, REPLIES[2], REPLIES[3]]))
    rest = membership_scores([inquiry for at, inquiry in enumerate(inquiries(list(REPLIES))) if at != 1])
    assert scores[1] is None
    assert len([score for score in scores if score is not None]) == len(rest) == 3


def test_a_candidate_without_questions_has_no_score() -> None:
    assert membership_scores([Inquiry(text="granite", exchanges=())]) == [None]


def test_no_candidates_have_no_scores() -> None:
    assert membership_scores([]) == []


def test_the_control_is_cut_to_the_length_of_the_defended_reply() -> None:
    assert shape_like("the granite is in the quarry", "the stone") == "the grani"


def test_the_control_keeps_as_many_numbers_addresses_and_names_as_the_defended_reply() -> None:
    undefended = "Ask Mara Velten or Ole Brandt: mv@host.example, room 12, phone 4711."
    defended = "Ask Mara Velten or somebody: [E-MAIL], room 12, phone [NUMBER]. Long enough for all of it and more."
    assert shape_like(undefended, defended) == f"Ask Mara Velten or {MASK}: {MASK}, room 12, phone {MASK}."


@pytest.mark.parametrize(("undefended", "defended"), [(None, "a"), ("a", None)])
def test_a_missing_reply_has_no_control(undefended: str | None, defended: str | None) -> None:
    assert shape_like(undefended, defended) is None


def test_an_empty_defended_reply_leaves_nothing() -> None:
    assert shape_like("granite", "") == ""
