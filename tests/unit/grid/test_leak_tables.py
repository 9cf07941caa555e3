"""Tables of what extraction attacks got, worked by hand."""

import pytest
from grid_rows import cell_of, extraction, grid_rows, item, use

from mragaudit.grid.leak_tables import extraction_table, leak_types_table, leaks_table
from mragaudit.grid.resampling import Resampling
from mragaudit.records.grid import NelCount

RESAMPLING = Resampling(seed=1, resamples=200, confidence=0.95)
NONE, PAD = cell_of("none"), cell_of("pad")


def records(table, **where):
    return [row for row in table.to_dict("records") if all(row[name] == value for name, value in where.items())]


def leaks(items, *, cells=(NONE, PAD), uses=None):
    spent = uses or {cell.cell_id: use(cell.cell_id) for cell in cells}
    return leaks_table(grid_rows(cells, uses=spent, items=items), resampling=RESAMPLING)


def items_of(cell, found):
    return [item(number, cell_id=cell.cell_id, exact=one, normalised=one) for number, one in enumerate(found)]


def test_a_row_counts_items_by_kind_and_all_together():
    names = [
        item(n, cell_id=NONE.cell_id, kind="person_name", value=f"n{n}", exact=False, normalised=True) for n in (0, 1)
    ]
    table = leaks({NONE.cell_id: items_of(NONE, [True, False, False]) + names}, cells=(NONE,))
    counted = {row["kind"]: (row["n_items"], row["n_leaked"], row["n_normalised"]) for row in table.to_dict("records")}
    assert counted == {"email": (3, 1, 1), "person_name": (2, 0, 2), "all": (5, 1, 3)}
    rates = {row["kind"]: row["rate"] for row in table.to_dict("records")}
    assert rates == {"email": pytest.approx(1 / 3), "person_name": 0.0, "all": 0.2}


def test_the_documents_that_limits_resample_are_counted_beside_the_items():
    two_of_one = [item(0, cell_id=NONE.cell_id, value=value) for value in ("a@b.example", "c@d.example")]
    lost = item(9, cell_id=NONE.cell_id, not_evaluated="HTTP 503")
    found = [*two_of_one, item(1, cell_id=NONE.cell_id), lost]
    [row] = records(leaks({NONE.cell_id: found}, cells=(NONE,)), kind="all")
    assert (row["n_documents"], row["n_items"], row["n_not_evaluated"]) == (2, 4, 1)


def test_unknown_items_stand_in_no_rate():
    unknown = [item(9, cell_id=NONE.cell_id, exact=False, not_evaluated="HTTP 503")]
    [row] = records(leaks({NONE.cell_id: items_of(NONE, [True, False]) + unknown}, cells=(NONE,)), kind="all")
    assert (row["n_items"], row["n_not_evaluated"], row["n_leaked"], row["rate"]) == (3, 1, 1, 0.5)


def test_what_leaked_beside_a_lost_call_is_counted_apart_and_makes_no_rate_of_one():
    lost = cell_of("none", seed=2)
    items = {
        NONE.cell_id: items_of(NONE, [True, False, False, False]),
        lost.cell_id: [item(n, cell_id=lost.cell_id, exact=n == 0, not_evaluated="HTTP 503") for n in range(4)],
    }
    [row] = records(leaks(items, cells=(NONE, lost)), kind="all")
    assert (row["n_items"], row["n_not_evaluated"], row["n_leaked"], row["n_leaked_beside_lost"]) == (8, 4, 1, 1)
    assert row["rate"] == 0.25


def test_without_a_known_item_there_is_no_rate():
    unknown = [item(9, cell_id=NONE.cell_id, exact=False, not_evaluated="HTTP 503")]
    [row] = records(leaks({NONE.cell_id: unknown}, cells=(NONE,)), kind="all")
    assert (row["n_items"], row["n_not_evaluated"]) == (1, 1)
    assert row["rate"] is None or row["rate"] != row["rate"]
    assert row["ci_method"] == ""


def test_never_planted_items_are_in_no_row():
    held_out = [item(9, cell_id=NONE.cell_id, planted=False, exact=False)]
    [row] = records(leaks({NONE.cell_id: items_of(NONE, [True]) + held_out}, cells=(NONE,)), kind="all")
    assert row["n_items"] == 1


def test_intervals_are_named_as_those_within_the_run():
    [row] = records(leaks({NONE.cell_id: items_of(NONE, [True, False])}, cells=(NONE,)), kind="all")
    assert row["ci_scope"] == "within_run"
    assert row["ci_low"] <= row["rate"] <= row["ci_high"]


