"""The recall of an approximate index, pooled over shards, with hand-worked limits."""

from __future__ import annotations

import msgspec
import pytest

from mragaudit.calls import CallCounts
from mragaudit.stages.jobs import IndexRecall, JobMetrics
from mragaudit.stages.manifest import recall_summary


def job(shard: str, recall: IndexRecall | None) -> JobMetrics:
    return JobMetrics(
        stage="retrieve",
        shard=shard,
        models={},
        n_expected=0,
        n_actual=0,
        n_not_evaluated=0,
        calls=msgspec.convert(dict.fromkeys(CallCounts.__struct_fields__, 0), CallCounts),
        interpreter_seconds=0,
        load_seconds=0,
        inside_seconds=0,
        stage_seconds=0,
        index_recall=recall,
    )


def test_queries_of_all_shards_count_alike() -> None:
    # 2.5 of 3, z = 1.95996: (2.5 + z²/2 ± z sqrt(2.5 * 0.5 / 3 + z²/4)) / (3 + z²)
    jobs = [
        job("1-of-2", IndexRecall(kind="hnsw", k=2, found_shares=(1.0, 0.5))),
        job("2-of-2", IndexRecall(kind="hnsw", k=2, found_shares=(1.0,))),
    ]
    found = recall_summary(jobs, confidence=0.95)
    assert found is not None
    assert (found.kind, found.k, found.n_queries) == ("hnsw", 2, 3)
    assert found.recall == pytest.approx(2.5 / 3, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((0.30998, 0.98233), abs=2e-5)


def test_jobs_without_an_approximate_index_have_none() -> None:
    assert recall_summary([job("1-of-1", None)], confidence=0.95) is None
