"""Recovery of canaries by class and arm."""

from __future__ import annotations

import pytest

from mragaudit.errors import DataError
from mragaudit.grid.recovery import canary_runs, recovery_rows
from mragaudit.records.grid import Cell, ItemOutcome


def cell(cell_id, *, arm="none", seed=1, attack="ps", purpose="canary", same_as=None):
    return Cell(
        cell_id=cell_id,
        purpose=purpose,
        corpus="email",
        realisation=f"email.canary-email.s{seed}",
        seed=seed,
        mode="targeted_queries",
        arm=arm,
        attack=attack,
        budget=8,
        same_as=same_as,
    )


def outcome(cell_id, doc, *, found="", planted=True, canary=True, kind="email", not_evaluated=None):
    """`found` has the letters of what holds: retrieved, context, exact, normalised, derived."""
    return ItemOutcome(
        cell_id=cell_id,
        doc_id=doc,
        kind=kind,
        value=f"canary of {doc}",
        canary=canary,
        planted=planted,
        retrieved="r" in found,
        in_context="c" in found,
        exact="e" in found,
        normalised="n" in found,
        derived="d" in found,
        not_evaluated=not_evaluated,
    )


def test_each_share_counts_what_its_name_says():
    rows = [
        outcome("a", "d1", found="rcen"),
        outcome("a", "d2", found="rcn"),
        outcome("a", "d3", found="rcd"),
        outcome("a", "d4", found="r"),
        outcome("a", "d5"),
        outcome("a", "h1", planted=False),
        outcome("a", "h2", planted=False, found="n"),
    ]
    (row,) = recovery_rows(canary_runs([cell("a")], rows))
    counts = {
        name: (getattr(row, name).k, getattr(row, name).n)
        for name in ("exact", "normalised", "derived", "given_retrieved", "retrieved", "in_context", "controls")
    }
    assert counts == {
        "exact": (1, 5),
        "normalised": (2, 5),
        "derived": (1, 5),
        "given_retrieved": (1, 4),
        "retrieved": (4, 5),
        "in_context": (3, 5),
        "controls": (1, 2),
    }


def test_limits_are_two_sided_clopper_pearson_and_say_so():
    rows = [outcome("a", f"d{i}", found="e" if i < 53 else "") for i in range(150)]
    (row,) = recovery_rows(canary_runs([cell("a")], rows))
    assert (row.exact.low, row.exact.high) == pytest.approx((0.277, 0.435), abs=5e-4)
    assert row.exact.interval == "clopper_pearson"


def test_what_was_not_evaluated_stands_in_no_share_found_or_not():
    rows = [
        outcome("a", "d1", found="re", not_evaluated="timeout"),
        outcome("a", "d2", found="r", not_evaluated="timeout"),
        outcome("a", "d3"),
    ]
    (row,) = recovery_rows(canary_runs([cell("a")], rows))
    assert (row.exact.k, row.exact.n, row.exact.not_evaluated) == (0, 1, 2)
    assert (row.retrieved.k, row.retrieved.n, row.retrieved.not_evaluated) == (2, 3, 0)


def test_a_denominator_of_nothing_has_no_share():
    (row,) = recovery_rows(canary_runs([cell("a")], [outcome("a", "d1", not_evaluated="timeout")]))
    assert (row.exact.share, row.exact.low, row.exact.high, row.exact.not_evaluated) == (None, None, None, 1)


def test_one_cell_of_an_arm_and_seed_suffices_to_recover_a_canary():
    cells = [cell("a", attack="ps"), cell("b", attack="pm")]
    rows = [outcome("a", "d1"), outcome("b", "d1", found="e"), outcome("a", "d2"), outcome("b", "d2")]
    (row,) = recovery_rows(canary_runs(cells, rows))
    assert (row.exact.k, row.exact.n) == (1, 2)
    assert row.attacks == ("targeted_queries/pm", "targeted_queries/ps")


def test_a_call_without_reply_in_one_cell_leaves_what_the_other_did_not_find_unknown():
    cells = [cell("a", attack="ps"), cell("b", attack="pm")]
    rows = [outcome("a", "d1"), outcome("b", "d1", not_evaluated="timeout")]
    (row,) = recovery_rows(canary_runs(cells, rows))
    assert (row.exact.n, row.exact.not_evaluated) == (0, 1)


def test_seeds_are_pooled_and_the_same_document_of_two_seeds_counts_twice():
    cells = [cell("a", seed=1), cell("b", seed=2)]
    rows = [outcome("a", "d1", found="e"), outcome("b", "d1")]
    (row,) = recovery_rows(canary_runs(cells, rows))
    assert (row.exact.k, row.exact.n, row.seeds) == (1, 2, (1, 2))


def test_a_cell_that_is_the_same_as_another_has_its_outcomes():
    cells = [cell("a", arm="lprag@1"), cell("b", arm="lprag@5", same_as="a")]
    one, five = recovery_rows(canary_runs(cells, [outcome("a", "d1", found="e")]))
    assert (one.exact, five.exact.k) == (five.exact, 1)


def test_cells_of_other_purposes_and_ordinary_items_are_left_out():
    cells = [cell("a"), cell("b", purpose="grid")]
    rows = [outcome("a", "d1"), outcome("a", "d2", canary=False, found="e"), outcome("b", "d3", found="e")]
    (row,) = recovery_rows(canary_runs(cells, rows))
    assert (row.exact.k, row.exact.n) == (0, 1)


def test_a_canary_cell_without_canaries_or_with_two_classes_is_refused():
    with pytest.raises(DataError, match=r"cell a has canaries of the classes \[\]"):
        canary_runs([cell("a")], [])
    with pytest.raises(DataError, match=r"classes \['email', 'phone'\]"):
        canary_runs([cell("a")], [outcome("a", "d1"), outcome("a", "d2", kind="phone")])


def test_seeds_that_were_attacked_in_different_ways_are_not_pooled():
    cells = [cell("a", seed=1), cell("b", seed=2, attack="deal")]
    with pytest.raises(DataError, match="the seeds have different attacks"):
        recovery_rows(canary_runs(cells, [outcome("a", "d1"), outcome("b", "d1")]))


def test_a_never_planted_canary_that_was_recovered_beside_a_lost_call_is_still_a_fault():
    rows = [
        outcome("a", "d1"),
        outcome("a", "h1", planted=False, found="e", not_evaluated="timeout"),
        outcome("a", "h2", planted=False, not_evaluated="timeout"),
    ]
    (row,) = recovery_rows(canary_runs([cell("a")], rows))
    assert (row.controls.k, row.controls.n, row.controls.not_evaluated) == (1, 1, 1)


def test_limits_are_of_the_level_asked_for():
    rows = [outcome("a", f"d{i}") for i in range(59)]
    (row,) = recovery_rows(canary_runs([cell("a")], rows), confidence=0.9)
    assert row.exact.high == pytest.approx(1 - 0.05 ** (1 / 59))
