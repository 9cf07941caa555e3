"""A model job shares journals between shards and measures itself."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mragaudit.calls import CallCounts
from mragaudit.config import Role
from mragaudit.config.settings import EmbedderRole
from mragaudit.protocols import Completion, GenerateRequest, Message, ModelIdentity, Prompt
from mragaudit.stages.jobs import JobMetrics, ModelJob

ROLE = Role(backend="scripted", model="echo", sha256=None)
REQUEST = GenerateRequest(prompt=Prompt(messages=(Message("user", "one two"),), shared=0), max_tokens=8, stop=())


def _run(results: Path, *, stage: str = "generate", shard: str, journal: str | None = None) -> JobMetrics:
    with ModelJob(stage=stage, run="r", shard=shard, threads=1, journal=journal, results=results) as job:
        (answer,) = job.caller("generator", ROLE).generate([REQUEST], trials=["t"])
        assert isinstance(answer, Completion)
        job.finish(n_expected=3, n_actual=3, n_not_evaluated=1)
    path = results / "r" / "metrics" / f"{stage}.{shard}.json"
    return msgspec.json.decode(path.read_bytes(), type=JobMetrics)


def test_a_job_writes_what_it_asked_and_what_it_counted(tmp_path: Path) -> None:
    metrics = _run(tmp_path, shard="1-of-2")
    assert (metrics.stage, metrics.shard) == ("generate", "1-of-2")
    assert (metrics.n_expected, metrics.n_actual, metrics.n_not_evaluated) == (3, 3, 1)
    assert metrics.calls == CallCounts(n_requests=1, n_distinct=1, n_made=1, prompt_tokens=2, completion_tokens=2)
    assert {role: (one.backend, one.model) for role, one in metrics.models.items()} == {
        "generator": ("scripted", "echo")
    }
    assert metrics.inside_seconds + metrics.load_seconds <= metrics.stage_seconds + 0.002


def test_a_model_that_two_roles_share_is_loaded_and_counted_once(tmp_path: Path) -> None:
    with ModelJob(stage="generate", run="r", shard="all", threads=1, results=tmp_path) as job:
        generator = job.caller("generator", ROLE)
        attacker = job.share("attacker", generator)
        generator.generate([REQUEST], trials=["t"])
        attacker.generate([REQUEST], trials=["u"])
        job.finish(n_expected=2, n_actual=2, n_not_evaluated=0)
    metrics = msgspec.json.decode((tmp_path / "r/metrics/generate.all.json").read_bytes(), type=JobMetrics)
    assert metrics.models["attacker"] == metrics.models["generator"]
    assert (metrics.calls.n_requests, metrics.calls.n_made) == (2, 1)
    assert [path.name for path in (tmp_path / "r" / "journal").iterdir()] == ["generate.all.jsonl"]


def test_a_shards_journal_stands_below_the_run(tmp_path: Path) -> None:
    _run(tmp_path, shard="1-of-2")
    assert (tmp_path / "r" / "journal" / "generate.1-of-2.jsonl").stat().st_size > 0


def test_what_another_shard_asked_is_not_asked_again(tmp_path: Path) -> None:
    _run(tmp_path, shard="1-of-2")
    counts = _run(tmp_path, shard="2-of-2").calls
    assert (counts.n_from_journal, counts.n_made) == (1, 0)


def test_calibration_and_judging_share_what_they_asked(tmp_path: Path) -> None:
    _run(tmp_path, stage="calibrate", shard="all", journal="judge.calibration")
    assert _run(tmp_path, stage="judge", shard="1-of-1").calls.n_from_journal == 1


def test_another_stage_does_not_read_the_journal(tmp_path: Path) -> None:
    _run(tmp_path, stage="translate", shard="1-of-1")
    assert _run(tmp_path, stage="generate", shard="1-of-1").calls.n_from_journal == 0


def test_an_embedder_counts_as_time_inside_a_model(tmp_path: Path) -> None:
    with ModelJob(stage="index", run="r", shard="all", threads=1, results=tmp_path) as job:
        embedder = job.embedder(EmbedderRole(backend="hashing", model="trigrams"))
        embedder.embed_documents(["text"] * 50)
        seconds = embedder.meter.seconds
        job.finish(n_expected=1, n_actual=1, n_not_evaluated=0)
    metrics = msgspec.json.decode((tmp_path / "r/metrics/index.all.json").read_bytes(), type=JobMetrics)
    assert metrics.inside_seconds == round(seconds, 3)
    assert metrics.models == {
        "embedder": ModelIdentity(backend="hashing", model="trigrams", revision="1", rendering="")
    }
