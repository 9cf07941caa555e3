"""What an attack is: a generator that yields questions and gets texts.

An attack never holds the target. It yields `Ask` and is sent the reply, so that nothing but text can reach it; it
yields `Think` where its own model shall write, and is sent what that wrote. Who drives it counts both.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

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
    embed: Callable[[Sequence[str]], NDArray[np.float32]]
    """Unit vectors of the attacker's own encoder, shape (len(texts), dimensions)."""
    resources: Path
    """Folder of prompts and pools."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What an attack makes of all replies beside the replies themselves."""

    derived: tuple[Derived, ...] = field(default=())


Steps = Generator[Ask | Think, str, Outcome]


class Attack(Protocol):
    """One attack family; objects are made without arguments and keep no state between runs."""

    name: str

    def steps(self, tools: Tools) -> Steps:
        """Return the attack's run; it is driven by `send`, starting with None."""
        ...
