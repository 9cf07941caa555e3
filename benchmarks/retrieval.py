"""Recall, build time, memory and query rate of each kind of index on vectors that lie in clusters.

    python benchmarks/retrieval.py [--documents 200000] [--dimensions 1024] [--kinds flat ivf_flat hnsw]

Documents are drawn around `--centres` random unit vectors: a centre plus normal noise of `--spread` in all (its
expected length), brought to length 1; each centre is as likely as the next. So two documents of one centre have a
cosine of about 1 / (1 + spread²), two others of about 0; with fewer documents than centres there is nothing near to
find, and recall says little. A query is a random document plus noise of `--query-spread`,
brought to length 1. Every kind runs in a process of its own, one after another, over the same vectors in a file:

- "recall": mean share of the 5 documents of an exact search that the kind finds, over `--queries` queries, with a
  95 % Wilson interval (a query is the unit). Ties are broken by document id on both sides.
- "build": seconds to train and fill the index, on one thread as in the pipeline.
- "memory": the index as it is saved, and how far the process's resident set rose over that with the vectors alone.
- "queries a second": all queries in one call, all threads that FAISS takes (OMP_NUM_THREADS), best of three.

At full size the exact kind takes seconds, `ivf_flat` minutes and `hnsw` a quarter of an hour or more on a slow core.
Exit code 1 when an approximate kind finds less than 0.95. Options of the kinds: `--nlist`, `--nprobe`, `--m`,
`--ef-construction`, `--ef-search`, with the defaults of `retrieve.index`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import psutil

from mragaudit.config.settings import Index
from mragaudit.index.base import RankedDocuments, VectorIndex
from mragaudit.index.kinds import build_index
from mragaudit.protocols import ModelIdentity
from mragaudit.stats.intervals import tail_area, wilson_limits

Floats = npt.NDArray[np.float32]

K = 5
LEAST_RECALL = 0.95
BLOCK_ROWS = 20_000
ROUNDS = 3
MIB = 1024**2
EMBEDDER = ModelIdentity(backend="benchmark", model="mixture", revision="1", rendering="")


def noisy(rows: Floats, spread: float, *, generator: np.random.Generator) -> Floats:
    """Return unit rows moved by normal noise whose expected length is about `spread`."""
    noise = generator.standard_normal(rows.shape, dtype=np.float32) * np.float32(spread / np.sqrt(rows.shape[1]))
    moved = rows + noise
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), dtype=np.float32)


def write_mixture(folder: Path, given: argparse.Namespace) -> None:
    """Write `documents.npy` and `queries.npy`, block by block, so that the largest size needs no second copy."""
    generator = np.random.default_rng(given.seed)
    centres = noisy(np.zeros((given.centres, given.dimensions), dtype=np.float32), 1.0, generator=generator)
    shape = (given.documents, given.dimensions)
    documents = np.lib.format.open_memmap(folder / "documents.npy", mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, given.documents, BLOCK_ROWS):
        size = min(BLOCK_ROWS, given.documents - start)
        chosen = centres[generator.integers(given.centres, size=size)]
        documents[start : start + size] = noisy(chosen, given.spread, generator=generator)
    targets = np.asarray(documents[np.sort(generator.integers(given.documents, size=given.queries))])
    np.save(folder / "queries.npy", noisy(targets, given.query_spread, generator=generator))
    documents.flush()


def resident_bytes() -> int:
    """Return this process's resident set."""
    return int(psutil.Process().memory_info().rss)


def measure(kind: str, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return what one kind of index costs and what it finds."""
    documents = np.array(np.load(folder / "documents.npy", mmap_mode="r"))
    queries = np.load(folder / "queries.npy")
    names = [f"d{row:08d}" for row in range(len(documents))]
    before, started = resident_bytes(), time.perf_counter()
    index = build_index(documents, doc_ids=names, embedder=EMBEDDER, options=Index(**{**options, "kind": kind}), seed=1)
    build_seconds = time.perf_counter() - started
    risen = resident_bytes() - before
    index.save(folder)
    saved = (folder / "vectors.faiss").stat().st_size
    seconds, found = timed_search(index, queries)
    return {
        "kind": kind,
        "build_seconds": build_seconds,
        "risen_mib": risen / MIB,
        "saved_mib": saved / MIB,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "queries_per_second": len(queries) / seconds,
        "found": [ranked.doc_ids for ranked in found],
    }


def timed_search(index: VectorIndex, queries: Floats) -> tuple[float, list[RankedDocuments]]:
    """Return the shortest time of a few rounds, and what was found."""
    best, found = np.inf, []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        found = index.search(queries, K)
        best = min(best, time.perf_counter() - started)
    return float(best), found


def measured_apart(kind: str, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return `measure` from a fresh process, whose memory holds nothing of the kind before."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (kind, folder, options))


def recall_line(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> tuple[float, str]:
    """Return the mean share of the exact best that was found, and it as text with its interval."""
    shares = [len(set(mine) & set(best)) / len(best) for mine, best in zip(found, exact, strict=True)]
    mean = float(np.mean(shares))
    total = np.array([float(len(shares))])
    low, high = wilson_limits(np.array([sum(shares)]), total, tail=tail_area(0.95, "two"))
    return mean, f"recall@{K} {mean:.4f} [{low[0]:.4f}, {high[0]:.4f}] of {len(shares)} queries"


def report(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Yield a line for each kind, and whether its recall is enough; the first is the exact one."""
    for row in rows:
        mean, recall = recall_line(row["found"], rows[0]["found"])
        line = (
            f"{row['kind']:<9} {recall}; build {row['build_seconds']:.1f} s; saved {row['saved_mib']:.0f} MiB, "
            f"resident +{row['risen_mib']:.0f} MiB, peak {row['peak_mib']:.0f} MiB; "
            f"{row['queries_per_second']:.0f} queries a second"
        )
        yield line, mean >= LEAST_RECALL


def arguments() -> argparse.Namespace:
    """Return the command line's sizes, kinds and options."""
    defaults = Index()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--dimensions", type=int, default=1024)
    parser.add_argument("--centres", type=int, default=10_000)
    parser.add_argument("--spread", type=float, default=0.5)
    parser.add_argument("--query-spread", type=float, default=0.5)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=("ivf_flat", "hnsw"), default=["ivf_flat", "hnsw"])
    for name in ("nlist", "nprobe", "m", "ef_construction", "ef_search"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(defaults, name))
    return parser.parse_args()


def main() -> int:
    """Print one line for each kind; return 1 when an approximate one finds too little."""
    given = arguments()
    options = {name: getattr(given, name) for name in ("nlist", "nprobe", "m", "ef_construction", "ef_search")}
    print(
        f"{given.documents} documents, {given.dimensions} dimensions, {given.centres} centres, "
        f"spread {given.spread:g}, query spread {given.query_spread:g}, {json.dumps(options)}, "
        f"{faiss.omp_get_max_threads()} threads, faiss {faiss.__version__}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_mixture(folder, given)
        rows = []
        for kind in ("flat", *given.kinds):
            rows.append(measured_apart(kind, folder, options))
            line, _ = list(report(rows))[-1]
            print(line, flush=True)
    return 0 if all(enough for _, enough in report(rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
