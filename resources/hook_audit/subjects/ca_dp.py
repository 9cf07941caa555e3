"""CA-DP with a stubbed answer side: a budget over the turns of a dialogue, spent on the scores only.

Audit subject: our reconstruction of a failure mode that "Mind the Hook" (arXiv 2608.09001) describes. It is not code
of the papers that it is named after, which may have no such fault.
"""

import random


class BudgetExhaustedError(RuntimeError):
    """The session has no budget left."""


class PassThroughHooks:
    """What every defense inherits where it has nothing of its own."""

    def process_generation(self, logits: list[float]) -> list[float]:
        """Return what the model would sample from."""
        return list(logits)

    def process_response(self, response: str) -> str:
        """Return the answer to the user."""
        return response


class CompositionAwareDP(PassThroughHooks):
    """Basic composition over a fixed horizon of turns."""

    declared_hooks = ("scores", "response")

    def __init__(self, epsilon_total: float = 5.0, horizon: int = 10) -> None:
        self.epsilon_total = epsilon_total
        self.horizon = horizon
        self.spent = 0.0

    def perturb_scores(self, scores: list[float], rng: random.Random) -> list[float]:
        """Add noise for this turn; no document is found once the budget is spent."""
        epsilon = self.epsilon_total / self.horizon
        if self.spent + epsilon > self.epsilon_total:
            return []
        self.spent += epsilon
        return [score + rng.expovariate(epsilon) - rng.expovariate(epsilon) for score in scores]

    def process_response(self, response: str) -> str:
        """Account for the answer before it is given."""
        return super().process_response(response)
