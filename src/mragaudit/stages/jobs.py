"""A model job: one stage of one shard, with its models, its journal and the measure of its time."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import psutil

from mragaudit.calls import CallCounts, Caller, total_counts
from mragaudit.config.settings import EmbedderRole, Role
from mragaudit.journal import Journal
from mragaudit.paths import RunPaths
from mragaudit.protocols import Embedder, ModelIdentity
from mragaudit.records.base import write_bytes
from mragaudit.stages.models import identity_of, load_backend, load_embedder

logger = logging.getLogger(__name__)

RESULTS = Path("results")


class IndexRecall(msgspec.Struct, frozen=True, kw_only=True):
    """An approximate index against an exact search, on a sample of a job's queries."""

    kind: str
    k: int
    """Documents that both searches were asked for: `retrieve.k`, or the candidates of a re-scoring method."""
    found_shares: tuple[float, ...]
    """For each sampled query, the share of the exact k best documents that was found."""


class JobMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What one model job measured of itself; the manifest adds the rule's wall time."""

    stage: str
    shard: str
    models: dict[str, ModelIdentity]
    """Role → model."""
    n_expected: int
    n_actual: int
    n_not_evaluated: int
    calls: CallCounts
    interpreter_seconds: float
    """From the start of the process to the start of the stage."""
    load_seconds: float
    """Loading of models."""
    inside_seconds: float
    """Inside the lowest calls of back-ends and embedder."""
    stage_seconds: float
    """From the start of the stage to its end, loading included."""
    index_recall: IndexRecall | None = None
    """Of the stage `retrieve` where its index is approximate."""


class ModelJob:
    """Opens callers and embedders for one stage and shard, and writes their metrics at the end."""

    def __init__(
        self,
        *,
        stage: str,
        run: str,
        shard: str,
        threads: int,
        journal: str | None = None,
        results: Path = RESULTS,
    ) -> None:
        """Begin a job of a run; `journal` names another journal than the stage's own, without its ending."""
        paths = RunPaths(results / run)
        self.stage = stage
        self.shard = shard
        self._journal = paths.journal / f"{journal or f'{stage}.{shard}'}.jsonl"
        self._metrics = paths.job_metrics(stage, shard)
        self._threads = threads
        self._start = time.perf_counter()
        self._interpreter_seconds = time.time() - psutil.Process().create_time()
        self._callers: list[Caller] = []
        self._embedders: list[Embedder] = []
        self._embedder_load_seconds = 0.0
        self._models: dict[str, ModelIdentity] = {}

    def caller(self, name: str, role: Role, *, journal: str | None = None, progress: bool = True) -> Caller:
        """Return the way to the model of a role; it is loaded when the journal cannot answer.

        A job that has several models names a journal for each of the others: `journal` stands for the stage's name.
        Without `progress` its calls draw no bar.
        """
        identity = identity_of(role)
        path = self._journal if journal is None else self._journal.with_name(f"{journal}.{self.shard}.jsonl")
        stage = path.name.split(".", 1)[0]
        caller = Caller(
            identity=identity,
            load=lambda: load_backend(role, threads=self._threads),
            journal=Journal(path, siblings=sorted(path.parent.glob(f"{stage}.*.jsonl"))),
            label=f"{self.stage} {self.shard}",
            progress=progress,
        )
        self._callers.append(caller)
        self._models[name] = identity
        return caller

    def share(self, name: str, caller: Caller) -> Caller:
        """Return a caller for a further role that is the same model, so that it is loaded once."""
        self._models[name] = caller.identity
        return caller

    def embedder(self, role: EmbedderRole) -> Embedder:
        """Return the embedder, loaded."""
        start = time.perf_counter()
        embedder = load_embedder(role, threads=self._threads)
        self._embedder_load_seconds += time.perf_counter() - start
        self._embedders.append(embedder)
        self._models["embedder"] = embedder.identity
        return embedder

    def finish(
        self, *, n_expected: int, n_actual: int, n_not_evaluated: int, index_recall: IndexRecall | None = None
    ) -> None:
        """Write the job's metrics."""
        counts = total_counts(caller.counts for caller in self._callers)
        metrics = JobMetrics(
            stage=self.stage,
            shard=self.shard,
            models=self._models,
            n_expected=n_expected,
            n_actual=n_actual,
            n_not_evaluated=n_not_evaluated,
            calls=counts,
            interpreter_seconds=round(self._interpreter_seconds, 3),
            load_seconds=round(self._embedder_load_seconds + sum(c.load_seconds for c in self._callers), 3),
            inside_seconds=round(self._inside_seconds(), 3),
            stage_seconds=round(time.perf_counter() - self._start, 3),
            index_recall=index_recall,
        )
        write_bytes(self._metrics, msgspec.json.format(msgspec.json.encode(metrics), indent=2) + b"\n")
        if n_not_evaluated:
            logger.warning("%s %s: %d trials not evaluated", self.stage, self.shard, n_not_evaluated)

    def _inside_seconds(self) -> float:
        return sum(c.inside_seconds for c in self._callers) + sum(e.meter.seconds for e in self._embedders)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for caller in self._callers:
            caller.close()
