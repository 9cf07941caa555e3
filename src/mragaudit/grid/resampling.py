"""How the intervals of the grid's tables are made."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from mragaudit.stats.intervals import Interval, Method

WITHIN_RUN = "within_run"
"""Intervals over items, documents, calls or candidates of the realisations at hand say nothing of other ones."""

_OVER_CALLS: dict[Method, Method] = {
    "bootstrap_document": "bootstrap_calls",
    "bootstrap_paired": "bootstrap_paired_calls",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Resampling:
    """Seed, number and level of a bootstrap."""

    seed: int
    resamples: int
    confidence: float

    def generator(self) -> np.random.Generator:
        """Return the same generator for every interval, so that none depends on which others are made."""
        return np.random.default_rng(self.seed)


def over_calls(interval: Interval) -> Interval:
    """Return an interval whose units are calls under a name that says so."""
    return msgspec.structs.replace(interval, method=_OVER_CALLS.get(interval.method, interval.method))


def scope_of(method: str) -> str:
    """Return of what an interval speaks, `ci_scope` in the tables; empty where there is none."""
    return WITHIN_RUN if method else ""
