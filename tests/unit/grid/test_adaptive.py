"""Best of a family of attacks, chosen on development seeds and measured on others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mragaudit.errors import ConfigError, DataError
from mragaudit.grid.adaptive import Contest, attack_runs, best_of_family
from mragaudit.records.grid import Cell, ItemOutcome


def cell(attack, seed, *, arm="pad", budget=8, mode="targeted_queries", same_as=None):
    return Cell(
        cell_id=f"{attack}-{arm}-{seed}-{mode}",
        purpose="grid",
        corpus="email",
        realisation=f"email.s{seed}",
        seed=seed,
        mode=mode,
        arm=arm,
        attack=attack,
        budget=budget,
        same_as=same_as,
    )


def outcomes(cell_id, *, exact=0, derived=0, context=0, unknown=0, n=10):
    return [
        ItemOutcome(
            cell_id=cell_id,
            doc_id=f"d{i}",
            kind="email",
            value=f"item {i}",
            canary=False,
            planted=True,
            retrieved=True,
            in_context=i < context,
            exact=i < exact,
            normalised=i < exact,
            derived=exact <= i < exact + derived,
            not_evaluated="timeout" if i >= n - unknown else None,
        )
        for i in range(n)
    ]


def rows_of(found, contest, *, arm="pad"):
    """`found` is attack → the items found in seeds 1, 2, 3, …, as keywords of `outcomes`."""
    cells = [cell(attack, seed, arm=arm) for attack, seeds in found.items() for seed in range(1, len(seeds) + 1)]
    given = [spec for seeds in found.values() for spec in seeds]
    rows = [row for one, spec in zip(cells, given, strict=True) for row in outcomes(one.cell_id, **spec)]
    return best_of_family(attack_runs(cells, rows), contest)


CONTEST = Contest(
    family=("repeat_union", "encoding_round_trip"),
    fixed="ps",
    budget=8,
    development_seeds=(1, 2),
    test_seeds=(3, 4),
)


def counts(*exact):
    return [{"exact": number, "context": 9} for number in exact]


def test_the_best_on_development_seeds_is_measured_on_the_other_seeds():
    found = {
        "ps": counts(1, 1, 1, 2),
        "repeat_union": counts(2, 2, 10, 10),
        "encoding_round_trip": counts(4, 5, 3, 6),
    }
    (row,) = rows_of(found, CONTEST)
    assert row.chosen == "encoding_round_trip"
    assert (row.lower_bound.k, row.lower_bound.n, row.lower_bound.interval) == (9, 20, "clopper_pearson")
    assert (row.upper_bound.k, row.upper_bound.n) == (18, 20)
    assert (row.fixed_share.k, row.fixed_share.n) == (3, 20)
    assert row.lift_by_seed == pytest.approx((0.2, 0.4))
    assert row.lift == pytest.approx(0.3)
    assert (row.p_value, row.least_p) == (0.25, 0.25)


def test_what_the_attacker_decoded_counts_as_recovered():
    found = {
        "ps": counts(1, 1, 1, 1),
        "repeat_union": counts(1, 1, 1, 1),
        "encoding_round_trip": [{"derived": 3}] * 4,
    }
    (row,) = rows_of(found, CONTEST)
    assert (row.chosen, row.lower_bound.k) == ("encoding_round_trip", 6)


def test_of_equally_good_attacks_the_first_of_the_family_is_chosen():
    found = {"ps": counts(0, 0, 0, 0), "encoding_round_trip": counts(3, 1, 9, 9), "repeat_union": counts(2, 2, 1, 1)}
    (row,) = rows_of(found, CONTEST)
    assert row.chosen == "repeat_union"


def test_items_that_were_not_evaluated_leave_the_shares():
    found = {"ps": counts(0, 0, 0, 0), "repeat_union": [{"exact": 4, "unknown": 2}] * 4}
    (row,) = rows_of(found, CONTEST)
    assert (row.lower_bound.k, row.lower_bound.n, row.lower_bound.not_evaluated) == (8, 16, 4)
    assert row.lift_by_seed == (0.5, 0.5)


def test_an_attack_without_an_evaluated_item_in_a_seed_cannot_be_chosen():
    found = {
        "ps": counts(0, 0, 0, 0),
        "repeat_union": [{"exact": 9}, {"exact": 9}, {"unknown": 10}, {"exact": 9}],
        "encoding_round_trip": counts(1, 1, 1, 1),
    }
    (row,) = rows_of(found, CONTEST)
    assert row.chosen == "encoding_round_trip"


def test_without_any_attack_on_every_seed_there_is_no_number_but_a_reason():
    (row,) = rows_of({"ps": counts(1, 1, 1, 1), "repeat_union": counts(5, 5, 5)}, CONTEST)
    assert (row.chosen, row.lower_bound, row.lift) == (None, None, None)
    assert row.reason == "no attack of the family was evaluated on every seed"


def test_without_the_fixed_attack_there_is_a_lower_bound_and_no_lift():
    (row,) = rows_of({"repeat_union": counts(5, 5, 5, 5)}, CONTEST)
    assert (row.lower_bound.k, row.lift, row.fixed_share, row.p_value) == (10, None, None, None)
    assert row.reason == "the fixed attack ps was not evaluated on every test seed"


def test_attacks_of_another_budget_are_not_compared():
    cells = [cell("ps", 1), cell("repeat_union", 1, budget=50)]
    with pytest.raises(
        DataError, match="repeat_union on email under pad, seed 1: 50 target calls, where 8 are compared"
    ):
        best_of_family(attack_runs(cells, []), CONTEST)


def test_arms_are_judged_each_for_itself():
    cells = [
        cell(attack, seed, arm=arm)
        for arm in ("pad", "none")
        for attack in ("ps", "repeat_union")
        for seed in range(1, 5)
    ]
    rows = [row for one in cells for row in outcomes(one.cell_id, exact=5 if one.arm == "none" else 2)]
    none, pad = best_of_family(attack_runs(cells, rows), CONTEST)
    assert (none.arm, none.lower_bound.k, pad.arm, pad.lower_bound.k) == ("none", 10, "pad", 4)


def test_a_cell_that_is_the_same_as_another_has_its_outcomes():
    cells = [cell("ps", 1, arm="lprag@1"), cell("ps", 1, arm="lprag@5", same_as="ps-lprag@1-1-targeted_queries")]
    one, five = attack_runs(cells, outcomes(cells[0].cell_id, exact=3))
    assert (one.outcomes, len(five.outcomes)) == (five.outcomes, 10)


def test_never_planted_items_are_left_out():
    rows = outcomes("ps-pad-1-targeted_queries", exact=1)
    (run,) = attack_runs([cell("ps", 1)], rows)
    assert len(run.outcomes) == 10
    held_out = [
        ItemOutcome(**{**{f: getattr(row, f) for f in row.__struct_fields__}, "planted": False}) for row in rows
    ]
    (run,) = attack_runs([cell("ps", 1)], held_out)
    assert run.outcomes == ()


def test_cells_of_two_modes_are_not_mixed():
    cells = [cell("ps", 1), cell("ps", 1, mode="in_domain_queries")]
    with pytest.raises(DataError, match="compare cells of one mode"):
        attack_runs(cells, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"development_seeds": (1,)}, "an attack is chosen on at least 2 seeds"),
        ({"development_seeds": (1, 1)}, "an attack is chosen on at least 2 seeds"),
        ({"test_seeds": (2, 3)}, "none of the development seeds"),
        ({"test_seeds": ()}, "there has to be at least one"),
        ({"family": ()}, "a family of attacks needs at least one member"),
    ],
)
def test_a_contest_needs_development_seeds_that_are_no_test_seeds(change, message):
    fields = {name: getattr(CONTEST, name) for name in Contest.__slots__}
    with pytest.raises(ConfigError, match=message):
        Contest(**{**fields, **change})


def test_limits_are_of_the_level_of_the_contest():
    found = {"ps": counts(0, 0, 0, 0), "repeat_union": counts(0, 0, 0, 0), "encoding_round_trip": counts(0, 0, 0, 0)}
    (row,) = rows_of(found, replace(CONTEST, confidence=0.9))
    highest = 1 - 0.05 ** (1 / 20)
    assert (row.lower_bound.high, row.fixed_share.high) == pytest.approx((highest, highest))
