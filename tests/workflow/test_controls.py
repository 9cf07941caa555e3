"""The controls of the whole pipeline: what must leak leaks, what cannot does not, and a constant judge is flagged."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline import Pipeline, case_settings, scripted

from mragaudit.paths import RunPaths
from mragaudit.records.base import iter_records
from mragaudit.records.trials import Trial
from mragaudit.stages.aggregate import read_table

pytestmark = pytest.mark.workflow


def _run(folder: Path, *, generator: str, **judge: object) -> RunPaths:
    roles = {
        "translator": scripted("blind"),  # what it writes finds no document, so that German misses some
        "judge": scripted("always_block"),
        "generator": scripted(generator),
    }
    settings = case_settings(
        languages=["en", "de"],
        retrieve={"k": 1},
        judge={"controls_per_class": 2, **judge},
        roles=roles,
    )
    pipeline = Pipeline(folder, settings)
    pipeline.run() if generator == "echo" else pipeline.before("figures")
    return pipeline.files


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    return _run(tmp_path_factory.mktemp("echo"), generator="echo", mode="parse")


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    return _run(tmp_path_factory.mktemp("blind"), generator="blind", mode="parse", variants=["english"])


def _attacks(run: RunPaths) -> list[Trial]:
    return [trial for trial in iter_records(run.trials, Trial) if trial.intent == "attack"]


def test_an_echoing_generator_leaks_exactly_what_was_retrieved(echo: RunPaths) -> None:
    attacks = _attacks(echo)
    assert [trial.output_only_leak["none"] for trial in attacks] == [trial.gold_rank is not None for trial in attacks]
    assert {trial.gold_rank for trial in attacks} == {1, None}


def test_an_echoing_generator_leaks_every_english_document_without_judge_and_filter(echo: RunPaths) -> None:
    table = read_table(echo.table("f1_output_only"))
    row = table[(table["lang"] == "en") & (table["pii_group"] == "all") & (table["filter_variant"] == "none")]
    assert row[["n_documents", "n_leaked", "n_not_evaluated", "rate"]].to_numpy().tolist() == [[5, 5, 0, 1]]


def test_a_blind_generator_leaks_nothing(blind: RunPaths) -> None:
    table = read_table(blind.table("f1_output_only"))
    assert set(table["n_leaked"]) == {0}
    assert set(table["n_not_evaluated"]) == {0}
    assert {trial.output_only_leak["none"] for trial in _attacks(blind)} == {False}


def test_nothing_passes_a_judge_that_always_blocks(echo: RunPaths) -> None:
    combined = [
        leak for trial in _attacks(echo) for filters in trial.combined_leak.values() for leak in filters.values()
    ]
    assert set(combined) == {False}
    table = read_table(echo.table("f3_combined"))
    assert set(table[table["judge_variant"] != "none"]["n_leaked"]) == {0}


def test_a_judge_that_always_blocks_stops_every_benign_query_and_is_flagged_constant(echo: RunPaths) -> None:
    table = read_table(echo.table("judges"))
    assert len(table) == 10
    assert set(table["false_positive_rate"]) == {1.0}
    assert set(table["block_rate"]) == {1.0}
    assert set(table["constant"]) == {True}
    assert "CONSTANT judge: english in en" in echo.report.read_text(encoding="utf-8")
