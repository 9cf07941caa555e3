"""Exact tests over seeds as cells of a row: the unit is a realisation, so that they speak of the generator.

Intervals within a run do not. With fewer than two seeds on either side there is no test, and the cells stay empty.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from mragaudit.stats.multiplicity import holm_adjust
from mragaudit.stats.permutation import MIN_SEEDS, Alternative, compare_arms
from mragaudit.tables.frames import Row

SEED_COLUMNS = ("seed_difference", "seed_p", "seed_p_holm", "seed_least_p", "seed_p_method")
SEED_TEST = "exact_permutation_of_seeds"
SEED_TEST_TWO_SIDED = "exact_permutation_of_seeds_two_sided"
METHODS: dict[Alternative, str] = {"greater": SEED_TEST, "two-sided": SEED_TEST_TWO_SIDED}


def seed_cells(
    before: Iterable[float | None], after: Iterable[float | None], *, alternative: Alternative = "two-sided"
) -> Row:
    """Return difference (after minus before), p, least p and method; nothing where a side has too few known seeds.

    One value a seed, None where it is unknown. `greater` tests that what was there before has become less.
    """
    first, second = ([value for value in side if value is not None] for side in (before, after))
    if min(len(first), len(second)) < MIN_SEEDS:
        return {}
    found = compare_arms(first, second, alternative=alternative)
    return {
        "seed_difference": -found.difference,
        "seed_p": found.p_value,
        "seed_least_p": found.least_p,
        "seed_p_method": METHODS[alternative],
    }


def holm_within(rows: Sequence[Row], *, family: Sequence[Hashable]) -> list[Row]:
    """Return the rows with `seed_p_holm`: Holm's correction over the tests of each family, given row by row."""
    places: dict[Hashable, list[int]] = {}
    for at, (row, name) in enumerate(zip(rows, family, strict=True)):
        if "seed_p" in row:
            places.setdefault(name, []).append(at)
    corrected: dict[int, float] = {}
    for found in places.values():
        corrected |= dict(zip(found, holm_adjust([rows[at]["seed_p"] for at in found]).tolist(), strict=True))
    return [{**row, "seed_p_holm": corrected.get(at)} for at, row in enumerate(rows)]
