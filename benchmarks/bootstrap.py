"""Times the document bootstrap of a 100-document run against `scipy.stats.bootstrap`, in one process.

Run it as `python benchmarks/bootstrap.py`. How to read what it prints:

- "F1-F3 proportions": all cells of the three tables (5 languages, 3 groups of personal data, 3 filter
  variants; F2 and F3 also 5 judge variants), 495 in all, each cell of F2 on its dangerous documents only,
  less the cells in which no or all documents count: they have no bootstrap. "ratio" is scipy's time, called
  once a cell with 5,000 resamples, over ours for all of them; it must be at least 5. Both run in one process,
  so the ratio carries from machine to machine better than the seconds do.
- "largest difference" is the widest gap between a limit of ours and scipy's, in documents of its cell. Ours
  are the exact quantiles, scipy's the percentiles of 5,000 draws; more than one document gives exit code 1.
- "resampled": what cannot be had from binomial quantiles and is drawn, 5,000 resamples: the MRR of 15 cells
  (language and paraphrase), and the difference of rates of 10 pairs of languages. Measured apart; no limit on
  the ratio, the same limit on the difference. A document is worth 1/100 there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import stats

from mragaudit.stats.bootstrap import cluster_shares
from mragaudit.stats.intervals import document_rates
from mragaudit.stats.paired import count_pairs, paired_differences

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

DOCUMENTS, RESAMPLES = 100, 5_000
LANGUAGES, PARAPHRASES, FILTERS, JUDGES = 5, 3, 3, 5
LEAST_RATIO = 5.0
ROUNDING = 1e-9


def percentile_limits(values: Sequence[Bools | Floats], *, seed: int) -> Floats:
    """Return scipy's percentile limits of the mean of each cell, shape `(n_cells, 2)`."""
    generator = np.random.default_rng(seed)
    limits = []
    for cell in values:
        found = stats.bootstrap(
            (cell,), np.mean, n_resamples=RESAMPLES, method="percentile", vectorized=True, rng=generator
        ).confidence_interval
        limits.append((found.low, found.high))
    return np.array(limits)


def timed(function: Callable[[], Floats]) -> tuple[Floats, float]:
    """Return what the function gives and the seconds it took."""
    started = time.perf_counter()
    limits = function()
    return limits, time.perf_counter() - started


def table_cells(generator: np.random.Generator) -> list[Bools]:
    """Return the document outcomes of every F1, F2 and F3 cell that has a bootstrap."""
    kinds = generator.integers(0, 2, DOCUMENTS)
    groups = [np.ones(DOCUMENTS, dtype=bool), kinds == 0, kinds == 1]
    cells: list[Bools] = []
    for _ in range(LANGUAGES * FILTERS):
        leaked = generator.random(DOCUMENTS) < generator.uniform(0.05, 0.9)
        allowed = [leaked & (generator.random(DOCUMENTS) < generator.random()) for _ in range(JUDGES)]
        for group in groups:
            cells.append(leaked[group])
            cells.extend(passed[group & leaked] for passed in allowed)
            cells.extend(passed[group] for passed in allowed)
    return [cell for cell in cells if cell.size and 0 < cell.sum() < cell.size]


def compare(name: str, ours: Callable[[], Floats], *, theirs: Callable[[], Floats], documents: Floats) -> float:
    """Print times, ratio and largest difference in documents; return ratio, or 0 when limits differ."""
    (found, seconds), (expected, reference) = timed(ours), timed(theirs)
    apart = float(np.max(np.abs(found - expected) * documents[:, None]))
    ratio = reference / seconds
    print(
        f"{name}: {len(documents)} cells, ours {seconds:.4f} s, scipy {reference:.4f} s, ratio {ratio:.1f}, "
        f"largest difference {apart:.3f} documents"
    )
    return ratio if apart <= 1.0 + ROUNDING else 0.0


def compare_proportions(generator: np.random.Generator) -> float:
    """Compare all cells of F1 to F3."""
    cells = table_cells(generator)
    sizes = np.array([cell.size for cell in cells], dtype=np.float64)

    def ours() -> Floats:
        found = document_rates([cell.sum() for cell in cells], sizes)
        return np.stack([found.low, found.high], axis=1)

    return compare("F1-F3 proportions", ours, theirs=lambda: percentile_limits(cells, seed=1), documents=sizes)


def compare_reciprocal_ranks(generator: np.random.Generator) -> float:
    """Compare MRR by language and paraphrase."""
    ranks = generator.integers(1, 9, size=(DOCUMENTS, LANGUAGES * PARAPHRASES))
    values = np.where(ranks <= LANGUAGES, 1.0 / ranks, 0.0)

    def ours() -> Floats:
        found = cluster_shares(values, np.ones_like(values), generator=np.random.default_rng(2))
        return np.stack([found.low, found.high], axis=1)

    documents = np.full(values.shape[1], float(DOCUMENTS))
    return compare(
        "resampled, MRR", ours, theirs=lambda: percentile_limits(list(values.T), seed=2), documents=documents
    )


def compare_differences(generator: np.random.Generator) -> float:
    """Compare the differences of rates of all pairs of languages."""
    leaked = generator.random((LANGUAGES, DOCUMENTS)) < np.array([[0.8], [0.5], [0.4], [0.3], [0.1]])
    pairs = list(combinations(range(LANGUAGES), 2))

    def ours() -> Floats:
        counts = [count_pairs(leaked[a], leaked[b]) for a, b in pairs]
        found = paired_differences(
            [pair.only_a for pair in counts],
            [pair.only_b for pair in counts],
            n_documents=[pair.n_documents for pair in counts],
            generator=np.random.default_rng(3),
        )
        return np.stack([found.low, found.high], axis=1)

    differences = [leaked[a].astype(np.float64) - leaked[b] for a, b in pairs]
    documents = np.full(len(pairs), float(DOCUMENTS))
    return compare(
        "resampled, paired differences",
        ours,
        theirs=lambda: percentile_limits(differences, seed=3),
        documents=documents,
    )


def main() -> int:
    """Run all comparisons; return 1 when limits differ by more than a document or F1-F3 is too slow."""
    generator = np.random.default_rng(2026)
    proportions = compare_proportions(generator)
    resampled = [compare_reciprocal_ranks(generator), compare_differences(generator)]
    if proportions < LEAST_RATIO or min(resampled) == 0.0:
        print(f"FAILED: limits differ by more than one document, or the first ratio is below {LEAST_RATIO:g}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
