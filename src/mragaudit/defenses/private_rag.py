"""Private-RAG as "Mind the Hook" (arXiv 2608.09001) has it: a noisy filter on retrieval scores.

Neither Koga et al. (arXiv 2412.04697), which inspired it, nor Wu et al. (arXiv 2511.07637), which bears the name; both
of those also act on generation. The source gives one phrase; the sparse-vector form below is ours. Epsilon is nominal:
the sparse vector technique speaks of the answers "above or below", and the texts of the kept documents are released.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mragaudit.defenses.base import BaseDefense, checked_positive
from mragaudit.defenses.dp_r import CLIP, Sensitivity, score_covers
from mragaudit.errors import ConfigError
from mragaudit.rag.hooks import REFUSED_SCORE, Turn


def public_threshold(scores: NDArray[np.float64], *, k: int, sensitivity: Sensitivity = 1) -> float:
    """Return the median over public queries of the k-th best score; `scores` has shape (n_queries, n_documents).

    Scores are clipped first, as the filter clips those that it compares with the threshold.
    Raises ConfigError where there is no query or fewer than k documents.
    """
    n_queries, n_documents = scores.shape
    if not n_queries or n_documents < k:
        raise ConfigError(
            f"private_rag: {n_queries} public queries on {n_documents} documents give no threshold for k = {k}; "
            "there have to be at least one query and k documents"
        )
    clipped = np.clip(scores, *CLIP[sensitivity])
    return float(np.median(np.partition(clipped, -k, axis=1)[:, -k]))


class PrivateRagFilter(BaseDefense):
    """Documents whose noisy score reaches a noisy threshold, in random order, until k are kept; all others are refused.

    Kept documents keep their scores. Noise: Laplace(2 k s / epsilon) on the threshold, Laplace(4 k s / epsilon) on each
    score clipped to the range of width s (Dwork and Roth 2014, algorithm 2, for k answers above).
    """

    name = "private_rag"
    title = "Private-RAG (noisy score filter, nominal epsilon)"
    declared_hooks = ("scores",)
    random_hooks = ("scores",)
    covers = score_covers(
        "noise averages out over repeated questions; a document that is kept answers for itself",
        contents="whatever is kept reaches the model and the asker unchanged",
    )

    def __init__(
        self, *, epsilon: float = 1.0, k: int = 5, threshold: float = 0.5, sensitivity: Sensitivity = 1
    ) -> None:
        self.epsilon = checked_positive(epsilon, option="private_rag.epsilon")
        if k < 1:
            raise ConfigError(f"private_rag.k is {k}; at least 1 document has to be allowed")
        low, high = CLIP[sensitivity]
        if not low <= threshold <= high:
            raise ConfigError(f"private_rag.threshold is {threshold}; scores are clipped to {low:g} to {high:g}")
        self.k = k
        self.threshold = threshold
        self.sensitivity = sensitivity

    def perturb_scores(self, scores: NDArray[np.float64], *, turn: Turn) -> NDArray[np.float64]:
        """Return the scores with every document refused but at most k."""
        scale = self.k * self.sensitivity / self.epsilon
        count = len(scores)
        threshold = self.threshold + turn.rng.laplace(0.0, 2 * scale)
        order = turn.rng.permutation(count)
        noise = turn.rng.laplace(0.0, 4 * scale, size=count)
        above = np.clip(scores, *CLIP[self.sensitivity])[order] + noise >= threshold
        kept = order[above & (np.cumsum(above) <= self.k)]
        filtered = np.full(count, REFUSED_SCORE)
        filtered[kept] = np.asarray(scores)[kept]
        return filtered
