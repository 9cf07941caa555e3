"""Drives attacks as the harness does, against replies and an attacker's model that tests choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mragaudit.attacks.steps import Ask, Attack, Candidate, Knowledge, Outcome, Think, Tools
from mragaudit.embed.hashing import HashingEmbedder

RESOURCES = Path(__file__).parents[2] / "resources" / "attacks"
TOPICS = ("budget", "travel costs", "kick-off meeting", "test results", "training", "shipping dates")
Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What an attack did."""

    asks: tuple[Ask, ...]
    thinks: tuple[Think, ...]
    replies: tuple[str, ...]
    outcome: Outcome

    @property
    def questions(self) -> list[str]:
        """Texts of the asks."""
        return [ask.text for ask in self.asks]


def make_tools(
    *,
    budget: int = 8,
    seed: int = 0,
    handles: Sequence[str] = (),
    topics: Sequence[str] = TOPICS,
    candidates: Sequence[Candidate] = (),
    embed: Embed | None = None,
) -> Tools:
    """Return tools with the packaged prompts and the hashing encoder."""
    knowledge = Knowledge(
        domain="company e-mail", topics=tuple(topics), handles=tuple(handles), candidates=tuple(candidates)
    )
    return Tools(
        knowledge=knowledge,
        budget=budget,
        rng=np.random.default_rng(seed),
        embed=embed or HashingEmbedder().embed_queries,
        resources=RESOURCES,
    )


def silent(_think: Think) -> str:
    """Answer as a model whose calls fail."""
    return ""


def drive(
    attack: Attack,
    reply: Callable[[Ask], str],
    *,
    tools: Tools,
    think: Callable[[Think], str] = silent,
    watch: Callable[[Any], None] | None = None,
) -> Run:
    """Return what the attack did; `watch` is given the generator before each step."""
    asks: list[Ask] = []
    thinks: list[Think] = []
    replies: list[str] = []
    steps = attack.steps(tools)
    sent: str | None = None
    while True:
        if watch is not None:
            watch(steps)
        try:
            step = steps.send(sent)  # type: ignore[arg-type]  # None starts it
        except StopIteration as stop:
            return Run(asks=tuple(asks), thinks=tuple(thinks), replies=tuple(replies), outcome=stop.value)
        if isinstance(step, Ask):
            asks.append(step)
            sent = reply(step)
            replies.append(sent)
        else:
            thinks.append(step)
            sent = think(step)


class EchoTarget:
    """A target without a defense that replies with the documents it retrieves, by trigrams."""

    def __init__(self, documents: Sequence[str], *, k: int = 3) -> None:
        self.documents = list(documents)
        self.k = k
        self.retrieved: set[int] = set()
        self._embed = HashingEmbedder().embed_documents
        self._vectors = self._embed(self.documents)

    def __call__(self, ask: Ask) -> str:
        """Return the texts of the k nearest documents, one a line."""
        scores = self._vectors @ self._embed([ask.text])[0]
        best = np.argsort(-scores, kind="stable")[: self.k]
        self.retrieved.update(int(at) for at in best)
        return "\n".join(self.documents[at] for at in best)
