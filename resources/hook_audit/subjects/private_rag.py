"""A noisy score filter with a stubbed answer side: the mask is computed and then dropped.

Audit subject: our reconstruction of a failure mode that "Mind the Hook" (arXiv 2608.09001) describes. It is not code
of the papers that it is named after, which may have no such fault.
"""

import random
import re

EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")


class PrivateRAGFilter:
    """Above-threshold filter on scores, with noise on threshold and scores."""

    declared_hooks = ("scores", "response")

    def __init__(self, epsilon: float = 1.0, threshold: float = 0.5, k: int = 5) -> None:
        self.epsilon = epsilon
        self.threshold = threshold
        self.k = k

    def perturb_scores(self, scores: list[float], rng: random.Random) -> list[float]:
        """Keep at most k scores above a noisy threshold; the others count as not found."""
        noisy_threshold = self.threshold + rng.gauss(0.0, 2 * self.k / self.epsilon)
        kept = 0
        filtered = []
        for score in scores:
            if kept < self.k and score + rng.gauss(0.0, 4 * self.k / self.epsilon) >= noisy_threshold:
                kept += 1
                filtered.append(score)
            else:
                filtered.append(float("-inf"))
        return filtered

    def process_generation(self, logits: list[float]) -> list[float]:
        """Guard the generation."""
        raise NotImplementedError

    def process_response(self, response: str) -> str:
        """Mask what the filter let through."""
        masked = EMAIL.sub("[EMAIL]", response)
        if masked == response:
            return response
        return response
