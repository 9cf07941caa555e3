"""Document bootstrap of shares over trials clustered in documents: block rates, recall, MRR, utility.

Documents that carry the same sums in a cell are exchangeable, so a resample is a multinomial draw over the
distinct pairs of sums: the same distribution as drawing documents one by one, every repeated document
counted as often as it is drawn, at a cost that does not grow with the number of documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from mragaudit.errors import ConfigError, DataError
from mragaudit.stats.intervals import (
    CONFIDENCE,
    FloatArray,
    Interval,
    Intervals,
    bootstrap,
    checked_confidence,
    tail_area,
    wilson,
    wilson_limits,
)

RESAMPLES = 5_000  # the published number
SAME_SHARE = 1e-12  # above the rounding of summed thirds and fifths, below any real difference
CHUNK_WEIGHTS = 4_000_000  # weights held at once: 32 MB as int64, whatever the number of documents


class DocumentKinds(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The distinct pairs of sums that the documents of one cell carry, in ascending order."""

    numerator: FloatArray
    """Sum of the trials' values, shape `(n_kinds,)`."""
    denominator: FloatArray
    """Number of trials, above 0, shape `(n_kinds,)`."""
    count: npt.NDArray[np.int64]
    """Documents of this kind, shape `(n_kinds,)`."""


def checked_resamples(resamples: int) -> int:
    """Return the number of resamples; raises ConfigError below 1."""
    if resamples < 1:
        raise ConfigError(f"resamples must be at least 1, 5000 is the published number; got {resamples}")
    return resamples


