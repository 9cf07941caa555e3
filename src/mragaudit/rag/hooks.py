"""The places between the parts of the pipeline at which a defense may act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mragaudit.protocols import GenerateRequest

REFUSED_SCORE = -np.inf
"""Score of a document that must not be retrieved."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """What a hook may know of the call in which it runs."""

    principal: str
    """Who asks, over all of their sessions."""
    session: str
    """Dialogue; an asker may open as many as they like."""
    rng: np.random.Generator
    """Noise of this call alone, determined by seed, attack and number of the call, not by the defense."""


class Defense(Protocol):
    """What the pipeline asks of a defense; each hook hands on what the next part gets.

    A defense may keep state over the calls of one cell; every cell gets a new object.
    """

    declared_hooks: tuple[str, ...]
    """Hooks at which it means to act: query, scores, documents, generation, response."""

    def process_query(self, query: str, *, turn: Turn) -> str | None:
        """H0: return the question that is searched and answered; None refuses it."""
        ...

    def perturb_scores(self, scores: NDArray[np.float64], *, turn: Turn) -> NDArray[np.float64]:
        """H1: return the scores that rank, shape (n_documents,); REFUSED_SCORE keeps a document out."""
        ...

    def rewrite_documents(self, documents: Sequence[str], *, turn: Turn) -> list[str]:
        """H2: return the texts that the model will see, one a document."""
        ...

    def process_generation(self, request: GenerateRequest, *, turn: Turn) -> GenerateRequest:
        """H3: return what the model is asked to compute."""
        ...

    def process_response(self, response: str, *, turn: Turn) -> str:
        """H4: return what the asker gets."""
        ...
