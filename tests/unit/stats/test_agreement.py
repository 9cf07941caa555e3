"""Area under the ROC curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mragaudit.errors import DataError
from mragaudit.stats.agreement import auc

scores = st.lists(st.integers(-5, 5), min_size=1, max_size=15)


def test_auc_counts_the_pairs_in_which_the_positive_scores_higher():
    assert auc([3.0, 1.0], [2.0, 0.0]) == 0.75


def test_auc_counts_ties_half():
    assert auc([1.0, 1.0], [1.0, 0.0, 2.0]) == 0.5
    assert auc([1.0], [1.0, 0.0]) == 0.75


def test_auc_below_one_half_is_reported_as_it_is():
    assert auc([0.0], [1.0, 2.0]) == 0.0


@pytest.mark.parametrize(("positives", "negatives"), [([], [1.0]), ([1.0], []), ([], [])])
def test_auc_is_undefined_when_a_side_is_empty(positives, negatives):
    assert auc(positives, negatives) is None


def test_auc_ranks_infinite_scores():
    assert auc([float("inf"), 0.0], [float("-inf")]) == 1.0


def test_auc_refuses_nan():
    with pytest.raises(DataError, match="1 scores are NaN"):
        auc([float("nan")], [1.0])


@given(positives=scores, negatives=scores)
def test_auc_equals_the_count_over_all_pairs(positives, negatives):
    gaps = np.subtract.outer(positives, negatives)
    assert auc(positives, negatives) == pytest.approx(np.mean((gaps > 0) + (gaps == 0) / 2), abs=1e-12)


@given(positives=scores, negatives=scores)
def test_swapping_the_classes_mirrors_the_auc(positives, negatives):
    assert auc(positives, negatives) == pytest.approx(1 - auc(negatives, positives), abs=1e-12)
