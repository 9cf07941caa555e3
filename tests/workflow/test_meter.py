"""The meter of time inside the model agrees with a backend that sleeps 50 ms a call."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pipeline import Pipeline, case_settings, scripted

from mragaudit.stages.jobs import JobMetrics

pytestmark = pytest.mark.workflow

SLEEP_SECONDS = 0.05


def test_time_inside_the_model_is_calls_times_their_duration(tmp_path: Path) -> None:
    settings = case_settings(
        languages=["en", "de"],
        judge={"variants": []},
        roles={"generator": scripted("echo", sleep_seconds=SLEEP_SECONDS)},
    )
    pipeline = Pipeline(tmp_path, settings)
    pipeline.before("filter")
    metrics = msgspec.json.decode(pipeline.files.job_metrics("generate", "1-of-1").read_bytes(), type=JobMetrics)
    assert metrics.calls.n_made == 40
    assert metrics.inside_seconds == pytest.approx(40 * SLEEP_SECONDS, rel=0.05)
    assert metrics.inside_seconds <= metrics.stage_seconds
