"""Seeded generators: one a stage, none global."""

from __future__ import annotations

import hashlib

import numpy as np


def rank_of(seed: int, name: str, item: str) -> str:
    """Return where an item stands in a random order that depends on the seed, the order's name and the item alone.

    Sorted by it, items stand in the same order however they are dealt into shards.
    """
    return hashlib.sha256(f"{seed}/{name}/{item}".encode()).hexdigest()


def generator_for(seed: int, name: str) -> np.random.Generator:
    """Return the generator of a stage, determined by the config's seed and the stage's name alone."""
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])
