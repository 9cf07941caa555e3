"""How the intervals of the grid's tables are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WITHIN_RUN = "within_run"
"""Intervals over items, documents, calls or candidates of the realisations at hand say nothing of other ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resampling:
    """Seed, number and level of a bootstrap."""

    seed: int
    resamples: int
    confidence: float

    def generator(self) -> np.random.Generator:
        """Return the same generator for every interval, so that none depends on which others are made."""
        return np.random.default_rng(self.seed)


def scope_of(method: str) -> str:
    """Return of what an interval speaks, `ci_scope` in the tables; empty where there is none."""
    return WITHIN_RUN if method else ""
