"""Holm adjustment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mragaudit.errors import DataError
from mragaudit.stats.multiplicity import holm_adjust

families = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def test_holm_gives_the_hand_worked_values_in_the_order_given():
    # Sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04, made monotone .02 .03 .06 .06.
    assert holm_adjust([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], rel=1e-12)


def test_holm_gives_ties_one_value():
    assert holm_adjust([0.02, 0.01, 0.01]) == pytest.approx([0.03, 0.03, 0.03], rel=1e-12)


def test_holm_clips_at_one():
    assert holm_adjust([0.6, 0.7]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("given_p", "expected"), [([], []), ([0.3], [0.3]), ([0.5, 0.1], [0.5, 0.2])])
def test_holm_handles_none_one_and_two_tests(given_p, expected):
    assert holm_adjust(given_p).tolist() == expected


@given(family=families, seed=st.integers(0, 1000))
def test_holm_does_not_depend_on_the_order_of_tests(family, seed):
    order = np.random.default_rng(seed).permutation(len(family))
    assert holm_adjust(np.array(family)[order]).tolist() == holm_adjust(family)[order].tolist()


@given(family=families)
def test_holm_never_lowers_a_p_value_nor_swaps_two(family):
    adjusted = holm_adjust(family)
    assert (adjusted >= np.array(family)).all()
    assert (np.diff(adjusted[np.argsort(family)]) >= 0).all()


@pytest.mark.parametrize("family", [[0.5, float("nan")], [-0.1], [1.1], [[0.1]]])
def test_holm_refuses_what_is_no_family_of_p_values(family):
    with pytest.raises(DataError, match="one vector of p-values"):
        holm_adjust(family)
