"""A classifier that sees documents alone, never the audited system: it finds out whether a split leaks by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy import stats as distributions

from mragaudit.stats.agreement import auc
from mragaudit.text.tokens import tokens

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

N_FOLDS = 5
PENALTY = 1.0  # L2, on rows of about length 1
MIN_A_SIDE = 4  # fewer leave folds in which a side has one document or none to learn from
PERMUTATIONS = 199
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class BlindAuc:
    """How well documents alone tell members from non-members."""

    auc: float
    """Of cross-validated ranks."""
    low: float
    """One-sided 95 % lower bound: the AUC less what 95 % of deals of the documents stay within above one half."""
    n_folds: int


def blind_auc(
    texts: Sequence[str], is_member: BoolArray, *, generator: np.random.Generator, permutations: int = PERMUTATIONS
) -> BlindAuc:
    """Return the cross-validated AUC of a ridge classifier on word n-grams and on the shape of texts.

    Features are the words and word pairs that stand in at least two documents (present or not, each document's
    row of length 1), and beside them five standardised figures of shape: length in characters and in words, shares
    of digits, capitals and punctuation. Sides are weighted equally; scores become ranks within their fold.
    The bound comes from dealing the documents anew onto members and non-members of the same folds and fitting
    again: it exceeds one half in at most 5 % of splits without any signal, which a bootstrap of the scores does
    not hold, since that takes the fitted classifiers as given. Each side needs at least four documents.
    """
    kernel = _kernel(texts)
    n_folds = min(N_FOLDS, int(is_member.sum()) // 2, int((~is_member).sum()) // 2)
    folds = _folds(is_member, n_folds, generator=generator)
    found = _cross_validated(kernel, is_member, folds)
    null = np.empty(permutations)
    for number in range(permutations):
        deal = generator.permutation(len(texts))
        null[number] = _cross_validated(kernel[np.ix_(deal, deal)], is_member, folds)
    reach = np.quantile(np.append(null, found), CONFIDENCE, method="higher")
    return BlindAuc(auc=found, low=max(0.0, found - (float(reach) - 0.5)), n_folds=n_folds)


def _folds(is_member: BoolArray, n_folds: int, *, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return each document's fold; every fold has its share of both sides."""
    folds = np.zeros(len(is_member), dtype=np.int64)
    for side in (is_member, ~is_member):
        folds[generator.permutation(np.flatnonzero(side))] = np.arange(side.sum()) % n_folds
    return folds


def _cross_validated(kernel: FloatArray, is_member: BoolArray, folds: npt.NDArray[np.int64]) -> float:
    """Return the AUC of ranks within folds, whose classifiers saw the other folds."""
    scores = np.zeros(len(is_member))
    for fold in range(int(folds.max()) + 1):
        held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        weights = _fit(kernel[np.ix_(rest, rest)], is_member[rest])
        # Rounded, so that equal documents are tied whatever the order of summation.
        ranks = distributions.rankdata(np.round(kernel[np.ix_(held, rest)] @ weights, 9))
        scores[held] = (ranks - 0.5) / len(held)
    return auc(scores[is_member], scores[~is_member]) or 0.0


def _fit(kernel: FloatArray, is_member: BoolArray) -> FloatArray:
    """Return dual weights of the ridge regression on a target of mean 0 in which both sides weigh the same."""
    target = np.where(is_member, 0.5 / is_member.mean(), -0.5 / (~is_member).mean())
    penalised = kernel + PENALTY * np.eye(len(kernel))
    return np.asarray(linalg.solve(penalised, target, assume_a="pos", check_finite=False), dtype=np.float64)


def _kernel(texts: Sequence[str]) -> FloatArray:
    """Return inner products of all documents' features, shape (n_documents, n_documents)."""
    grams = _gram_rows(texts)
    shape = _shape_rows(texts)
    return np.asarray((grams @ grams.T).toarray() + shape @ shape.T / shape.shape[1], dtype=np.float64)


def _gram_rows(texts: Sequence[str]) -> sparse.csr_array:
    numbers: dict[str, int] = {}
    rows, columns = [], []
    for row, text in enumerate(texts):
        words = tokens(text.casefold())
        grams = {*words, *map(" ".join, pairwise(words))}
        for gram in sorted(grams):
            rows.append(row)
            columns.append(numbers.setdefault(gram, len(numbers)))
    table = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(texts), max(1, len(numbers))))
    shared = table[:, np.flatnonzero(table.sum(axis=0) > 1)]
    lengths = np.sqrt(np.maximum(1.0, shared.sum(axis=1)))
    return sparse.csr_array(sparse.diags_array(1 / lengths) @ shared)


def _shape_rows(texts: Sequence[str]) -> FloatArray:
    figures = np.array([_shape(text) for text in texts])
    spread = figures.std(axis=0)
    return np.asarray((figures - figures.mean(axis=0)) / np.where(spread > 0, spread, 1.0), dtype=np.float64)


def _shape(text: str) -> tuple[float, ...]:
    size = max(1, len(text))
    counts = (
        sum(map(str.isdecimal, text)),
        sum(map(str.isupper, text)),
        sum(not (char.isalnum() or char.isspace()) for char in text),
    )
    return (np.log1p(len(text)), np.log1p(len(text.split())), *(count / size for count in counts))
