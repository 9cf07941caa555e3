"""The audited pipeline: what each hook gets, and what comes out."""

# ruff: noqa: ARG002  # a hook takes what the protocol hands it

import numpy as np
import pytest
from small_grid import TEXTS, Identity, pipeline, turn

from mragaudit.rag.hooks import REFUSED_SCORE

QUESTION = "Who is the contact of Project Pale Marmot about the kiln?"


def test_without_a_defense_the_best_documents_reach_the_model_as_they_are():
    prepared = pipeline().prepare(QUESTION, turn=turn())
    assert prepared.retrieved.doc_ids[0] == "d2"
    assert prepared.context == tuple(TEXTS[name] for name in prepared.retrieved.doc_ids)


def test_the_best_document_stands_next_to_the_question():
    prepared = pipeline().prepare(QUESTION, turn=turn())
    assert prepared.request is not None
    shown = prepared.request.prompt.messages[-1].content
    assert shown.index(TEXTS[prepared.retrieved.doc_ids[1]]) < shown.index(TEXTS["d2"]) < shown.index("Question:")


def test_a_refused_question_reaches_neither_index_nor_model():
    class Gate(Identity):
        def process_query(self, query, *, turn):
            return None

    prepared = pipeline(Gate()).prepare(QUESTION, turn=turn())
    assert (prepared.request, prepared.refused_by, prepared.retrieved.doc_ids) == (None, "query", ())


def test_the_hook_on_scores_sees_every_document_and_decides_the_order():
    class Reversed(Identity):
        def perturb_scores(self, scores, *, turn):
            assert scores.shape == (3,)
            return np.array([0.1, 0.2, 0.3])

    prepared = pipeline(Reversed()).prepare(QUESTION, turn=turn())
    assert prepared.retrieved.doc_ids == ("d3", "d2")
    assert prepared.retrieved.scores == (0.3, 0.2)


def test_documents_with_the_refused_score_are_not_retrieved():
    class Closed(Identity):
        def perturb_scores(self, scores, *, turn):
            return np.full_like(scores, REFUSED_SCORE)

    prepared = pipeline(Closed()).prepare(QUESTION, turn=turn())
    assert prepared.retrieved.doc_ids == ()
    assert prepared.context == ()
    assert prepared.request is not None
    assert "Document:" not in prepared.request.prompt.messages[-1].content


def test_a_hook_that_loses_scores_is_an_error():
    class Short(Identity):
        def perturb_scores(self, scores, *, turn):
            return scores[:1]

    with pytest.raises(ValueError, match=r"returned \(1,\) scores of \(3,\)"):
        pipeline(Short()).prepare(QUESTION, turn=turn())


def test_rewritten_documents_are_what_the_model_sees():
    class Blank(Identity):
        def rewrite_documents(self, documents, *, turn):
            return ["[gone]" for _ in documents]

    prepared = pipeline(Blank()).prepare(QUESTION, turn=turn())
    assert prepared.context == ("[gone]", "[gone]")
    assert prepared.request is not None
    assert "@example" not in prepared.request.prompt.messages[-1].content


def test_the_hook_on_generation_may_change_the_request():
    class Short(Identity):
        def process_generation(self, request, *, turn):
            return type(request)(prompt=request.prompt, max_tokens=1, stop=request.stop)

    prepared = pipeline(Short()).prepare(QUESTION, turn=turn())
    assert prepared.request is not None
    assert prepared.request.max_tokens == 1


def test_the_hook_on_the_response_has_the_last_word():
    class Masker(Identity):
        def process_response(self, response, *, turn):
            return response.replace("ada", "[name]")

    assert pipeline(Masker()).finish("Ask ada.", turn=turn()) == "Ask [name]."


def test_a_dialogue_keeps_its_last_question_alone():
    asked = pipeline()
    for text in ("Let us talk of Project Pale Marmot.", "Whom do I ask?", "And when?"):
        prepared = asked.prepare(text, turn=turn(session="one"))
    assert prepared.request is not None
    assert "Question: Whom do I ask? And when?" in prepared.request.prompt.messages[-1].content


def test_another_session_knows_nothing_of_the_first():
    asked = pipeline()
    asked.prepare("Let us talk of Project Pale Marmot.", turn=turn(session="one"))
    prepared = asked.prepare("Whom do I ask?", turn=turn(session="two"))
    assert prepared.request is not None
    assert "Marmot. Whom" not in prepared.request.prompt.messages[-1].content
