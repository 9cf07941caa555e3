"""Fisher's exact test."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mragaudit.errors import DataError
from mragaudit.stats.exact import fisher_exact

cell = st.integers(0, 12)


def two_sided_in_whole_numbers(table):
    (a, b), (c, d) = table
    rows, hits = (a + b, c + d), a + c
    ways = [comb(rows[0], x) * comb(rows[1], hits - x) if x <= hits else 0 for x in range(rows[0] + 1)]
    return sum(way for way in ways if way <= ways[a]) / comb(sum(rows), hits)


def test_a_symmetric_table_counts_its_mirror_image():
    assert fisher_exact([[4, 6], [6, 4]], alternative="two-sided") == pytest.approx(0.6562817987, abs=1e-10)


def test_a_far_tail_keeps_its_digits():
    assert fisher_exact([[53, 97], [0, 150]], alternative="greater") == pytest.approx(4.06e-19, rel=2e-3)


def test_the_other_side_of_a_far_tail_is_one():
    assert fisher_exact([[53, 97], [0, 150]], alternative="less") == pytest.approx(1.0, abs=1e-12)


def test_one_document_a_row_is_never_significant():
    assert fisher_exact([[1, 0], [0, 1]], alternative="greater") == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("table", [[[0, 0], [3, 4]], [[0, 5], [0, 4]], [[0, 0], [0, 0]]])
def test_an_empty_row_or_column_gives_one(table):
    assert fisher_exact(table, alternative="two-sided") == 1.0


@given(a=cell, b=cell, c=cell, d=cell)
def test_two_sided_equals_the_sum_in_whole_numbers(a, b, c, d):
    table = [[a, b], [c, d]]
    assert fisher_exact(table, alternative="two-sided") == pytest.approx(two_sided_in_whole_numbers(table), rel=1e-9)


@pytest.mark.parametrize("table", [[[1, 2]], [[1, -1], [0, 2]], [[0.5, 1.0], [1.0, 1.0]]])
def test_what_is_no_table_of_counts_is_refused(table):
    with pytest.raises(DataError, match="2 x 2 whole numbers"):
        fisher_exact(table, alternative="less")


def test_an_unknown_alternative_is_refused_by_name():
    with pytest.raises(DataError, match='got "both"'):
        fisher_exact([[1, 2], [3, 4]], alternative="both")
