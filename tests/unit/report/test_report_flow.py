"""Funnel rows turned into counts a stage."""

from __future__ import annotations

import pandas as pd
import pytest

from mragaudit.errors import DataError
from mragaudit.report.flow import flow_of

COLUMNS = [
    "lang",
    "pii_group",
    "judge_variant",
    "filter_variant",
    "stage",
    "n_trials",
    "n_surviving",
    "n_not_evaluated",
]


def funnel(judge: str, rows: list[tuple[str, int, int]]) -> pd.DataFrame:
    cells = [("sw", "all", judge, "none", stage, 10, left, missing) for stage, left, missing in rows]
    return pd.DataFrame(cells, columns=COLUMNS)


def test_each_trial_is_counted_at_its_first_stop() -> None:
    rows = [
        ("queried", 10, 0),
        ("translated", 9, 0),
        ("judge", 7, 0),
        ("retrieved", 6, 0),
        ("generated", 3, 1),
    ]
    flow = flow_of(funnel("english", [*rows, ("filter", 2, 1)]))
    assert flow is not None
    assert flow.counts == {
        "queried": 0,
        "translated": 1,
        "judge": 2,
        "retrieved": 1,
        "generated": 2,
        "filter": 1,
        "escaped": 2,
        "not evaluated": 1,
    }
    assert sum(flow.counts.values()) == flow.n_trials


def test_a_judge_that_sees_documents_stops_after_retrieval() -> None:
    rows = [
        ("queried", 10, 0),
        ("translated", 10, 0),
        ("retrieved", 6, 0),
        ("judge", 1, 0),
        ("generated", 1, 0),
    ]
    flow = flow_of(funnel("oracle", [*rows, ("filter", 1, 0)]))
    assert flow is not None
    assert (flow.counts["retrieved"], flow.counts["judge"], flow.counts["escaped"]) == (4, 5, 1)


def test_no_rows_give_no_flow() -> None:
    assert flow_of(funnel("english", [])) is None


def test_a_missing_stage_is_refused() -> None:
    with pytest.raises(DataError, match="a cell needs one row for each of queried"):
        flow_of(funnel("english", [("queried", 10, 0)]))
