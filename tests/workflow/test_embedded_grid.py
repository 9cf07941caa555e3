"""The grid on the embedded models, once, as small as its controls allow."""

from __future__ import annotations

import pytest
import yaml
from pipeline import REPOSITORY, Pipeline

from mragaudit.config import load_settings
from mragaudit.paths import GRID_TABLES, RunPaths
from mragaudit.records.base import iter_records
from mragaudit.records.grid import CellUse, TargetCall
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.manifest import read_manifest

CASE = REPOSITORY / "tests" / "cases" / "grid_embedded" / "config.yaml"

pytestmark = [pytest.mark.embedded, pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    settings = load_settings(yaml.safe_load(CASE.read_text(encoding="utf-8")))
    return Pipeline(tmp_path_factory.mktemp("embedded_grid"), settings).grid()


def uses(run: RunPaths) -> list[CellUse]:
    return list(iter_records(run.root / "uses" / "1-of-1.jsonl", CellUse))


def test_a_grid_of_real_models_comes_to_its_page_with_every_table(run: RunPaths) -> None:
    assert run.report.stat().st_size > 100_000
    assert all(run.table(name).is_file() for name in GRID_TABLES)


def test_the_controls_pass_on_the_prompt_of_the_real_pipeline(run: RunPaths) -> None:
    controls = read_table(run.table("controls"))
    assert set(controls["control"]) == {"positive_control", "negative_control"}
    assert controls["passed"].all()
    assert (controls["n_in_context"] > 0).all()


def test_every_cell_was_run_and_no_call_was_lost(run: RunPaths) -> None:
    spent = read_table(run.table("cells"))
    assert {use.cell_id for use in uses(run)} == set(spent["cell_id"])
    assert spent["same_as"].isna().all()
    assert spent["n_not_evaluated"].sum() == 0
    assert (spent["n_target_calls"] > 0).all()


def test_the_model_answers_in_words_of_its_own_within_the_limit_of_tokens(run: RunPaths) -> None:
    calls = list(iter_records(run.root / "calls" / "1-of-1.jsonl", TargetCall))
    answers = {call.answer for call in calls if call.cell_id.startswith("grid.")}
    assert len(answers) > 5
    assert all(len(answer.split()) <= 32 for answer in answers)


def test_equal_prompts_are_computed_once(run: RunPaths) -> None:
    [stage] = read_manifest(run.manifest).stages
    n_calls = sum(use.n_target_calls for use in uses(run))
    assert 0 < stage.calls.n_made < n_calls
    assert read_manifest(run.manifest).models["generator"]["revision"].startswith("a5fd3b62")


def test_a_masker_after_the_model_leaves_what_the_model_wrote_alone(run: RunPaths) -> None:
    calls = list(iter_records(run.root / "calls" / "1-of-1.jsonl", TargetCall))
    written = {
        arm: [call.answer for call in calls if call.cell_id == f"grid.email.s1.targeted_queries.{arm}.ps"]
        for arm in ("none", "pad")
    }
    assert written["none"] == written["pad"] != []
