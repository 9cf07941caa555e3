"""What a number of documents can show at all."""

from __future__ import annotations

import pytest
from scipy import stats

from mragaudit.errors import ConfigError
from mragaudit.stats.paired import mcnemar_exact
from mragaudit.stats.power import detectable_gap


def test_four_tests_need_eight_documents_in_one_direction():
    gap = detectable_gap(40)
    assert (gap.threshold, gap.least_discordant, gap.least_gap) == (0.0125, 8, 0.2)
    assert mcnemar_exact(7, 0).p_value > 0.0125 >= mcnemar_exact(8, 0).p_value


def test_the_powered_gap_makes_enough_discordant_documents_four_times_in_five():
    gap = detectable_gap(40).powered_gap
    assert gap == pytest.approx(0.2454, abs=5e-5)
    assert stats.binom.sf(7, 40, gap) == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_too_few_documents_can_show_no_gap(n):
    gap = detectable_gap(n)
    assert (gap.least_gap, gap.powered_gap) == (None, None)
    assert "no gap between two languages can be significant" in gap.explanation


def test_just_enough_documents_can_show_only_a_total_gap():
    assert detectable_gap(8).least_gap == 1.0


def test_one_test_alone_needs_six_documents():
    assert detectable_gap(100, tests=1).least_discordant == 6


def test_the_explanation_names_documents_and_shares():
    assert detectable_gap(40).explanation.startswith(
        "With 40 documents, two languages must differ on at least 8 of them (20.0%), all in one direction"
    )


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"power": 1.0}, {"tests": 0}])
def test_impossible_settings_are_refused(options):
    with pytest.raises(ConfigError, match=r"alpha and power must lie in \(0, 1\)"):
        detectable_gap(40, **options)
