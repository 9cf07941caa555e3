"""Several defenses as one, in a stated order.

The first one stated stands nearest to the asker: it sees the question first and the reply last. So scores, documents
and the request pass the parts in the stated order, on their way to the model, and the reply passes them in the reverse
order. The outermost part has the last word on what the asker gets, and a question that it refuses costs no budget of
those behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mragaudit.defenses.base import HOOK_ORDER, BaseDefense
from mragaudit.protocols import GenerateRequest
from mragaudit.rag.hooks import REFUSED_SCORE, Turn


class Composition(BaseDefense):
    """The parts in their order; they share the noise of the call, so the first one draws what it would draw alone."""

    def __init__(self, parts: Sequence[BaseDefense] = ()) -> None:
        self.parts = tuple(parts)
        self.declared_hooks = _union([part.declared_hooks for part in self.parts])
        self.random_hooks = _union([part.random_hooks for part in self.parts])

    def process_query(self, query: str, *, turn: Turn) -> str | None:
        """Return what all parts make of the question; the first refusal ends it."""
        current: str | None = query
        for part in self.parts:
            if current is None:
                return None
            current = part.process_query(current, turn=turn)
        return current

    def perturb_scores(self, scores: NDArray[np.float64], *, turn: Turn) -> NDArray[np.float64]:
        """Return what all parts make of the scores; a document that one refused stays refused."""
        for part in self.parts:
            scores = np.where(scores == REFUSED_SCORE, REFUSED_SCORE, part.perturb_scores(scores, turn=turn))
        return scores

    def rewrite_documents(self, documents: Sequence[str], *, turn: Turn) -> list[str]:
        """Return what all parts make of the texts."""
        for part in self.parts:
            documents = part.rewrite_documents(documents, turn=turn)
        return list(documents)

    def process_generation(self, request: GenerateRequest, *, turn: Turn) -> GenerateRequest:
        """Return what all parts make of the request."""
        for part in self.parts:
            request = part.process_generation(request, turn=turn)
        return request

    def process_response(self, response: str, *, turn: Turn) -> str:
        """Return what all parts make of the reply, the last one stated first."""
        for part in reversed(self.parts):
            response = part.process_response(response, turn=turn)
        return response


def _union(hooks: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    named = {hook for each in hooks for hook in each}
    return tuple(hook for hook in HOOK_ORDER if hook in named)
