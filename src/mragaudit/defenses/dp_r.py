"""DP-R: Laplace noise on retrieval scores, and on nothing else.

Source: "Mind the Hook" (arXiv 2608.09001), whose own baseline it is; it gives epsilon and no sensitivity. Sensitivity 1
with scores clipped to [0, 1] is our default, 2 with [-1, 1] the alternative. Epsilon is nominal: the texts of the
documents that come out are released as they are, and a neighbouring collection has other candidates, so there is no
guarantee of differential privacy.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mragaudit.defenses.base import BaseDefense, Cover, LeakClass, checked_positive
from mragaudit.rag.hooks import Turn

Sensitivity = Literal[1, 2]

CLIP: dict[Sensitivity, tuple[float, float]] = {1: (0.0, 1.0), 2: (-1.0, 1.0)}
"""Range of the scores, whose width is the sensitivity."""
_CONTENTS: tuple[LeakClass, ...] = ("email", "person_name", "phone", "id", "verbatim_text")


def with_laplace(
    scores: NDArray[np.float64], *, epsilon: float, sensitivity: Sensitivity, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return clipped scores plus independent Laplace noise of scale sensitivity / epsilon, in the shape given.

    Ties that clipping makes are broken by the noise. Without noise (infinite epsilon) the ranking within the range is
    the clean one.
    """
    low, high = CLIP[sensitivity]
    return np.clip(scores, low, high) + rng.laplace(0.0, sensitivity / epsilon, size=np.shape(scores))


def score_covers(membership: str, *, contents: str) -> tuple[Cover, ...]:
    """Return what a defense on scores does: about membership itself, and about contents only by way of retrieval."""
    direct = Cover(leak_class="membership", hook="scores", direct=True, limits=membership)
    indirect = (Cover(leak_class=kind, hook="scores", direct=False, limits=contents) for kind in _CONTENTS)
    return (direct, *indirect)


class DpRetrieval(BaseDefense):
    """Fresh noise on all scores at every question; documents and replies pass as they are."""

    name = "dp_r"
    title = "DP-R (noise on scores, nominal epsilon)"
    declared_hooks = ("scores",)
    random_hooks = ("scores",)
    covers = score_covers(
        "noise averages out over repeated questions; a document that is retrieved answers for itself",
        contents="whatever is retrieved reaches the model and the asker unchanged",
    )

    def __init__(self, *, epsilon: float = 1.0, sensitivity: Sensitivity = 1) -> None:
        self.epsilon = checked_positive(epsilon, option="dp_r.epsilon")
        self.sensitivity = sensitivity

    def perturb_scores(self, scores: NDArray[np.float64], *, turn: Turn) -> NDArray[np.float64]:
        """Return the noisy scores of this question."""
        return with_laplace(scores, epsilon=self.epsilon, sensitivity=self.sensitivity, rng=turn.rng)
