"""The three defenses on retrieval scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mragaudit.defenses.ca_dp import CompositionAwareDp, advanced_total, split_budget
from mragaudit.defenses.dp_r import DpRetrieval
from mragaudit.defenses.private_rag import PrivateRagFilter, public_threshold
from mragaudit.errors import ConfigError
from mragaudit.rag.hooks import REFUSED_SCORE, Turn

SCORES = np.linspace(0.05, 0.95, 30)


def turn(seed: int = 0, *, principal: str = "p", session: str = "s") -> Turn:
    return Turn(principal=principal, session=session, rng=np.random.default_rng(seed))


# DP-R
@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "share"), [(1.0, 1, 0.1562), (5.0, 1, 0.6476), (1.0, 2, 0.1251), (5.0, 2, 0.2978)]
)
def test_dp_r_retrieves_the_target_as_often_as_the_reference_simulation_says(epsilon, sensitivity, share):
    draws, rng = 100_000, np.random.default_rng(7)
    scores = rng.normal(0.3, 0.1, size=(draws, 50))
    scores[:, 0] = 0.75
    defense = DpRetrieval(epsilon=epsilon, sensitivity=sensitivity)
    noisy = defense.perturb_scores(scores, turn=Turn(principal="p", session="s", rng=rng))
    better = (noisy[:, 1:] > noisy[:, :1]).sum(axis=1)
    assert (better < 5).mean() == pytest.approx(share, abs=0.006)


@pytest.mark.parametrize(("epsilon", "sensitivity", "scale"), [(1.0, 1, 1.0), (5.0, 1, 0.2), (5.0, 2, 0.4)])
def test_the_noise_of_dp_r_is_laplace_with_scale_sensitivity_over_epsilon(epsilon, sensitivity, scale):
    scores = np.full(20_000, 0.5)
    noise = DpRetrieval(epsilon=epsilon, sensitivity=sensitivity).perturb_scores(scores, turn=turn(3)) - 0.5
    assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > 0.01
    assert stats.kstest(noise, stats.laplace(scale=1.3 * scale).cdf).pvalue < 1e-6


def test_without_noise_dp_r_keeps_the_clean_ranking():
    scores = np.random.default_rng(1).permutation(SCORES)
    for epsilon in (1e12, float("inf")):
        noisy = DpRetrieval(epsilon=epsilon).perturb_scores(scores, turn=turn())
        assert np.argsort(noisy).tolist() == np.argsort(scores).tolist()


def test_dp_r_draws_fresh_noise_for_every_question():
    defense, asked = DpRetrieval(), turn()
    first, second = (defense.perturb_scores(SCORES, turn=asked) for _ in range(2))
    assert not np.isin(first, second).any()
    assert np.array_equal(first, DpRetrieval().perturb_scores(SCORES, turn=turn()))


def test_scores_outside_the_range_are_clipped_to_it():
    scores = np.array([-3.0, -0.5, 0.5, 3.0])
    silent = {sensitivity: DpRetrieval(epsilon=float("inf"), sensitivity=sensitivity) for sensitivity in (1, 2)}
    assert silent[1].perturb_scores(scores, turn=turn()).tolist() == [0, 0, 0.5, 1]
    assert silent[2].perturb_scores(scores, turn=turn()).tolist() == [-1, -0.5, 0.5, 1]


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_an_epsilon_that_is_none_is_refused(epsilon):
    with pytest.raises(ConfigError, match=r"dp_r\.epsilon is .*above 0"):
        DpRetrieval(epsilon=epsilon)


# CA-DP
@given(
    total=st.floats(0.01, 50),
    horizon=st.integers(1, 12),
    split=st.sampled_from(["basic", "advanced", "geometric"]),
    asked=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=40),
)
@settings(deadline=None, max_examples=80)
def test_no_sequence_of_questions_spends_more_than_the_budget(total, horizon, split, asked):
    defense = CompositionAwareDp(epsilon=total, horizon=horizon, split=split)
    answered: dict[str, int] = {}
    for number, (principal, session) in enumerate(asked):
        scores = defense.perturb_scores(SCORES, turn=turn(number, principal=principal, session=str(session)))
        answered[principal] = answered.get(principal, 0) + bool(np.isfinite(scores).all())
        assert defense.spent(principal) <= total
    for principal, count in answered.items():
        assert count == min(horizon, [who for who, _ in asked].count(principal))


@pytest.mark.parametrize("split", ["basic", "advanced", "geometric"])
def test_the_turn_after_the_horizon_finds_nothing_and_costs_nothing(split):
    defense = CompositionAwareDp(epsilon=5.0, horizon=3, split=split)
    for number in range(3):
        assert np.isfinite(defense.perturb_scores(SCORES, turn=turn(number))).all()
    spent = defense.spent("p")
    assert defense.perturb_scores(SCORES, turn=turn(9)).tolist() == [REFUSED_SCORE] * len(SCORES)
    assert defense.spent("p") == spent == pytest.approx(5.0)


def test_a_new_session_begins_no_new_budget_and_another_principal_does():
    defense = CompositionAwareDp(horizon=1)
    defense.perturb_scores(SCORES, turn=turn(session="first"))
    assert not np.isfinite(defense.perturb_scores(SCORES, turn=turn(session="second"))).any()
    assert np.isfinite(defense.perturb_scores(SCORES, turn=turn(principal="sybil"))).all()


@pytest.mark.parametrize("split", ["basic", "advanced", "geometric"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_with_a_horizon_of_one_turn_ca_dp_is_dp_r_bit_for_bit(split, epsilon):
    ours = CompositionAwareDp(epsilon=epsilon, horizon=1, split=split).perturb_scores(SCORES, turn=turn(4))
    assert ours.tobytes() == DpRetrieval(epsilon=epsilon).perturb_scores(SCORES, turn=turn(4)).tobytes()


def test_advanced_composition_costs_what_the_formula_says():
    # sqrt(2 * 10 * ln(1e5)) * 0.1 + 10 * 0.1 * (e^0.1 - 1), by hand
    assert advanced_total(0.1, turns=10, delta=1e-5) == pytest.approx(1.5174271 + 0.1051709, abs=1e-6)


def test_the_shares_of_few_turns_are_those_of_basic_composition_and_larger_ones_of_many():
    def share(turns: int, split: str) -> float:
        return split_budget(1.0, horizon=turns, split=split, delta=1e-5, decay=0.8)[0]

    assert share(10, "advanced") == share(10, "basic") == pytest.approx(0.1)
    assert share(1000, "advanced") > 5 * share(1000, "basic")
    assert advanced_total(share(1000, "advanced"), turns=1000, delta=1e-5) == pytest.approx(1.0)


def test_a_budget_beyond_any_noise_is_split_as_basic_composition_splits_it():
    assert advanced_total(1000.0, turns=10, delta=1e-5) == float("inf")
    assert split_budget(1e4, horizon=10, split="advanced", delta=1e-5, decay=0.8) == (1000.0,) * 10


def test_geometric_shares_shrink_by_the_decay_and_use_the_budget_up():
    shares = split_budget(7.0, horizon=3, split="geometric", delta=1e-5, decay=0.5)
    assert shares == pytest.approx((4.0, 2.0, 1.0))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 0}, "at least 1 turn"),
        ({"delta": 1.0}, "between 0 and 1"),
        ({"decay": 0.0}, "between 0 and 1"),
        ({"epsilon": float("inf")}, "finite"),
    ],
)
def test_budgets_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        CompositionAwareDp(**options)


# Private-RAG
@given(seed=st.integers(0, 10_000), epsilon=st.floats(0.01, 1e6), k=st.integers(1, 8))
@settings(deadline=None, max_examples=100)
def test_the_filter_never_keeps_more_than_k_and_leaves_their_scores(seed, epsilon, k):
    kept = PrivateRagFilter(epsilon=epsilon, k=k).perturb_scores(SCORES, turn=turn(seed))
    finite = np.isfinite(kept)
    assert finite.sum() <= k
    assert np.array_equal(kept[finite], SCORES[finite])
    assert (kept[~finite] == REFUSED_SCORE).all()


def test_without_noise_the_filter_keeps_exactly_what_is_above_the_threshold_up_to_k():
    quiet = PrivateRagFilter(epsilon=float("inf"), k=5, threshold=0.85)
    above = np.flatnonzero(SCORES >= 0.85)
    assert len(above) == 4
    assert np.flatnonzero(np.isfinite(quiet.perturb_scores(SCORES, turn=turn()))).tolist() == above.tolist()
    none = PrivateRagFilter(epsilon=float("inf"), threshold=1.0)
    assert not np.isfinite(none.perturb_scores(SCORES, turn=turn())).any()


def test_the_filter_stops_at_the_kth_document_of_its_random_order():
    quiet = PrivateRagFilter(epsilon=float("inf"), k=3, threshold=0.0)
    rng = np.random.default_rng(5)
    rng.laplace()
    order = rng.permutation(len(SCORES))
    kept = quiet.perturb_scores(SCORES, turn=turn(5))
    assert sorted(order[:3]) == np.flatnonzero(np.isfinite(kept)).tolist()


def test_the_noise_on_a_score_is_laplace_with_scale_four_k_over_epsilon():
    # One document at the threshold's distance: above when Lap(4 s) - Lap(2 s) >= 0.25, with s = k / epsilon = 0.1.
    filter_ = PrivateRagFilter(epsilon=10.0, k=1, threshold=0.75)
    kept = [np.isfinite(filter_.perturb_scores(np.array([0.5]), turn=turn(seed))[0]) for seed in range(20_000)]
    # P(X - Y >= t) for scales b > c: (b^2 e^(-t/b) - c^2 e^(-t/c)) / (2 (b^2 - c^2))
    expected = (0.16 * np.exp(-0.25 / 0.4) - 0.04 * np.exp(-0.25 / 0.2)) / (2 * (0.16 - 0.04))
    assert np.mean(kept) == pytest.approx(expected, abs=0.012)


def test_the_public_threshold_is_the_median_of_the_kth_best_scores():
    scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.7], [0.3, 0.4, 0.6]])
    assert public_threshold(scores, k=2) == 0.5  # second best: 0.5, 0.7, 0.4
    with pytest.raises(ConfigError, match="0 public queries on 3 documents"):
        public_threshold(np.empty((0, 3)), k=2)
    with pytest.raises(ConfigError, match="k = 4"):
        public_threshold(scores, k=4)


def test_a_public_threshold_lies_in_the_range_to_which_the_filter_clips():
    scores = np.array([[0.1, -0.3], [0.2, -0.1], [0.3, -0.2]])
    assert public_threshold(scores, k=2) == PrivateRagFilter(threshold=0.0, k=2).threshold
    assert public_threshold(scores, k=2, sensitivity=2) == -0.2


@pytest.mark.parametrize(("options", "said"), [({"k": 0}, "at least 1"), ({"threshold": -0.1}, "clipped to 0 to 1")])
def test_filters_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        PrivateRagFilter(**options)
