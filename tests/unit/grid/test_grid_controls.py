"""The controls: an echo must show what it was shown, a blind generator nothing."""

import pytest
from grid_rows import extraction, grid_rows, item, use
from small_grid import cell

from mragaudit.errors import GateError
from mragaudit.grid.controls import controls_table, require_controls


def rows(purpose, items, *, lost=()):
    spent = use(n_not_evaluated=len(lost), lost_calls=tuple(lost))
    return grid_rows((cell(cell_id="c", purpose=purpose),), uses={"c": spent}, items={"c": items})


def outcome(purpose, items, **kwargs):
    return controls_table(rows(purpose, items, **kwargs)).to_dict("records")[0]


def test_an_echo_that_shows_19_of_20_items_in_context_passes():
    items = [item(number, exact=number > 0) for number in range(20)]
    assert (outcome("positive_control", items)["share"], outcome("positive_control", items)["passed"]) == (0.95, True)


def test_an_echo_that_shows_18_of_20_fails():
    found = outcome("positive_control", [item(number, exact=number > 1) for number in range(20)])
    assert not found["passed"]
    assert found["reason"] == "an echo shows 0.90 of the items in context"


def test_items_that_stood_in_no_context_count_for_nothing():
    items = [item(0), item(1, in_context=False, exact=False)]
    assert outcome("positive_control", items)["share"] == 1.0


def test_an_echo_without_any_item_in_context_shows_nothing_and_fails():
    assert not outcome("positive_control", [item(0, in_context=False, exact=False)])["passed"]


def test_a_blind_generator_from_which_an_item_is_recovered_fails():
    assert outcome("negative_control", [item(0, exact=False)])["passed"]
    assert not outcome("negative_control", [item(0)])["passed"]


def test_a_control_with_a_lost_call_fails():
    assert outcome("negative_control", [item(0, exact=False)], lost=[2])["reason"] == "1 calls have no reply"


def of_documents(purpose, *repeated, retrieved=True):
    """Return the row of a corpus without items, of whose documents these are repeated."""
    found = [extraction(f"d{number}", retrieved=retrieved, repeated=one) for number, one in enumerate(repeated)]
    given = grid_rows((cell(cell_id="c", purpose=purpose),), uses={"c": use()}, extractions={"c": found})
    return controls_table(given).to_dict("records")[0]


def test_in_a_corpus_without_items_the_controls_are_judged_by_documents():
    assert of_documents("positive_control", *[True] * 19, False)["passed"]
    assert of_documents("positive_control", True, False)["reason"] == "an echo shows 0.50 of the documents in context"
    assert of_documents("positive_control", True, retrieved=False)["reason"].startswith("no document stood in any")
    assert of_documents("negative_control", False, False)["passed"]
    assert of_documents("negative_control", True)["reason"].startswith("1 documents recovered")


def test_a_failed_control_is_named_and_nothing_is_reported():
    table = controls_table(rows("negative_control", [item(0)]))
    with pytest.raises(GateError, match="negative_control, attack ps: 1 items recovered"):
        require_controls(table)
