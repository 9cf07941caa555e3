"""Document bootstrap of shares over clustered trials."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mragaudit.errors import ConfigError, DataError
from mragaudit.stats import bootstrap
from mragaudit.stats.bootstrap import cluster_share, cluster_shares, kind_weights, resample_statistic
from mragaudit.stats.intervals import Interval, document_rate, wilson


def generator():
    return np.random.default_rng(11)


def share(numerator, denominator, **options):
    return cluster_share(numerator, denominator, generator=generator(), **options)


def test_the_rate_is_the_ratio_of_totals_not_the_mean_of_ratios():
    assert share([3, 0], [3, 1]).rate == 0.75


def test_resampled_shares_are_distributed_as_explicit_draws_of_documents():
    sums, trials = [3, 0, 1], [3, 1, 2]
    exact = {}
    for drawn in product(range(3), repeat=3):
        value = Fraction(sum(sums[d] for d in drawn), sum(trials[d] for d in drawn))
        exact[value] = exact.get(value, 0) + Fraction(1, 27)
    kinds = bootstrap.document_kinds(np.array(sums, float), np.array(trials, float))
    shares = bootstrap.resampled_shares(kinds, generator=generator(), resamples=200_000)
    found = {value: float(np.mean(np.isclose(shares, float(value)))) for value in exact}
    assert found == pytest.approx({value: float(chance) for value, chance in exact.items()}, abs=0.005)


def test_limits_equal_those_of_drawn_documents_within_their_monte_carlo_error():
    sums = np.array([0.0, 1.0, 1 / 2, 1 / 3, 1.0] * 20)
    drawn = sums[np.random.default_rng(3).integers(0, 100, size=(20_000, 100))].mean(axis=1)
    cell = share(sums, np.ones(100), resamples=20_000)
    assert (cell.low, cell.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.002)


def test_a_document_drawn_twice_counts_twice():
    weights = np.concatenate(list(kind_weights(np.ones(5, dtype=np.int64), generator=generator(), resamples=400)))
    assert weights.shape == (400, 5)
    assert (weights.sum(axis=1) == 5).all()
    assert weights.max() >= 2


def test_the_size_of_the_chunks_does_not_change_a_draw(monkeypatch):
    count = np.array([4, 1, 7], dtype=np.int64)
    whole = np.concatenate(list(kind_weights(count, generator=generator(), resamples=100)))
    monkeypatch.setattr(bootstrap, "CHUNK_WEIGHTS", 21)
    chunks = list(kind_weights(count, generator=generator(), resamples=100))
    assert max(len(chunk) for chunk in chunks) == 7
    assert np.array_equal(np.concatenate(chunks), whole)


def test_the_order_of_documents_does_not_matter():
    sums, trials = np.array([3, 0, 1, 2, 2, 0]), np.array([3, 3, 2, 3, 3, 1])
    order = np.array([4, 2, 0, 5, 1, 3])
    assert share(sums, trials) == share(sums[order], trials[order])


def test_a_cell_has_the_same_limits_whichever_cells_stand_beside_it():
    sums = np.array([[3, 1], [0, 0], [1, 2]])
    trials = np.array([[3, 2], [3, 2], [2, 2]])
    both = cluster_shares(sums, trials, generator=generator())
    swapped = cluster_shares(sums[:, ::-1], trials[:, ::-1], generator=generator())
    assert both.records() == swapped.records()[::-1]
    assert both.at(1) == share(sums[:, 1], trials[:, 1])


def test_two_seeds_give_two_sets_of_limits_and_one_seed_gives_one():
    sums, trials = np.arange(40.0) / 40, np.ones(40)
    other = cluster_share(sums, trials, generator=np.random.default_rng(12))
    assert share(sums, trials) == share(sums, trials)
    assert share(sums, trials).low != other.low


def test_documents_without_a_trial_do_not_belong_to_the_cell():
    assert share([1, 0, 2, 0], [2, 0, 3, 0]) == share([1, 2], [2, 3])


def test_one_yes_or_no_trial_a_document_takes_the_binomial_quantiles():
    assert share([1] * 35 + [0] * 5, [1] * 40) == document_rate(35, 40)


def test_all_zero_falls_back_to_the_upper_wilson_limit_on_documents_not_trials():
    assert share(np.zeros(40), np.full(40, 3)) == wilson(0, 40, side="upper")


def test_all_success_falls_back_to_the_lower_wilson_limit_on_documents_not_trials():
    assert share(np.full(4, 3), np.full(4, 3)) == wilson(4, 4, side="lower")


def test_equal_shares_between_zero_and_one_fall_back_to_two_sided_wilson_on_documents():
    assert share([1, 2] * 20, [2, 4] * 20) == wilson(20, 40, side="two")


def test_thirds_summed_in_another_way_are_still_equal_shares():
    assert share([1 / 3, 1 / 3 + 1 / 3 + 1 / 3, 2 / 3], [1, 3, 2]).method == "wilson_two_sided"


def test_one_document_has_no_bootstrap():
    cell = share([2], [3])
    assert cell.method == "wilson_two_sided"
    assert (cell.rate, cell.low, cell.high) == pytest.approx((0.6667, 0.0942, 0.9747), abs=5e-5)


def test_two_documents_span_from_one_to_the_other():
    cell = share([1, 2], [2, 2])
    assert (cell.low, cell.high, cell.method) == (0.5, 1.0, "bootstrap_document")


def test_no_documents_give_an_empty_cell():
    empty = Interval(rate=None, low=None, high=None, method="")
    assert share([], []) == empty
    assert share([0, 0], [0, 0]) == empty
    assert cluster_shares(np.empty((0, 2)), np.empty((0, 2)), generator=generator()).records() == [
        empty,
        empty,
    ]


@pytest.mark.parametrize(("sums", "trials"), [([2], [1]), ([-1], [1]), ([float("nan")], [1]), ([1], [float("inf")])])
def test_sums_beyond_their_trials_are_refused(sums, trials):
    with pytest.raises(DataError, match="0 <= numerator <= denominator"):
        share(sums, trials)


def test_unequal_shapes_are_refused():
    with pytest.raises(DataError, match="one shape"):
        share([1, 0], [1])


def test_many_cells_given_as_one_are_refused():
    with pytest.raises(DataError, match="cluster_share takes one cell"):
        share(np.ones((3, 2)), np.ones((3, 2)))


def test_no_resamples_are_refused():
    with pytest.raises(ConfigError, match="at least 1"):
        share([1, 0], [2, 1], resamples=0)


def test_a_drawn_document_that_was_never_observed_is_refused_by_name():
    with pytest.raises(DataError, match='"C"'):
        resample_statistic({"A": 1}, ["A", "C"])


def test_no_draws_have_no_statistic():
    assert resample_statistic({"A": 1}, []) is None