def checked_sums(numerators: npt.ArrayLike, denominators: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both as float matrices `(n_documents, n_cells)`; a vector is one cell.

    Raises DataError for unequal shapes, more than two dimensions, or unless 0 <= numerator <= denominator.
    """
    sums = np.asarray(numerators, dtype=np.float64)
    trials = np.asarray(denominators, dtype=np.float64)
    if sums.shape != trials.shape or sums.ndim not in (1, 2):
        shapes = f"{sums.shape} and {trials.shape}"
        raise DataError(f"sums need one shape, (n_documents,) or (n_documents, n_cells); got {shapes}")
    if not bool(np.all((sums >= 0) & (sums <= trials) & np.isfinite(trials))):
        raise DataError("every document needs 0 <= numerator <= denominator: the mean of trial values in [0, 1]")
    return (sums[:, None], trials[:, None]) if sums.ndim == 1 else (sums, trials)


def document_kinds(numerator: FloatArray, denominator: FloatArray) -> DocumentKinds:
    """Return the distinct pairs of sums of one cell with their counts, documents without a trial left out."""
    present = denominator > 0
    # Complex numbers sort by real, then imaginary part: a pair is one value, and one sort finds them all.
    pairs, count = np.unique(numerator[present] + 1j * denominator[present], return_counts=True)
    return DocumentKinds(numerator=pairs.real, denominator=pairs.imag, count=count.astype(np.int64))


def kind_weights(
    count: npt.NDArray[np.int64], *, generator: np.random.Generator, resamples: int = RESAMPLES
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield chunks `(at most resamples, n_kinds)` of how often each kind is drawn, `resamples` rows in all.

    Each row sums to the number of documents: a document drawn twice counts twice. With `count` all ones the
    kinds are the documents themselves. The rows do not depend on the size of the chunks.
    """
    rows = max(1, CHUNK_WEIGHTS // len(count))
    total = int(count.sum())
    for start in range(0, checked_resamples(resamples), rows):
        size = min(rows, resamples - start)
        yield generator.multinomial(total, count / total, size=size)


def resampled_shares(kinds: DocumentKinds, *, generator: np.random.Generator, resamples: int = RESAMPLES) -> FloatArray:
    """Return the ratio of sums in each resample, shape `(resamples,)`; the cell must hold a document."""
    parts = [
        (weights @ kinds.numerator) / (weights @ kinds.denominator)
        for weights in kind_weights(kinds.count, generator=generator, resamples=resamples)
    ]
    return np.concatenate(parts)


def widthless_share(kinds: DocumentKinds, *, confidence: float) -> Interval:
    """Return a Wilson interval on documents for a cell in which every document has the same share.

    Share 0 gives the one-sided upper limit, share 1 the one-sided lower limit, anything between the two-sided
    interval with k = share times n. n counts documents, never trials. This is on the safe side: of all values
    in [0, 1] with a given mean, those that are 0 or 1 vary most.
    """
    documents = int(kinds.count.sum())
    share = float(kinds.numerator[0] / kinds.denominator[0])
    if share == 0.0:
        return wilson(0, documents, side="upper", confidence=confidence)
    if share == 1.0:
        return wilson(documents, documents, side="lower", confidence=confidence)
    total = np.array([float(documents)])
    low, high = wilson_limits(share * total, total, tail=tail_area(confidence, "two"))
    return Interval(rate=share, low=float(low[0]), high=float(high[0]), method="wilson_two_sided")


def kinds_share(kinds: DocumentKinds, *, generator: np.random.Generator, resamples: int, confidence: float) -> Interval:
    """Return the interval of one cell from its kinds of documents; see `cluster_shares`."""
    documents = int(kinds.count.sum())
    if documents == 0:
        return Interval(rate=None, low=None, high=None, method="")
    if np.ptp(kinds.numerator / kinds.denominator) < SAME_SHARE:
        return widthless_share(kinds, confidence=confidence)
    if np.all(kinds.denominator == 1) and np.all((kinds.numerator == 0) | (kinds.numerator == 1)):
        return bootstrap(int(kinds.numerator @ kinds.count), documents, confidence=confidence)
    shares = resampled_shares(kinds, generator=generator, resamples=resamples)
    tail = tail_area(confidence, "two")
    low, high = np.quantile(shares, [tail, 1.0 - tail])
    rate = float((kinds.numerator @ kinds.count) / (kinds.denominator @ kinds.count))
    return Interval(rate=rate, low=float(low), high=float(high), method="bootstrap_document")


def cluster_shares(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    *,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Intervals:
    """Return shares over clustered trials with percentile document-bootstrap limits, cell by cell.

    Both inputs have shape `(n_documents, n_cells)`, or `(n_documents,)` for one cell: the sum of the trials'
    values (each in [0, 1]) and the number of trials of a document. The rate is the ratio of their totals.
    Documents without a trial in a cell do not belong to it; a cell without any is empty.
    Limits are numpy's linear quantiles of the resampled ratios (Efron and Tibshirani 1993, section 13.3),
    with two exceptions: one trial a document, each 0 or 1, takes the binomial quantiles of `bootstrap_cells`;
    and where all documents have the same share a bootstrap has no width, so Wilson's interval on documents
    stands in: one-sided upper for all 0, one-sided lower for all 1, two-sided otherwise.
    One number is taken from the generator, and every cell resamples from it alone: limits depend neither on
    the order of documents nor on which other cells are asked for, and equal cells have equal limits.
    Memory is bounded by `CHUNK_WEIGHTS`. Raises DataError unless 0 <= numerator <= denominator.
    """
    sums, trials = checked_sums(numerators, denominators)
    checked_confidence(confidence)
    checked_resamples(resamples)
    seed = int(generator.integers(2**63))
    cells = [
        kinds_share(
            document_kinds(sums[:, cell], trials[:, cell]),
            generator=np.random.default_rng(seed),
            resamples=resamples,
            confidence=confidence,
        )
        for cell in range(sums.shape[1])
    ]
    return stack(cells)


def cluster_share(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    *,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the share of one cell, inputs of shape `(n_documents,)`; see `cluster_shares`."""
    cells = cluster_shares(numerator, denominator, generator=generator, resamples=resamples, confidence=confidence)
    if len(cells) != 1:
        raise DataError(f"cluster_share takes one cell, cluster_shares many; got {len(cells)}")
    return cells.at(0)


def stack(cells: Sequence[Interval]) -> Intervals:
    """Return the records as arrays, NaN where a number is None."""
    return Intervals(
        rate=np.array([cell.rate for cell in cells], dtype=np.float64),
        low=np.array([cell.low for cell in cells], dtype=np.float64),
        high=np.array([cell.high for cell in cells], dtype=np.float64),
        method=np.array([cell.method for cell in cells], dtype=object),
    )


def resample_statistic(doc_success: Mapping[str, int], drawn_docs: Sequence[str]) -> float | None:
    """Return the share of successes among drawn documents, each counted as often as it was drawn.

    No draws give None. Raises DataError for a document that was never observed.
    """
    unknown = sorted(set(drawn_docs) - set(doc_success))
    if unknown:
        raise DataError(f'drawn document "{unknown[0]}" is not among the {len(doc_success)} observed ones')
    if not drawn_docs:
        return None
    return sum(doc_success[doc] for doc in drawn_docs) / len(drawn_docs)
