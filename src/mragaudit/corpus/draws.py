"""Small draws that all generators of text share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from mragaudit.errors import ConfigError

T = TypeVar("T")

MAX_TRIES = 2000
"""Tries before a source counts as exhausted; with nine of ten values taken, all fail once in 10^91."""

# Without vowels, so that no code spells a word.
CODE_LETTERS = "BCDFGHJKLMNPQRTVWXYZ"


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Return one of the options, all equally likely."""
    return options[int(rng.integers(len(options)))]


def fill_pattern(rng: np.random.Generator, pattern: str) -> str:
    """Return the pattern with each `#` replaced by a digit and each `?` by a capital letter.

    A run of digits never starts with 0.
    """
    out: list[str] = []
    for mark in pattern:
        if mark == "#":
            lowest = 0 if out and out[-1].isdigit() else 1
            out.append(str(rng.integers(lowest, 10)))
        else:
            out.append(pick(rng, CODE_LETTERS) if mark == "?" else mark)
    return "".join(out)


def draw_until(
    make: Callable[[], T], accept: Callable[[T], bool], *, what: str, remedy: str = "lower corpus.n_documents"
) -> T:
    """Return the first draw that is accepted; raises ConfigError when `MAX_TRIES` draws are not."""
    for _ in range(MAX_TRIES):
        drawn = make()
        if accept(drawn):
            return drawn
    raise ConfigError(f"no unused {what} is left after {MAX_TRIES} tries; {remedy}")
