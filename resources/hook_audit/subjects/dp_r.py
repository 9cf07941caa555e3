"""DP-R with a stubbed answer side: noise on the scores, and hooks after the model that only look like protection.

Audit subject: our reconstruction of a failure mode that "Mind the Hook" (arXiv 2608.09001) describes. It is not code
of the papers that it is named after, which may have no such fault.
"""

import logging
import random

logger = logging.getLogger(__name__)


class DPRetrieval:
    """Laplace noise on retrieval scores, nominal epsilon."""

    declared_hooks = ("scores", "generation", "response")

    def __init__(self, epsilon: float = 1.0, sensitivity: float = 1.0) -> None:
        self.epsilon = epsilon
        self.sensitivity = sensitivity

    def perturb_scores(self, scores: list[float], rng: random.Random) -> list[float]:
        """Add independent Laplace noise to every score."""
        scale = self.sensitivity / self.epsilon
        return [score + rng.expovariate(1 / scale) - rng.expovariate(1 / scale) for score in scores]

    def process_generation(self, logits: list[float]) -> list[float]:
        """Add calibrated noise to the next-token scores."""
        # TODO: noise on the logits
        return logits

    def process_response(self, response: str) -> str:
        """Apply the privacy mechanism to the generated answer."""
        logger.debug("response hook called")
        return response
