"""Tests over seeds as cells of a row."""

import pytest

from mragaudit.grid.seed_tests import holm_within, seed_cells


def test_a_rise_counts_as_much_as_a_fall():
    up, down = seed_cells([0.0] * 5, [1.0] * 5), seed_cells([1.0] * 5, [0.0] * 5)
    assert (up["seed_difference"], down["seed_difference"]) == (1.0, -1.0)
    assert up["seed_p"] == down["seed_p"] == pytest.approx(2 / 252)
    assert up["seed_p_method"] == "exact_permutation_of_seeds_two_sided"


def test_one_sided_a_rise_is_no_fall():
    assert seed_cells([0.0] * 5, [1.0] * 5, alternative="greater")["seed_p"] == 1.0


def test_a_side_with_fewer_than_two_known_seeds_has_no_test():
    assert seed_cells([0.5, None, None], [0.1, 0.2, 0.3]) == {}


def test_unknown_seeds_are_left_out():
    assert seed_cells([0.9, None, 0.8], [0.1, 0.2])["seed_least_p"] == pytest.approx(2 / 6)


def test_rows_without_a_test_are_in_no_family():
    rows = [{"seed_p": 0.02}, {}, {"seed_p": 0.03}, {"seed_p": 0.04}]
    found = holm_within(rows, family=["a", "a", "a", "b"])
    assert [row["seed_p_holm"] for row in found] == [0.04, None, 0.04, 0.04]
