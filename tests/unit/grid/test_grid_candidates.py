"""Membership scores of a cell's candidates, and the control that only knows the shape of the defended replies."""

from grid_rows import call, document, lost_call
from small_grid import cell

from mragaudit.config import load_settings
from mragaudit.grid.candidates import candidate_scores, membership_candidates
from mragaudit.grid.scoring import CellCalls

DOCUMENTS = [
    document("m1", text="Matter m1: the quartz pump of Mara Quillfeather."),
    document("m2", text="Matter m2: the basalt kiln of Tobias Renner."),
    document("h1", text="Matter h1: the marble crane of Greta Oduya.", split="held_out"),
    document("h2", text="Matter h2: the copper drill of Ivo Lindqvist.", split="held_out"),
]
SPOKEN = "The quartz pump belongs to Mara Quillfeather, who keeps it in the northern hall."


def cell_calls(arm, replies, *, lost=()):
    calls = [
        (lost_call if doc_id in lost else call)(
            number,
            target=doc_id,
            question=f"About {doc_id}?",
            doc_ids=(doc_id,) if doc_id[0] == "m" else ("m1",),
            **({} if doc_id in lost else {"reply": replies.get(doc_id, "No.")}),
        )
        for number, doc_id in enumerate(("m1", "m2", "h1", "h2"), start=1)
    ]
    return CellCalls(cell=cell(cell_id=arm, arm=arm, attack="mi"), calls=calls, documents=DOCUMENTS)


def scores(given, undefended=None):
    return {row.doc_id: row for row in candidate_scores(given, undefended=undefended)}


def test_a_reply_about_the_document_scores_above_those_that_say_nothing():
    found = scores(cell_calls("none", {"m1": SPOKEN}))
    assert found["m1"].score > max(found[name].score for name in ("m2", "h1", "h2"))
    assert {name: row.member for name, row in found.items()} == {"m1": True, "m2": True, "h1": False, "h2": False}


def test_without_a_defense_there_is_no_control():
    assert {row.control_score for row in scores(cell_calls("none", {})).values()} == {None}


def test_replies_that_the_defense_left_alone_have_the_control_as_their_score():
    undefended = cell_calls("none", {"m1": SPOKEN})
    found = scores(cell_calls("dp_r@1", {"m1": SPOKEN}), undefended)
    assert [row.control_score for row in found.values()] == [row.score for row in found.values()]


def test_a_defense_that_cuts_every_reply_to_nothing_leaves_the_control_nothing_either():
    undefended = cell_calls("none", {"m1": SPOKEN})
    cut = dict.fromkeys(("m1", "m2", "h1", "h2"), "")
    found = scores(cell_calls("pad", cut), undefended)
    assert {row.score for row in found.values()} == {0.0}
    assert {row.control_score for row in found.values()} == {0.0}


def test_a_lost_call_leaves_its_candidate_without_score_and_its_retrieval_known():
    found = scores(cell_calls("none", {"m1": SPOKEN}, lost={"m2"}))
    assert (found["m2"].score, found["m2"].retrieved) == (None, True)
    assert found["m1"].score is not None


def test_a_call_lost_without_the_defense_leaves_no_control():
    found = scores(cell_calls("pad", {}), cell_calls("none", {}, lost={"h1"}))
    assert (found["h1"].control_score, found["h1"].score is None) == (None, False)


def test_what_was_retrieved_for_a_non_member_is_no_hit():
    found = scores(cell_calls("none", {}))
    assert {name: row.retrieved for name, row in found.items()} == {"m1": True, "m2": True, "h1": None, "h2": None}


def test_candidates_are_the_same_under_every_arm_and_as_many_as_asked_for():
    documents = [document(f"m{n}") for n in range(9)] + [document(f"h{n}", split="held_out") for n in range(9)]
    grid = load_settings({"hook_audit": {"membership": {"members": 3, "non_members": 4}}}).hook_audit
    first, second = (membership_candidates(documents, grid, seed=1) for _ in range(2))
    assert first == second
    assert [sum(row.split == split for row in first) for split in ("indexed", "held_out")] == [3, 4]
