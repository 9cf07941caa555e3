"""What several attacks share: anchors of questions, cosines in the attacker's own space, signs of a refusal."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from mragaudit.attacks.pools import Pool, load_pool, require_fields
from mragaudit.attacks.steps import Knowledge, Think, Tools
from mragaudit.errors import ConfigError

Vectors = NDArray[np.float64]


class AnchorShapes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a topic and a title become the anchor of a question."""

    topic: str
    title: str

    def __post_init__(self) -> None:
        require_fields(self.topic, {"topic", "domain"})
        require_fields(self.title, {"title"})


class CommonPool(Pool, frozen=True, kw_only=True):
    """The file that every attack may use."""

    anchors: AnchorShapes
    background: tuple[str, ...]
    """Texts about nothing in common; at least one."""
    refusals: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.background:
            raise ValueError('"background" is empty; cosines are taken against the mean of its texts')


def load_common(folder: Path) -> CommonPool:
    """Return what stands in `common.yaml`; errors as in load_pool."""
    return load_pool(folder, CommonPool, name="common")


def known_anchors(knowledge: Knowledge, shapes: AnchorShapes) -> tuple[str, ...]:
    """Return all anchors: titles where the attacker knows some, else topics, else the domain alone."""
    if knowledge.handles:
        return tuple(shapes.title.format(title=title) for title in knowledge.handles)
    if not knowledge.topics:
        return (knowledge.domain,)
    return tuple(shapes.topic.format(topic=topic, domain=knowledge.domain) for topic in knowledge.topics)


def draw_anchors(tools: Tools, count: int) -> list[str]:
    """Return so many anchors in random order; none comes again before all have come.

    Attacks that draw the same number first ask about the same subjects, since `Tools.rng` is theirs in common.
    """
    anchors = known_anchors(tools.knowledge, load_common(tools.resources).anchors)
    drawn: list[str] = []
    while len(drawn) < count:
        drawn += [anchors[at] for at in tools.rng.permutation(len(anchors))]
    return drawn[:count]


class Space:
    """The attacker's encoder with the mean of unrelated texts taken away, so that unrelated texts lie near cosine 0.

    Thresholds from the literature are for encoders whose unrelated texts do; the centring is ours.
    """

    def __init__(self, embed: Callable[[Sequence[str]], NDArray[np.float32]], *, background: Sequence[str]) -> None:
        self._embed = embed
        self._mean = np.asarray(embed(background), dtype=np.float64).mean(axis=0)
        self._known: dict[str, Vectors] = {}

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimensions); a text at the very mean gets zeros."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
        if unknown:
            self._known.update(zip(unknown, self._centred(unknown), strict=True))
        return np.array([self._known[text] for text in texts]).reshape(len(texts), len(self._mean))

    def _centred(self, texts: Sequence[str]) -> Vectors:
        centred = np.asarray(self._embed(texts), dtype=np.float64) - self._mean
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        return np.asarray(np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0))

    def cosines(self, texts: Sequence[str], others: Sequence[str]) -> Vectors:
        """Return the cosines, shape (len(texts), len(others))."""
        return self.vectors(texts) @ self.vectors(others).T

    def cosine(self, text: str, other: str) -> float:
        """Return the cosine of two texts."""
        return float(self.cosines([text], [other])[0, 0])


def open_space(tools: Tools) -> Space:
    """Return the space of the tools' encoder, centred by the background of `common.yaml`."""
    return Space(tools.embed, background=load_common(tools.resources).background)


def is_refusal(reply: str, *, phrases: Sequence[str]) -> bool:
    """Return whether the attacker takes a reply for a refusal: it is empty, or holds a phrase of one."""
    folded = reply.casefold()
    return not folded.strip() or any(phrase in folded for phrase in phrases)


class Thoughts:
    """Calls of the attacker's own model, up to a limit; None: as many as the attack's loops allow."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.count = 0

    def ask(self, think: Think) -> Generator[Think, str, str]:
        """Return what the model wrote; empty where the limit is reached or the call failed."""
        if self.limit is not None and self.count >= self.limit:
            return ""
        self.count += 1
        return (yield think)


def check_sizes(attack: str, *, at_least: int = 1, **sizes: int) -> None:
    """Raise ConfigError for an option below the least value that makes sense."""
    for option, size in sizes.items():
        if size < at_least:
            raise ConfigError(f'{attack}: "{option}" is {size}; it has to be at least {at_least}')