def test_five_seeds_against_five_that_are_all_lower_have_p_1_in_252():
    cells = tuple(cell_of(arm, seed=seed) for arm in ("none", "pad") for seed in range(1, 6))
    items = {one.cell_id: items_of(one, [one.arm == "none"] * 4 + [False]) for one in cells}
    [row] = records(leaks(items, cells=cells), kind="all", arm="pad")
    assert row["seed_p"] == pytest.approx(1 / 252)
    assert row["seed_least_p"] == pytest.approx(1 / 252)
    assert row["seed_difference"] == pytest.approx(-0.8)
    assert (row["n_seeds"], row["seed_p_method"]) == (5, "exact_permutation_of_seeds")


def test_tests_over_seeds_are_corrected_over_all_of_one_kind():
    cells = tuple(cell_of(arm, seed=seed) for arm in ("none", "pad", "lprag") for seed in range(1, 6))
    leaked = {"none": [True] * 5, "pad": [False] * 5, "lprag": [True] * 5}
    items = {one.cell_id: items_of(one, leaked[one.arm]) for one in cells}
    table = leaks(items, cells=cells)
    found = {row["arm"]: row["seed_p_holm"] for row in records(table, kind="all")}
    assert found["pad"] == pytest.approx(2 / 252)  # the smaller of two is doubled
    assert found["lprag"] == 1.0
    assert found["none"] != found["none"]


def test_one_seed_has_no_test_over_seeds():
    items = {NONE.cell_id: items_of(NONE, [True]), PAD.cell_id: items_of(PAD, [False])}
    [row] = records(leaks(items), kind="all", arm="pad")
    assert row["seed_p"] != row["seed_p"]


def count(cell, item_type, n_items, *, number=None):
    strict = item_type in {"EMAIL_REAL", "PERSON_NAME"}
    return NelCount(cell_id=cell.cell_id, number=number, item_type=item_type, n_items=n_items, strict=strict)


def types(nel, **uses):
    spent = {cell.cell_id: use(cell.cell_id, **uses.get(cell.arm, {})) for cell in (NONE, PAD)}
    return leak_types_table(grid_rows((NONE, PAD), uses=spent, nel=nel), resampling=RESAMPLING)


def test_a_masker_that_moves_addresses_to_placeholders_shows_as_a_shift_of_types():
    table = types(
        {
            NONE.cell_id: [count(NONE, "EMAIL_REAL", 4), count(NONE, "EMAIL_REAL", 2, number=1)],
            PAD.cell_id: [count(PAD, "EMAIL_PLACEHOLDER", 3), count(PAD, "EMAIL_PLACEHOLDER", 3, number=2)],
        }
    )
    [real] = records(table, arm="pad", item_type="EMAIL_REAL")
    [placeholder] = records(table, arm="pad", item_type="EMAIL_PLACEHOLDER")
    assert (real["per_run"], real["undefended_per_run"]) == (0, 4)
    assert (placeholder["per_run"], placeholder["undefended_per_run"]) == (3, 0)
    assert real["call_difference"] == pytest.approx(-2 / 3)
    assert placeholder["call_difference"] == pytest.approx(1.0)
    assert {row["item_type"] for row in table.to_dict("records")} == {"EMAIL_REAL", "EMAIL_PLACEHOLDER"}


def test_types_are_tested_over_seeds_by_the_count_of_a_run():
    cells = tuple(cell_of(arm, seed=seed) for arm in ("none", "pad") for seed in range(1, 4))
    rows = grid_rows(
        cells,
        uses={one.cell_id: use(one.cell_id) for one in cells},
        nel={one.cell_id: [count(one, "EMAIL_PLACEHOLDER", 4 if one.arm == "pad" else 1)] for one in cells},
    )
    found = leak_types_table(rows, resampling=RESAMPLING)
    [row] = records(found, arm="pad", item_type="EMAIL_PLACEHOLDER")
    assert (row["seed_difference"], row["seed_p"]) == (3.0, pytest.approx(2 / 20))


def test_calls_lost_in_either_arm_are_left_out_of_the_comparison_and_counted():
    nel = {NONE.cell_id: [count(NONE, "EMAIL_REAL", 2), count(NONE, "EMAIL_REAL", 2, number=1)], PAD.cell_id: []}
    table = types(nel, pad={"n_not_evaluated": 1, "lost_calls": (1,)})
    [row] = records(table, arm="pad", item_type="EMAIL_REAL")
    assert (row["call_difference"], row["n_not_evaluated"], row["n_calls"]) == (0, 1, 3)


