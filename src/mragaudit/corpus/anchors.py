"""Anchors: the non-personal handles by which an attacker knows a document."""

from __future__ import annotations

import numpy as np

from mragaudit.corpus.draws import draw_until, fill_pattern, pick
from mragaudit.corpus.templates import TopicTemplates, WordLists


class AnchorSource:
    """Draws anchors; case-folded, none comes twice and none is the beginning of another."""

    def __init__(self, *, words: WordLists, rng: np.random.Generator) -> None:
        self._words = words
        self._rng = rng
        self._taken: list[str] = []

    def draw(self, topic: TopicTemplates) -> str:
        """Return a new anchor of the topic's kind; raises ConfigError when none is left."""
        anchor = draw_until(lambda: self._make(topic), self._usable, what=f"anchor of the kind {topic.anchor_type}")
        self._taken.append(anchor.casefold())
        return anchor

    def _make(self, topic: TopicTemplates) -> str:
        if topic.anchor_pattern:
            return fill_pattern(self._rng, topic.anchor_pattern)
        first, second = (
            pick(self._rng, self._words.project_first),
            pick(self._rng, self._words.project_second),
        )
        return f"Project {first} {second}"

    def _usable(self, anchor: str) -> bool:
        folded = anchor.casefold()
        return not any(other.startswith(folded) or folded.startswith(other) for other in self._taken)
