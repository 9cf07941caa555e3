"""Seeded generators: one a stage, none global."""

from __future__ import annotations

import hashlib

import numpy as np


def generator_for(seed: int, name: str) -> np.random.Generator:
    """Return the generator of a stage, determined by the config's seed and the stage's name alone."""
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])