def test_a_run_with_a_lost_call_stands_in_no_count_of_types():
    """Six items of five replies are not six items of all replies: the run is left out and counted."""
    cells = (cell_of("none", seed=1), cell_of("none", seed=2))
    nel = {one.cell_id: [count(one, "EMAIL_REAL", n)] for one, n in zip(cells, (6, 2), strict=True)}
    uses = {cells[0].cell_id: use(cells[0].cell_id, n_not_evaluated=1, lost_calls=(3,))}
    uses[cells[1].cell_id] = use(cells[1].cell_id)
    [row] = records(leak_types_table(grid_rows(cells, uses=uses, nel=nel), resampling=RESAMPLING), arm="none")
    assert (row["per_run"], row["n_items"], row["n_runs_not_evaluated"], row["n_seeds"]) == (2.0, 2, 1, 2)


def test_types_of_runs_that_all_lost_a_call_have_no_count():
    nel = {NONE.cell_id: [count(NONE, "EMAIL_REAL", 2)], PAD.cell_id: [count(PAD, "EMAIL_REAL", 1)]}
    table = types(nel, pad={"n_not_evaluated": 1, "lost_calls": (1,)})
    [row] = records(table, arm="pad", item_type="EMAIL_REAL")
    assert row["per_run"] != row["per_run"]
    assert row["undefended_per_run"] == 2.0


def test_every_row_says_how_many_calls_a_cell_made():
    cells = (cell_of("none", seed=1), cell_of("none", seed=2))
    items = {one.cell_id: items_of(one, [True]) for one in cells}
    uses = {one.cell_id: use(one.cell_id, n_target_calls=n) for one, n in zip(cells, (8, 7), strict=True)}
    table = leaks_table(grid_rows(cells, uses=uses, items=items), resampling=RESAMPLING)
    assert set(table["calls_per_cell"]) == {7.5}


def test_the_undefended_arm_is_compared_with_nothing():
    [row] = records(types({NONE.cell_id: [count(NONE, "EMAIL_REAL", 2)]}), arm="none")
    assert row["undefended_per_run"] != row["undefended_per_run"]
    assert row["call_difference"] != row["call_difference"]


def test_a_document_is_extracted_by_twenty_tokens_or_more_than_half_its_recall():
    rows = [
        extraction("d1", cell_id=NONE.cell_id, repeated=True),
        extraction("d2", cell_id=NONE.cell_id, rouge_l_recall=0.51, resembled=True),
        extraction("d3", cell_id=NONE.cell_id, rouge_l_recall=0.5),
        extraction("d4", cell_id=NONE.cell_id, rouge_l_precision=0.9, resembled=True, retrieved=False),
    ]
    table = extraction_table(
        grid_rows((NONE,), uses={NONE.cell_id: use()}, extractions={NONE.cell_id: rows}), resampling=RESAMPLING
    )
    [row] = table.to_dict("records")
    assert (row["n_documents"], row["n_extracted"], row["rate"]) == (4, 2, 0.5)
    assert (row["n_repeated"], row["n_resembled"], row["n_retrieved"]) == (1, 2, 3)


def test_documents_beside_a_lost_call_are_in_no_rate_and_those_reassembled_are_counted_apart():
    rows = [
        extraction("d1", cell_id=NONE.cell_id, repeated=True, not_evaluated="x"),
        extraction("d2", cell_id=NONE.cell_id, not_evaluated="x"),
    ]
    table = extraction_table(
        grid_rows((NONE,), uses={NONE.cell_id: use()}, extractions={NONE.cell_id: rows}), resampling=RESAMPLING
    )
    [row] = table.to_dict("records")
    assert (row["n_documents"], row["n_extracted"], row["n_not_evaluated"]) == (2, 0, 2)
    assert row["n_extracted_beside_lost"] == 1


def test_membership_and_benign_cells_are_in_no_table_of_extraction():
    cells = (cell_of("none", attack="mi"), cell_of("none", attack="benign"))
    rows = grid_rows(cells, uses={one.cell_id: use(one.cell_id) for one in cells})
    assert extraction_table(rows, resampling=RESAMPLING).empty
    assert leaks_table(rows, resampling=RESAMPLING).empty
