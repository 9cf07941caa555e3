"""Effects: the same units with and without a defense, unknown ones left out, alike arms recognised."""

import msgspec
import pytest
from grid_rows import cell_of, grid_rows, item, use
from small_grid import cell

from mragaudit.grid.effects import difference_of, effect_seed_tests, grid_effects
from mragaudit.grid.resampling import Resampling
from mragaudit.grid.units import units_of
from mragaudit.hookaudit.attacks import shipped_attacks
from mragaudit.records.grid import CandidateScore, NelCount

RESAMPLING = Resampling(seed=1, resamples=500, confidence=0.95)


def effects(rows):
    return {effect.metric: effect for effect in grid_effects(rows, shipped_attacks(), resampling=RESAMPLING)}


def two_arms(before, after, **changes):
    cells = (cell(cell_id="a", arm="none"), cell(cell_id="b", arm="pad"))
    items = {
        "a": [item(number, cell_id="a", exact=found) for number, found in enumerate(before)],
        "b": [item(number, cell_id="b", exact=found) for number, found in enumerate(after)],
    }
    uses = {name: use(name, **changes.get(name, {})) for name in ("a", "b")}
    return grid_rows(cells, uses=uses, items=items)


def test_the_difference_is_defended_minus_undefended_over_documents():
    arms = two_arms([True] * 8 + [False] * 2, [True] * 2 + [False] * 8, b={"replies_digest": "other"})
    found = effects(arms)["verbatim_leak"]
    assert (found.baseline, found.defended, round(found.difference, 6), found.n) == (0.8, 0.2, -0.6, 10)
    assert found.ci_method == "bootstrap_paired"
    assert found.ci_high < 0


def test_a_document_that_is_unknown_in_one_arm_is_left_out_and_counted():
    rows = two_arms([True, True, False], [True, False, False])
    lost = item(1, cell_id="b", exact=False, not_evaluated="HTTP 503")
    rows.items["b"][1] = lost
    found = effects(rows)["verbatim_leak"]
    assert (found.n, found.n_not_evaluated) == (2, 1)


def test_arms_with_the_same_replies_are_identical():
    same = effects(two_arms([True, False], [True, False]))["verbatim_leak"]
    other = effects(two_arms([True, False], [True, False], b={"replies_digest": "other"}))["verbatim_leak"]
    assert (same.identical, other.identical) == (True, False)


def test_a_leak_in_a_derived_text_counts_for_the_attacker():
    rows = two_arms([False], [False])
    rows.items["b"][0] = item(0, cell_id="b", exact=False, derived=True)
    assert units_of("verbatim_leak", [rows.cells[1]], rows) == {"email.s1/d0": 1.0}


def test_never_planted_items_are_no_units():
    rows = two_arms([True], [True])
    rows.items["a"].append(item(9, cell_id="a", planted=False, exact=False))
    assert list(units_of("verbatim_leak", [rows.cells[0]], rows)) == ["email.s1/d0"]


def test_no_pairs_have_no_difference():
    assert difference_of([], [], resampling=RESAMPLING).rate is None


def test_counts_are_compared_by_their_mean():
    interval = difference_of([2.0, 3.0, 4.0], [1.0, 1.0, 1.0], resampling=RESAMPLING)
    assert (interval.rate, interval.method) == (-2.0, "bootstrap_paired")


def test_effects_are_tested_over_seeds_two_sided():
    cells = tuple(cell_of(arm, seed=seed) for arm in ("none", "pad") for seed in range(1, 6))
    items = {
        one.cell_id: [item(n, cell_id=one.cell_id, exact=one.arm == "pad" or n == 0) for n in range(2)] for one in cells
    }
    rows = grid_rows(cells, uses={one.cell_id: use(one.cell_id) for one in cells}, items=items)
    tests = effect_seed_tests(rows, shipped_attacks())
    found = tests["pad", "ps", "verbatim_leak", "grid email targeted_queries"]
    assert (found["seed_difference"], found["seed_p"]) == (0.5, pytest.approx(2 / 252))


def test_the_auc_is_tested_over_seeds_without_those_whose_split_is_rejected():
    rows = membership_arms(seeds=(1, 2, 3))
    key = ("pad", "mi", "mi_auc", "grid email targeted_queries")
    assert effect_seed_tests(rows, shipped_attacks())[key]["seed_least_p"] == pytest.approx(2 / 20)
    rejected = {"email.s1"}
    found = effect_seed_tests(rows, shipped_attacks(), rejected=rejected)[key]
    assert (found["seed_difference"], found["seed_least_p"]) == (-0.5, pytest.approx(2 / 6))
    assert effect_seed_tests(rows, shipped_attacks(), rejected={"email.s1", "email.s2"})[key] == {}


def test_limits_of_a_metric_whose_unit_is_a_call_say_so():
    cells = (cell_of("none"), cell_of("pad"))
    counts = [(0, 2), (1, 1), (3, 0)]
    nel = {
        one.cell_id: [
            NelCount(cell_id=one.cell_id, number=n, item_type="EMAIL_REAL", n_items=pair[at], strict=True)
            for n, pair in enumerate(counts, start=1)
        ]
        for at, one in enumerate(cells)
    }
    uses = {one.cell_id: use(one.cell_id, replies_digest=one.arm) for one in cells}
    found = effects(grid_rows(cells, uses=uses, nel=nel))["nel_strict.email"]
    assert (found.n, found.ci_method) == (3, "bootstrap_paired_calls")


def membership_arms(*, seeds=(1,)):
    cells = tuple(cell_of(arm, attack="mi", seed=seed) for arm in ("none", "pad") for seed in seeds)
    scores = {
        one.cell_id: [
            CandidateScore(
                cell_id=one.cell_id,
                doc_id=f"d{n}",
                member=n < 4,
                score=float(n < 4) if one.arm == "none" else float(n % 2),
                control_score=None,
                retrieved=True if n < 4 else None,
            )
            for n in range(8)
        ]
        for one in cells
    }
    return grid_rows(cells, uses={one.cell_id: use(one.cell_id) for one in cells}, candidates=scores)


def test_the_auc_of_membership_is_compared_on_the_same_candidates():
    found = effects(membership_arms())["mi_auc"]
    assert (found.baseline, found.defended, found.difference, found.n) == (1.0, 0.5, -0.5, 8)


def test_without_a_scored_member_no_candidate_is_evaluated():
    rows = membership_arms()
    for name, scores in rows.candidates.items():
        rows.candidates[name] = [msgspec.structs.replace(row, score=None) if row.member else row for row in scores]
    found = effects(rows)["mi_auc"]
    assert (found.n, found.n_not_evaluated, found.difference) == (0, 8, None)


def test_a_rejected_split_has_no_effect_on_the_auc_and_still_one_on_retrieval():
    made = grid_effects(membership_arms(), shipped_attacks(), resampling=RESAMPLING, rejected={"email.s1"})
    found = {effect.metric: effect for effect in made}
    assert (found["mi_auc"].n, found["mi_auc"].n_not_evaluated, found["mi_auc"].difference) == (0, 8, None)
    assert found["recall_at_k"].n == 4


def test_what_was_found_beside_a_lost_call_is_no_unit():
    rows = two_arms([True, False], [True, False])
    rows.items["b"] = [item(n, cell_id="b", exact=n == 0, not_evaluated="HTTP 503") for n in range(2)]
    found = effects(rows)["verbatim_leak"]
    assert (found.n, found.n_not_evaluated, found.difference) == (0, 2, None)
