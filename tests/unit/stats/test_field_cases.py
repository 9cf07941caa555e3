"""The field cases of component "stats": failures that others met and that must not come back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mragaudit.stats.agreement import auc
from mragaudit.stats.bootstrap import resample_statistic
from mragaudit.stats.exact import fisher_exact
from mragaudit.stats.intervals import bootstrap, document_rate, wilson

CASES_PATH = Path(__file__).parents[2] / "golden" / "field_cases.jsonl"


def stats_case(case_id):
    rows = (json.loads(line) for line in CASES_PATH.read_bytes().decode().split("\n") if line)
    (case,) = (row for row in rows if row["id"] == case_id)
    return case["input"], case["expected"]


def test_every_stats_case_has_a_test_here():
    rows = (json.loads(line) for line in CASES_PATH.read_bytes().decode().split("\n") if line)
    cases = {row["id"] for row in rows if row["component"] == "stats"}
    assert cases == {f"FC-STAT-{number:02d}" for number in (1, 3, 5, 7, 9, 11)}


def test_fc_stat_01_one_sided_wilson_is_not_two_sided():
    given, expected = stats_case("FC-STAT-01")
    cell = wilson(given["k"], given["n"], side=given["side"], confidence=given["confidence"])
    assert (cell.low, cell.high) == pytest.approx((expected["low"], expected["high"]), abs=expected["abs_tol"])
    assert cell.high != pytest.approx(expected["not_high"], abs=expected["abs_tol"])


def test_fc_stat_03_no_documents_give_no_rate():
    given, expected = stats_case("FC-STAT-03")
    cell = wilson(given["k"], given["n"], side=given["side"], confidence=given["confidence"])
    assert (cell.rate, cell.low, cell.high) == (expected["rate"], expected["low"], expected["high"])


def test_fc_stat_05_an_all_zero_bootstrap_is_degenerate_and_replaced():
    given, expected = stats_case("FC-STAT-05")
    k, n = sum(given["doc_success"]), len(given["doc_success"])
    cell = bootstrap(k, n, confidence=given["confidence"])
    assert (cell.rate, cell.degenerate) == (expected["rate"], expected["degenerate"])
    assert [cell.low, cell.high] == expected["bootstrap"]
    for side, limit in (("upper", "one_sided"), ("two", "two_sided")):
        assert wilson(k, n, side=side).high == pytest.approx(expected["wilson_upper"][limit], abs=1e-6)
    assert document_rate(k, n) == wilson(k, n, side="upper")


def test_fc_stat_07_a_document_drawn_twice_counts_twice():
    given, expected = stats_case("FC-STAT-07")
    value = resample_statistic(given["doc_success"], given["drawn_docs"])
    assert value == pytest.approx(expected["value"], abs=expected["abs_tol"])


def test_fc_stat_09_fisher_counts_the_mirror_table():
    given, expected = stats_case("FC-STAT-09")
    p = fisher_exact(given["table"], alternative=given["alternative"])
    assert p == pytest.approx(expected["p"], abs=expected["abs_tol"])


def test_fc_stat_11_auc_below_one_half_is_reported():
    given, expected = stats_case("FC-STAT-11")
    assert auc(given["members"], given["non_members"]) == pytest.approx(expected["auc"], abs=expected["abs_tol"])
