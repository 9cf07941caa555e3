"""Signed AUC of membership inference, its folded form, and true positive rates."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mragaudit.errors import ConfigError
from mragaudit.stats.auc import auc_difference, folded_auc, hanley_mcneil_error, pairwise_auc, true_positive_rate


def generator(seed=3):
    return np.random.default_rng(seed)


def signed(members, others, **options):
    return pairwise_auc(members, others, generator=generator(), **options)


def test_three_of_four_pairs_and_a_tie_give_seven_eighths():
    assert signed([3.0, 2.0], [2.0, 0.0]).auc.rate == 0.875


def test_a_score_that_always_says_yes_gives_exactly_one_half():
    found = signed([1.0] * 10, [1.0] * 100)
    assert found.auc.rate == 0.5
    # Clopper-Pearson upper bound of 0 of 10 is 1 - 0.05^(1/10) = 0.2589; half of it on either side.
    assert (found.auc.low, found.auc.high) == pytest.approx((0.37057, 0.62943), abs=1e-5)
    assert found.auc.method == "clopper_pearson_pairs"


def test_a_reversed_score_stays_below_one_half():
    assert signed([0.0, 1.0], [1.0, 2.0]).auc.rate == 0.125


def test_complete_separation_of_ten_members_is_not_taken_for_certainty():
    found = signed(range(100, 110), range(100))
    assert (found.auc.rate, found.auc.high) == (1.0, 1.0)
    assert found.auc.low == pytest.approx(0.7411, abs=1e-4)  # 0.05^(1/10)
    mirrored = signed(range(10), range(100, 200))
    assert (mirrored.auc.rate, mirrored.auc.low) == (0.0, 0.0)
    assert mirrored.auc.high == pytest.approx(0.2589, abs=1e-4)


def test_scores_that_were_not_evaluated_are_counted_apart():
    found = signed([1.0, None, float("nan")], [0.0, None])
    assert (found.n_members, found.members_not_evaluated) == (1, 2)
    assert (found.n_non_members, found.non_members_not_evaluated) == (1, 1)
    assert found.auc.rate == 1.0


@pytest.mark.parametrize(("members", "others"), [([], [1.0]), ([1.0], []), ([None], [1.0]), ([], [])])
def test_an_empty_side_gives_no_auc(members, others):
    found = signed(members, others)
    assert (found.auc.rate, found.auc.low, found.auc.high, found.auc.method) == (None, None, None, "")
    assert found.standard_error is None
    assert folded_auc(members, others, generator=generator()) is None


def test_limits_equal_those_of_all_resamples_of_members_and_of_non_members():
    members, others = [2.0, 0.0, 1.0], [1.0, 0.0]
    values = []
    for first, second in product(product(members, repeat=3), product(others, repeat=2)):
        pairs = [(a > b) + (a == b) / 2 for a in first for b in second]
        values.append(sum(pairs) / len(pairs))
    found = signed(members, others, resamples=60_000)
    assert (found.auc.low, found.auc.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=1e-9)
    assert found.auc.method == "bootstrap_two_sample"


def test_the_bootstrap_is_as_wide_as_hanley_and_mcneil_say():
    members, others = generator(4).exponential(2.4, 50), generator(5).exponential(1.0, 200)
    found = signed(members, others)
    assert (found.auc.high - found.auc.low) / 3.92 == pytest.approx(found.standard_error, rel=0.15)


def test_the_order_of_scores_and_a_monotone_change_of_them_do_not_matter():
    members, others = [3.0, 1.0, 2.0, 2.0], [2.0, 0.0, 1.0]
    assert signed(np.exp(members), np.exp(others)).auc == signed(members, others).auc
    assert signed(members[::-1], others[::-1]).auc.rate == signed(members, others).auc.rate


def test_infinite_scores_are_ranked():
    assert signed([float("inf"), 0.0], [float("-inf"), 1.0]).auc.rate == 0.75


def test_hanley_and_mcneil_give_the_published_error_of_ten_against_a_hundred():
    assert hanley_mcneil_error(0.705, n_members=10, n_non_members=100) == pytest.approx(0.0956, abs=5e-5)


def test_the_folded_auc_of_two_against_two_has_the_null_of_six_arrangements():
    found = folded_auc([4.0, 3.0], [2.0, 1.0], generator=generator())
    assert (found.auc, found.n_arrangements, found.exact) == (1.0, 6, True)
    assert found.p_value == pytest.approx(2 / 6)  # the best and the worst arrangement
    assert found.null_median == 0.75  # 0.5, 0.5, 0.75, 0.75, 1, 1


def test_a_reversed_score_folds_to_its_mirror():
    found = folded_auc([1.0, 2.0], [3.0, 4.0], generator=generator())
    assert (found.auc, found.p_value) == (1.0, pytest.approx(2 / 6))


def test_without_signal_the_folded_auc_lies_above_one_half_and_its_p_says_so():
    scores = generator(8).normal(size=60)
    found = folded_auc(scores[:30], scores[30:], generator=generator())
    assert found.auc >= 0.5
    assert found.null_median > 0.53
    assert found.p_value > 0.05
    assert (found.n_arrangements, found.exact) == (10_000, False)


def test_a_drawn_null_agrees_with_the_exact_one():
    members, others = [5.0, 4.0, 2.0, 6.0], [3.0, 1.0, 0.0, 2.5, 1.5]
    exact = folded_auc(members, others, generator=generator())
    drawn = folded_auc(members, others, generator=generator(), permutations=125)
    assert (exact.exact, drawn.exact) == (True, False)  # 126 arrangements
    many = [folded_auc(members, others, generator=generator(s), permutations=125).p_value for s in range(40)]
    assert np.mean(many) == pytest.approx(exact.p_value, abs=0.02)


def test_a_constant_score_has_the_folded_p_of_one():
    found = folded_auc([1.0] * 3, [1.0] * 3, generator=generator())
    assert (found.auc, found.p_value, found.null_high) == (0.5, 1.0, 0.5)


def test_at_five_percent_one_of_twenty_non_members_may_be_a_false_alarm():
    others = [float(score) for score in range(20)]
    found = true_positive_rate([19.5, 18.5, 17.5, 0.0], others, fpr_share=0.05)
    assert (found.n_found, found.tpr.rate, found.reached_fpr_share) == (2, 0.5, 0.05)
    assert found.tpr.method == "clopper_pearson"


def test_tied_non_members_all_count_or_all_do_not():
    others = [0.0] * 18 + [5.0, 5.0]
    found = true_positive_rate([5.0, 5.0, 6.0, 0.0], others, fpr_share=0.05)
    assert (found.n_found, found.reached_fpr_share) == (1, 0.0)


def test_a_score_that_always_says_yes_finds_no_member_at_a_bounded_rate():
    found = true_positive_rate([1.0] * 5, [1.0] * 20, fpr_share=0.05)
    assert (found.n_found, found.tpr.rate, found.reached_fpr_share) == (0, 0.0, 0.0)


def test_an_infinite_score_of_everybody_finds_nobody():
    assert true_positive_rate([float("inf")], [float("inf")] * 20, fpr_share=0.05).n_found == 0


@pytest.mark.parametrize(("n_others", "share", "needed"), [(99, 0.01, 100), (19, 0.05, 20)])
def test_too_few_non_members_give_no_rate_and_the_reason(n_others, share, needed):
    found = true_positive_rate([1.0], [0.0] * n_others, fpr_share=share)
    assert (found.tpr.rate, found.n_found) == (None, None)
    assert found.reason == f"{n_others} non-members have a score, {share:g} needs at least {needed}"
    assert true_positive_rate([1.0], [0.0] * needed, fpr_share=share).n_found == 1


def test_no_evaluated_member_gives_no_rate():
    assert true_positive_rate([None], [0.0] * 20, fpr_share=0.05).reason == "no member has a score"


def test_no_resamples_are_refused():
    with pytest.raises(ConfigError, match="resamples must be at least 1"):
        signed([1.0, 2.0], [1.5], resamples=0)


def difference(members, others):
    return auc_difference(members, others, generator=generator())


def test_a_difference_of_aucs_is_taken_on_the_same_documents():
    found = difference([(3.0, 0.0), (1.0, 3.0), (9.0, None)], [(2.0, 1.0), (0.0, 2.0)])
    assert found.rate == 0.75 - 0.5
    assert found.method == "bootstrap_two_sample"


def test_a_difference_keeps_both_scores_of_a_document_together():
    scores = generator(6).normal(size=(60, 1)) + generator(7).normal(scale=0.01, size=(60, 2))
    paired = difference([tuple(row + 0.5) for row in scores[:30]], [tuple(row) for row in scores[30:]])
    assert paired.high - paired.low < 0.05  # each AUC alone has limits 0.28 apart


def test_scores_that_do_not_differ_have_no_difference_and_limits_of_disjoint_pairs():
    found = difference([(1.0, 1.0)] * 10, [(0.0, 0.0)] * 100)
    assert (found.rate, found.method) == (0.0, "clopper_pearson_pairs")
    assert (found.low, found.high) == pytest.approx((-0.2589, 0.2589), abs=1e-4)


@pytest.mark.parametrize(("members", "others"), [([], [(1.0, 1.0)]), ([(None, 1.0)], [(1.0, 1.0)])])
def test_a_difference_without_documents_on_a_side_is_empty(members, others):
    assert difference(members, others).rate is None
