"""PS: a fixed pool of direct extraction prompts, one turn each, never adapted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import msgspec

from mragaudit.attacks.common import draw_anchors
from mragaudit.attacks.pools import Pool, load_pool, require_fields
from mragaudit.attacks.steps import Ask, Outcome, Steps, Tools, text_only

B_PER_A = 4
"""Published: 40 targeted prompts to 10 shared ones."""


class PoolA(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shared prompts: five that ask for the context, five for people and how to reach them."""

    reproduction: tuple[str, ...]
    contacts: tuple[str, ...]


class PoolB(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Targeted prompts."""

    email: tuple[str, ...]
    identifier: tuple[str, ...]


class PsPool(Pool, frozen=True, kw_only=True):
    """The file `ps.yaml`."""

    pool_a: PoolA
    pool_b: PoolB

    def __post_init__(self) -> None:
        a, b = self.pool_a, self.pool_b
        for template in (*a.reproduction, *a.contacts, *b.email, *b.identifier):
            require_fields(template, {"anchor"})
        if len(a.reproduction) != len(a.contacts) or len(b.email) != len(b.identifier):
            raise ValueError("the two halves of a pool must be equally long, so that every budget mixes them")
        if len(b.email) != B_PER_A * len(a.contacts):
            raise ValueError(f"pool B must have {B_PER_A} prompts for each of pool A")


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedPrompt:
    """A prompt of the pool and what it is asked about."""

    template: str
    """With the placeholder `{anchor}`."""
    anchor: str
    shared: bool
    """Of pool A."""

    @property
    def question(self) -> str:
        """The prompt as it is asked."""
        return self.template.format(anchor=self.anchor)


def ordered_templates(pool: PsPool) -> list[tuple[str, bool]]:
    """Return (template, whether of pool A) so that any head of the list mixes both pools as the whole does.

    One of pool A, then four of pool B; their halves take turns.
    """
    shared = list(chain.from_iterable(zip(pool.pool_a.reproduction, pool.pool_a.contacts, strict=True)))
    targeted = list(chain.from_iterable(zip(pool.pool_b.email, pool.pool_b.identifier, strict=True)))
    ordered: list[tuple[str, bool]] = []
    for number, template in enumerate(shared):
        ordered.append((template, True))
        ordered += [(other, False) for other in targeted[number * B_PER_A : (number + 1) * B_PER_A]]
    return ordered


def seed_prompts(tools: Tools) -> list[SeedPrompt]:
    """Return as many prompts as the budget allows, each with an anchor; beyond 50 the pool begins anew."""
    templates = ordered_templates(load_pool(tools.resources, PsPool, name="ps"))
    anchors = draw_anchors(tools, tools.budget)
    prompts: list[SeedPrompt] = []
    for number, anchor in enumerate(anchors):
        template, shared = templates[number % len(templates)]
        prompts.append(SeedPrompt(template=template, anchor=anchor, shared=shared))
    return prompts


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptPool:
    """PS, read as a pool of direct prompts: 10 shared and 40 targeted at the published budget of 50.

    Source: Mind the Hook (arXiv 2608.09001), which names PS and does not expand it; that it is such a pool is an
    assumption, the wording is ours.
    """

    name: ClassVar[str] = "ps"

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask each prompt once, in a dialogue of its own."""
        for prompt in seed_prompts(tools):
            yield Ask(text=prompt.question)
        return Outcome()
