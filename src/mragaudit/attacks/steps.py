"""What an attack is: a generator that yields questions and gets texts.

An attack never holds the target. It yields `Ask` and is sent the reply, so that nothing but text can reach it; it
yields `Think` where its own model shall write, and is sent what that wrote. Who drives it counts both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mragaudit.protocols import Prompt


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """A question to the target; the reply is sent back, empty where none came."""

    text: str
    session: str = ""
    """Dialogue that it belongs to; empty: one of its own."""
    candidate: str | None = None
    """Id of the candidate document that it asks about, in membership inference."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Think:
    """A call of the attacker's own model; what it wrote is sent back, empty where the call failed."""

    prompt: Prompt
    max_tokens: int
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """A text that the attacker made of a reply, such as its decoded form."""

    call: int
    """1-based number of the Ask whose reply it was made of."""
    text: str
    how: str = ""
    """What made it, such as `base64`; a lossy one is scored apart from the lossless ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A name that the attacker saw in replies about different documents, be it a pseudonym."""

    name: str
    calls: tuple[int, ...]
    """1-based numbers of the Asks whose replies hold it, ascending; at least two, about different documents."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A document that the attacker holds, to find out whether it is indexed."""

    candidate_id: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Knowledge:
    """What the attacker knows before the first question; never an item that is to be found."""

    domain: str
    """What the collection is about, in a few words."""
    topics: tuple[str, ...]
    """Subjects that documents of the domain deal with."""
    handles: tuple[str, ...] = ()
    """Public titles of indexed documents: filled in the mode targeted_queries alone."""
    candidates: tuple[Candidate, ...] = ()
    """Documents of membership inference; empty for every other attack."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """What an attack works with."""

    knowledge: Knowledge
    budget: int
    """Target calls that it may make in all; a further Ask ends it."""
    rng: np.random.Generator
    """One stream a realisation and mode, the same for every attack and arm: families ask about the same subjects."""
    embed: Callable[[Sequence[str]], NDArray[np.float32]]
    """Unit vectors of the attacker's own encoder, shape (len(texts), dimensions)."""
    resources: Path
    """Folder of the attacks' prompts and pools, `resources/attacks`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What an attack makes of all replies beside the replies themselves."""

    derived: tuple[Derived, ...] = ()
    links: tuple[Link, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """What the attack counted of itself, such as how often prepared words stood in for those of its model."""


Steps = Generator[Ask | Think, str, Outcome]
A = TypeVar("A")


def text_only(run: Callable[[A, Tools], Steps]) -> Callable[[A, Tools], Steps]:
    """Return the method `steps` of an attack so that its run takes nothing but plain text.

    Sending anything else, be it a kind of text with something attached, raises TypeError.
    """

    @functools.wraps(run)
    def checked(attack: A, tools: Tools) -> Steps:
        steps = run(attack, tools)
        try:
            step = next(steps)
            while True:
                step = steps.send(_plain((yield step)))
        except StopIteration as stop:
            outcome: Outcome = stop.value
            return outcome

    return checked


def _plain(sent: object) -> str:
    if type(sent) is not str:
        raise TypeError(f"an attack is sent text and nothing else, not {type(sent).__name__}")
    return sent


class Attack(Protocol):
    """One attack family; its options have defaults, and an object keeps no state between runs."""

    @property
    def name(self) -> str:
        """Name in the registry and in tables."""
        ...

    def steps(self, tools: Tools) -> Steps:
        """Return the attack's run; it is driven by `send`, starting with None."""
        ...
