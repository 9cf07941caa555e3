"""What the attacks' papers measure, as tables: hand-worked shares, efficiencies, lifts and curves."""

import pandas as pd
import pytest
from grid_rows import cell_of, extraction, grid_rows, item, use

from mragaudit.grid.resampling import Resampling
from mragaudit.grid.success_tables import attack_success_table, extraction_curve_table
from mragaudit.records.grid import CallOutcome, NelCount

RESAMPLING = Resampling(seed=8, resamples=200, confidence=0.95)


def outcome(cell, number, **changes):
    given = {"refused": False, "n_new_retrieved": 0, "n_new_leaking": 0, "context_recall": 0.5, "not_evaluated": None}
    return CallOutcome(cell_id=cell.cell_id, number=number, **{**given, **changes})


def documents(cell, count):
    return [extraction(f"d{number}", cell_id=cell.cell_id) for number in range(count)]


def rows_of(calls, *, items=None, n_documents=4, lost=()):
    """Return rows of cells with their calls, of which those named in `lost` lack a reply."""
    cells = tuple(calls)
    return grid_rows(
        cells,
        uses={one.cell_id: use(one.cell_id, n_not_evaluated=int(one in lost)) for one in cells},
        calls={one.cell_id: found for one, found in calls.items()},
        items={one.cell_id: found for one, found in (items or {}).items()},
        extractions={one.cell_id: documents(one, n_documents) for one in cells},
    )


def success(rows):
    return attack_success_table(rows, k=2, paired={"pm"}, resampling=RESAMPLING).to_dict("records")


PS, PM = cell_of("none"), cell_of("none", attack="pm")


def test_answered_calls_are_those_with_a_reply_that_is_no_refusal():
    calls = [outcome(PS, 1), outcome(PS, 2, refused=True), outcome(PS, 3, not_evaluated="HTTP 503")]
    [row] = success(rows_of({PS: calls}, lost=(PS,)))
    assert (row["n_calls"], row["n_not_evaluated"], row["n_answered"], row["answered_rate"]) == (3, 1, 1, 0.5)
    assert row["answered_ci_method"] == "wilson_two_sided"


def test_efficiency_is_different_documents_of_k_a_call_and_stands_by_seed():
    other = cell_of("none", seed=2)
    calls = {
        PS: [outcome(PS, 1, n_new_retrieved=2), outcome(PS, 2, n_new_retrieved=1)],
        other: [outcome(other, 1, n_new_retrieved=1), outcome(other, 2)],
    }
    [row] = success(rows_of(calls))
    assert (row["n_distinct_retrieved"], row["n_slots"], row["extraction_efficiency"]) == (4, 8, 0.5)
    assert row["efficiency_by_seed"] == "0.750 0.250"


def test_a_run_with_a_lost_call_stands_in_no_efficiency():
    [row] = success(rows_of({PS: [outcome(PS, 1, n_new_retrieved=2)]}, lost=(PS,)))
    assert (row["n_runs_not_evaluated"], row["n_slots"]) == (1, 0)
    assert pd.isna(row["extraction_efficiency"])


def test_the_share_of_context_is_a_mean_over_calls_that_were_answered_from_one():
    calls = [outcome(PS, number, context_recall=value) for number, value in enumerate((0.2, 0.4, None), start=1)]
    [row] = success(rows_of({PS: calls}))
    assert (row["n_recalls"], row["context_recall"]) == (2, pytest.approx(0.3))
    assert row["recall_ci_method"] == "bootstrap_calls"


def leaking(cell, *found):
    return [item(number, cell_id=cell.cell_id, exact=exact) for number, exact in enumerate(found)]


def test_the_lift_is_over_ps_on_the_same_documents():
    calls = {PS: [outcome(PS, 1)], PM: [outcome(PM, 1)]}
    items = {PS: leaking(PS, True, False, False, False), PM: leaking(PM, True, True, True, False)}
    found = {row["attack"]: row for row in success(rows_of(calls, items=items))}
    assert (found["pm"]["lift"], found["pm"]["n_lift"], found["pm"]["n_lift_not_evaluated"]) == (0.5, 4, 0)
    assert found["pm"]["lift_ci_method"] == "bootstrap_paired"
    assert pd.isna(found["ps"]["lift"])


def test_another_budget_than_that_of_ps_has_no_lift():
    more = cell_of("none", attack="pm", budget=9)
    calls = {PS: [outcome(PS, 1)], more: [outcome(more, 1)]}
    items = {PS: leaking(PS, False), more: leaking(more, True)}
    found = {row["attack"]: row for row in success(rows_of(calls, items=items))}
    assert pd.isna(found["pm"]["lift"])


def test_an_attack_of_variants_is_paired_with_ps_question_by_question():
    other = cell_of("none", attack="ikea")
    counts = {PS: (0, 2, 1), PM: (1, 2, 3), other: (9, 9, 9)}
    rows = grid_rows(
        tuple(counts),
        uses={
            one.cell_id: use(one.cell_id, n_not_evaluated=int(one is PM), lost_calls=(3,) if one is PM else ())
            for one in counts
        },
        nel={
            one.cell_id: [
                NelCount(cell_id=one.cell_id, number=n, item_type="PERSON_NAME", n_items=many, strict=True)
                for n, many in enumerate(found, start=1)
            ]
            for one, found in counts.items()
        },
    )
    found = {row["attack"]: row for row in success(rows)}
    assert (found["pm"]["paired_lift"], found["pm"]["n_paired_lift"]) == (0.5, 2)
    assert (found["pm"]["n_paired_lift_not_evaluated"], found["pm"]["paired_lift_ci_method"]) == (
        1,
        "bootstrap_paired_calls",
    )
    assert pd.isna(found["ikea"]["paired_lift"])


def curve(rows):
    return extraction_curve_table(rows, resampling=RESAMPLING).to_dict("records")


def test_a_curve_adds_up_what_each_call_brought_and_goes_on_to_the_budget():
    calls = [outcome(PS, 1, n_new_retrieved=2, n_new_leaking=1), outcome(PS, 2, n_new_retrieved=1)]
    found = curve(rows_of({PS: calls}, items={PS: leaking(PS, True, False)}))
    assert [row["after_calls"] for row in found] == [1, 2, 3]
    assert [row["retrieved_rate"] for row in found] == [0.5, 0.75, 0.75]
    assert [row["rate"] for row in found] == [0.5, 0.5, 0.5]


def test_documents_without_planted_items_are_not_evaluated_for_leaks():
    [first, *_] = curve(rows_of({PS: [outcome(PS, 1, n_new_retrieved=1)]}))
    assert (first["n_documents"], first["n_with_items"], first["retrieved_rate"]) == (4, 0, 0.25)
    assert pd.isna(first["rate"])
    assert first["ci_method"] == ""


def test_runs_with_a_lost_call_are_left_out_of_a_curve_and_counted():
    [first, *_] = curve(rows_of({PS: [outcome(PS, 1)]}, lost=(PS,)))
    assert (first["n_runs"], first["n_runs_not_evaluated"], first["n_documents"]) == (0, 1, 0)
    assert pd.isna(first["retrieved_rate"])
