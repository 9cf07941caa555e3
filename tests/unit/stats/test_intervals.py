"""Intervals of shares of documents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mragaudit.errors import ConfigError, DataError
from mragaudit.stats.intervals import (
    Interval,
    bootstrap,
    bootstrap_cells,
    clopper_pearson,
    clopper_pearson_cells,
    conditional_rate,
    conditional_rates,
    document_rate,
    document_rates,
    wilson,
    wilson_cells,
)

EMPTY = Interval(rate=None, low=None, high=None, method="")
SIDES = ("two", "upper", "lower")
counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@st.composite
def two_counts(draw):
    n = draw(st.integers(1, 400))
    return draw(st.integers(0, n)), draw(st.integers(0, n)), n


def limits(cell):
    return cell.low, cell.high


@pytest.mark.parametrize(
    ("k", "n", "side", "low", "high"),
    [
        (0, 40, "upper", 0.0, 0.0634),
        (0, 40, "two", 0.0, 0.0876),
        (7, 40, "two", 0.0875, 0.3195),
        (15, 17, "two", 0.6566, 0.9671),
        (4, 4, "lower", 0.5965, 1.0),
    ],
)
def test_wilson_gives_the_hand_values(k, n, side, low, high):
    assert limits(wilson(k, n, side=side)) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("k", "n", "side", "low", "high"),
    [
        (53, 150, "two", 0.2771, 0.4355),
        (0, 150, "two", 0.0, 0.0243),
        (10, 10, "lower", 0.7411, 1.0),
        (0, 10, "upper", 0.0, 0.2589),
    ],
)
def test_clopper_pearson_gives_the_hand_values(k, n, side, low, high):
    assert limits(clopper_pearson(k, n, side=side)) == pytest.approx((low, high), abs=5e-5)


def test_one_sided_wilson_at_zero_is_z_squared_over_n_plus_z_squared():
    z = 1.6448536269514722
    assert wilson(0, 40, side="upper").high == pytest.approx(z * z / (40 + z * z), rel=1e-12)


def test_one_sided_wilson_off_the_ends_uses_the_one_sided_z():
    z = 1.6448536269514722
    centre, spread = (7 + z * z / 2) / (40 + z * z), z / (40 + z * z) * np.sqrt(7 * 33 / 40 + z * z / 4)
    assert limits(wilson(7, 40, side="upper")) == pytest.approx((0.0, centre + spread), rel=1e-12)
    assert limits(wilson(7, 40, side="lower")) == pytest.approx((centre - spread, 1.0), rel=1e-12)


def test_the_document_bootstrap_gives_binomial_quantiles():
    assert limits(bootstrap(35, 40)) == (0.775, 0.975)


def test_the_document_bootstrap_agrees_with_explicit_resampling_within_one_document():
    generator = np.random.default_rng(7)
    outcome = np.arange(100) < 23
    drawn = outcome[generator.integers(0, 100, size=(5000, 100))].mean(axis=1)
    cell = bootstrap(23, 100)
    assert np.abs(np.quantile(drawn, [0.025, 0.975]) - np.array(limits(cell))).max() <= 0.01 + 1e-12


@pytest.mark.parametrize(
    ("function", "method"),
    [
        (lambda k, n: wilson(k, n, side="two"), "wilson_two_sided"),
        (lambda k, n: wilson(k, n, side="upper"), "wilson_one_sided_upper"),
        (lambda k, n: wilson(k, n, side="lower"), "wilson_one_sided_lower"),
        (lambda k, n: clopper_pearson(k, n, side="two"), "clopper_pearson"),
        (bootstrap, "bootstrap_document"),
        (document_rate, "bootstrap_document"),
        (conditional_rate, "wilson_two_sided"),
    ],
)
def test_an_interval_names_its_method_and_an_empty_cell_names_none(function, method):
    assert (function(1, 2).rate, function(1, 2).method) == (0.5, method)
    assert function(0, 0) == EMPTY


def test_an_empty_cell_is_not_degenerate():
    assert not EMPTY.degenerate


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (0, 40, (0.0, 0.0, 0.0634, "wilson_one_sided_upper")),
        (4, 4, (1.0, 0.5965, 1.0, "wilson_one_sided_lower")),
        (0, 1, (0.0, 0.0, 0.7301, "wilson_one_sided_upper")),
        (1, 1, (1.0, 0.2699, 1.0, "wilson_one_sided_lower")),
        (1, 2, (0.5, 0.0, 1.0, "bootstrap_document")),
        (35, 40, (0.875, 0.775, 0.975, "bootstrap_document")),
    ],
)
def test_a_document_rate_follows_the_published_convention(k, n, expected):
    cell = document_rate(k, n)
    assert (cell.rate, cell.low, cell.high) == pytest.approx(expected[:3], abs=5e-5)
    assert cell.method == expected[3]


def test_a_conditional_rate_is_two_sided_at_the_ends_too():
    assert limits(conditional_rate(0, 40)) == pytest.approx((0.0, 0.0876), abs=5e-5)


@pytest.mark.parametrize("cells", [document_rates, conditional_rates, bootstrap_cells])
def test_arrays_give_what_the_cells_give_one_by_one(cells):
    k, n = [0, 0, 3, 5, 1], [0, 5, 5, 5, 1]
    together = cells(k, n)
    assert len(together) == 5
    assert together.records() == [cells(a, b).at(0) for a, b in zip(k, n, strict=True)]


def test_arrays_hold_nan_and_no_method_where_a_cell_is_empty():
    cells = document_rates([0, 1], [0, 2])
    assert np.isnan([cells.rate[0], cells.low[0], cells.high[0]]).all()
    assert cells.method.tolist() == ["", "bootstrap_document"]


def test_no_cells_give_no_intervals():
    assert document_rates([], []).records() == []


@given(cell=counts, side=st.sampled_from(SIDES))
def test_limits_enclose_the_rate_within_zero_and_one(cell, side):
    for interval in (
        wilson(*cell, side=side),
        clopper_pearson(*cell, side=side),
        bootstrap(*cell),
        document_rate(*cell),
    ):
        assert 0.0 <= interval.low <= interval.rate <= interval.high <= 1.0


@given(cell=counts)
def test_limits_are_exact_at_the_ends(cell):
    n = cell[1]
    for function in (wilson, clopper_pearson):
        assert function(0, n, side="two").low == 0.0
        assert function(n, n, side="two").high == 1.0
        assert 0.0 < function(0, n, side="two").high < 1.0


@given(cells=two_counts(), side=st.sampled_from(SIDES))
def test_limits_never_fall_when_k_rises(cells, side):
    few, many, n = min(cells[:2]), max(cells[:2]), cells[2]
    for function in (wilson_cells, clopper_pearson_cells):
        found = function([few, many], [n, n], side=side)
        assert found.low[0] <= found.low[1]
        assert found.high[0] <= found.high[1]
    found = bootstrap_cells([few, many], [n, n])
    assert found.low[0] <= found.low[1]
    assert found.high[0] <= found.high[1]


@given(cell=counts)
def test_counting_failures_mirrors_the_limits(cell):
    k, n = cell
    mirrored = {"two": "two", "upper": "lower", "lower": "upper"}
    for side, other in mirrored.items():
        for function in (wilson, clopper_pearson):
            found, mirror = function(k, n, side=side), function(n - k, n, side=other)
            assert limits(found) == pytest.approx((1 - mirror.high, 1 - mirror.low), abs=1e-12)
    assert limits(bootstrap(k, n)) == pytest.approx(
        (1 - bootstrap(n - k, n).high, 1 - bootstrap(n - k, n).low), abs=1e-12
    )


@given(cell=counts)
def test_a_higher_confidence_never_narrows_the_limits(cell):
    for function in (wilson, clopper_pearson):
        narrow, wide = (
            function(*cell, side="two", confidence=0.9),
            function(*cell, side="two", confidence=0.99),
        )
        assert wide.low <= narrow.low <= narrow.high <= wide.high


@pytest.mark.parametrize(("k", "n"), [(3, 2), (-1, 2), (0.5, 2), (0, -1), (0, float("nan"))])
def test_impossible_counts_are_refused_with_the_cell_named(k, n):
    with pytest.raises(DataError, match="cell 1 has k = "):
        document_rates([1, k], [2, n])


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_outside_zero_and_one_is_refused(confidence):
    with pytest.raises(ConfigError, match="strictly between 0 and 1"):
        wilson(1, 2, side="two", confidence=confidence)


def test_an_unknown_side_is_refused_by_name():
    with pytest.raises(ConfigError, match='got "one"'):
        wilson(1, 2, side="one")
