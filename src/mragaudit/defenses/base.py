"""What every defense inherits: hooks that hand on what they got, and who it is."""

from __future__ import annotations

# ruff: noqa: ARG002  # a hook takes what the protocol hands it
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mragaudit.errors import ConfigError
from mragaudit.protocols import GenerateRequest
from mragaudit.rag.hooks import Turn

HookName = Literal["query", "scores", "documents", "generation", "response"]
LeakClass = Literal["email", "person_name", "phone", "id", "membership", "verbatim_text"]

HOOK_ORDER: tuple[HookName, ...] = ("query", "scores", "documents", "generation", "response")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cover:
    """What a defense does about one class of leaks at one hook."""

    leak_class: LeakClass
    hook: HookName
    direct: bool
    """True: it acts on the leaking thing itself. False: it only changes how often that is retrieved."""
    limits: str
    """What gets past it all the same."""


class BaseDefense:
    """A defense that does nothing; subclasses override the hooks at which they act and declare them."""

    name: ClassVar[str] = ""
    """Identity in config, arms and records."""
    title: ClassVar[str] = ""
    """What a person reads in tables."""
    declared_hooks: tuple[str, ...] = ()
    random_hooks: tuple[str, ...] = ()
    """Declared hooks at which it draws noise whose size follows its epsilon."""
    covers: tuple[Cover, ...] = ()

    def process_query(self, query: str, *, turn: Turn) -> str | None:
        """Return the question as it is."""
        return query

    def perturb_scores(self, scores: NDArray[np.float64], *, turn: Turn) -> NDArray[np.float64]:
        """Return the scores as they are."""
        return scores

    def rewrite_documents(self, documents: Sequence[str], *, turn: Turn) -> list[str]:
        """Return the texts as they are."""
        return list(documents)

    def process_generation(self, request: GenerateRequest, *, turn: Turn) -> GenerateRequest:
        """Return the request as it is."""
        return request

    def process_response(self, response: str, *, turn: Turn) -> str:
        """Return the reply as it is."""
        return response


def checked_positive(value: float, *, option: str) -> float:
    """Return the value; raises ConfigError, naming the option, for zero, a negative number or NaN."""
    if not value > 0:
        raise ConfigError(f"{option} is {value}; it has to be above 0")
    return value
