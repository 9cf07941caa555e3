"""The same inputs give the same bytes, whatever the folder and the number of shards."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline import Pipeline, case_settings

from mragaudit.config import Settings
from mragaudit.paths import TABLES

pytestmark = pytest.mark.workflow


def _settings(shards: int) -> Settings:
    return case_settings(languages=["en", "de", "zh"], shards=shards, judge={"controls_per_class": 2})


def _tables_of(folder: Path, *, shards: int) -> dict[str, bytes]:
    """Run everything up to the tables; return their bytes and the trials'."""
    pipeline = Pipeline(folder, _settings(shards))
    pipeline.before("figures")
    return {path.name: path.read_bytes() for path in [pipeline.files.trials, *map(pipeline.files.table, TABLES)]}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return _tables_of(tmp_path_factory.mktemp("once"), shards=1)


def test_two_runs_in_two_folders_give_the_same_bytes(once: dict[str, bytes], tmp_path: Path) -> None:
    assert _tables_of(tmp_path, shards=1) == once


def test_four_shards_give_the_bytes_of_one(once: dict[str, bytes], tmp_path: Path) -> None:
    assert _tables_of(tmp_path, shards=4) == once


def test_changing_the_number_of_shards_calls_no_model(tmp_path: Path) -> None:
    Pipeline(tmp_path, _settings(1)).before("filter")
    kept = {path: path.read_bytes() for path in (tmp_path / "results/scripted/journal").iterdir()}
    Pipeline(tmp_path, _settings(2)).before("filter")
    after = {path: path.read_bytes() for path in (tmp_path / "results/scripted/journal").iterdir()}
    assert {path: content for path, content in after.items() if content} == kept
