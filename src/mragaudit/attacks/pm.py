"""PM, as a prompt-mutation pool: mutants of the prompts that PS asks at the same budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from mragaudit.attacks.common import Space, open_space
from mragaudit.attacks.pools import Pool, load_pool, require_fields
from mragaudit.attacks.ps import SeedPrompt, seed_prompts
from mragaudit.attacks.steps import Ask, Outcome, Steps, Tools, text_only
from mragaudit.errors import ConfigError

ANCHOR = "{anchor}"
DRIFTED = 0.5
UNCHANGED = 0.98
"""Cosine to the seed below or above which a mutant is dropped; ours."""
_SENTENCE = re.compile(r"(?<=[.?!]) +")
_NOISY_SHARE = 0.3


class PmPool(Pool, frozen=True, kw_only=True):
    """The file `pm.yaml`."""

    role_framing: tuple[str, ...]
    output_format: tuple[str, ...]
    indirection: tuple[str, ...]
    translations: dict[str, dict[str, str]]
    """Prompt of PS → language → its rendering."""

    def __post_init__(self) -> None:
        for frame in (*self.role_framing, *self.output_format, *self.indirection):
            require_fields(frame, {"prompt"})
        for seed, renderings in self.translations.items():
            for text in (seed, *renderings.values()):
                require_fields(text, {"anchor"})


Mutator = Callable[[str, PmPool, np.random.Generator], str | None]
"""Template → its mutant, None where the mutator has nothing to work on."""


def _framed(frames: tuple[str, ...], template: str, rng: np.random.Generator) -> str:
    return str(rng.choice(frames)).replace("{prompt}", template)


def _role(template: str, pool: PmPool, rng: np.random.Generator) -> str:
    return _framed(pool.role_framing, template, rng)


def _format(template: str, pool: PmPool, rng: np.random.Generator) -> str:
    return _framed(pool.output_format, template, rng)


def _indirect(template: str, pool: PmPool, rng: np.random.Generator) -> str:
    return _framed(pool.indirection, template, rng)


def _noise(template: str, _pool: PmPool, rng: np.random.Generator) -> str | None:
    """Write some words in capitals and behind two spaces; the anchor stays."""
    words = template.split(" ")
    free = [at for at, word in enumerate(words) if ANCHOR not in word]
    if not free:
        return None
    count = max(1, round(len(free) * _NOISY_SHARE))
    for at in rng.choice(free, size=count, replace=False):
        words[at] = f" {words[at].upper()}"
    return " ".join(words)


def _reorder(template: str, pool: PmPool, rng: np.random.Generator) -> str:
    """Put the sentences of the prompt with its role in another order, the role never first."""
    role, *sentences = _SENTENCE.split(_role("{prompt}", pool, rng).replace("{prompt}", template))
    cut = int(rng.integers(1, len(sentences) + 1))
    return " ".join([*sentences[:cut], role, *sentences[cut:]])


def _translate(template: str, pool: PmPool, rng: np.random.Generator) -> str | None:
    renderings = pool.translations.get(template)
    if not renderings:
        return None
    return renderings[str(rng.choice(sorted(renderings)))]


MUTATORS: dict[str, Mutator] = {
    "role_framing": _role,
    "output_format": _format,
    "indirection": _indirect,
    "spacing_and_case": _noise,
    "sentence_order": _reorder,
    "translation": _translate,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """A question made of a prompt of PS."""

    question: str
    mutator: str
    cosine: float
    """To its seed."""

    @property
    def kept(self) -> bool:
        """Whether it is neither drifted nor unchanged."""
        return DRIFTED <= self.cosine <= UNCHANGED


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptMutation:
    """The prompt-mutation pool; that it is what Mind the Hook (arXiv 2608.09001) calls PM is an assumption.

    Question i is a mutant of question i of PS at the same budget and in the same realisation, so the two are paired.
    `seeds`: `asked`, the prompts that PS asks; `pool_a`, those of its pool A alone, in turn and with PS's anchors,
    which leaves pairs for one question in five. Cosines are taken in a centred space.
    """

    name: ClassVar[str] = "pm"
    mutants_per_seed: int = 3
    seeds: Literal["asked", "pool_a"] = "asked"

    def __post_init__(self) -> None:
        if not 1 <= self.mutants_per_seed <= len(MUTATORS):
            raise ConfigError(
                f'pm: "mutants_per_seed" is {self.mutants_per_seed}; it has to lie between 1 and {len(MUTATORS)}'
            )

    @property
    def paired_with(self) -> str | None:
        """Attack whose question of the same number each question is a variant of; None where it is that of a few."""
        return "ps" if self.seeds == "asked" else None

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask one mutant of each seed; counts of the mutators, and of mutants asked outside the window."""
        pool, seeds, space = load_pool(tools.resources, PmPool, name="pm"), self._seeds(tools), open_space(tools)
        counts = dict.fromkeys((*MUTATORS, "outside_window"), 0)
        for number, seed in enumerate(seeds):
            texts = _mutated(seed, number=number, pool=pool, rng=tools.rng)
            mutant = self._chosen(texts, seed=seed, space=space, counts=counts)
            counts[mutant.mutator] += 1
            counts["outside_window"] += not mutant.kept
            yield Ask(text=mutant.question)
        return Outcome(counts=counts)

    def _seeds(self, tools: Tools) -> list[SeedPrompt]:
        asked = seed_prompts(tools)
        if self.seeds == "asked":
            return asked
        shared = [seed.template for seed in asked if seed.shared]
        return [
            SeedPrompt(template=shared[number % len(shared)], anchor=seed.anchor, shared=True)
            for number, seed in enumerate(asked)
        ]

    def _chosen(self, texts: Mapping[str, str], *, seed: SeedPrompt, space: Space, counts: Mapping[str, int]) -> Mutant:
        """Return of the first mutants that are kept the one whose mutator was used least, else the nearest to it."""
        names, made = list(texts), list[Mutant]()
        for start in range(0, len(names), self.mutants_per_seed):
            tried = names[start : start + self.mutants_per_seed]
            made += _measured({name: texts[name] for name in tried}, seed=seed, space=space)
            kept = [mutant for mutant in made if mutant.kept]
            if kept:
                return min(kept, key=lambda mutant: counts[mutant.mutator])
        return min(made, key=lambda mutant: max(DRIFTED - mutant.cosine, mutant.cosine - UNCHANGED))


def _mutated(seed: SeedPrompt, *, number: int, pool: PmPool, rng: np.random.Generator) -> dict[str, str]:
    """Return a question by each mutator that applies and changes it; another one comes first from seed to seed."""
    order = [list(MUTATORS)[(number + shift) % len(MUTATORS)] for shift in range(len(MUTATORS))]
    made = {name: MUTATORS[name](seed.template, pool, rng) for name in order}
    texts = {name: text.replace(ANCHOR, seed.anchor) for name, text in made.items() if text is not None}
    return {name: text for name, text in texts.items() if text != seed.question}


def _measured(texts: Mapping[str, str], *, seed: SeedPrompt, space: Space) -> list[Mutant]:
    cosines = space.cosines(list(texts.values()), [seed.question])[:, 0]
    return [
        Mutant(question=text, mutator=name, cosine=float(cosine))
        for (name, text), cosine in zip(texts.items(), cosines, strict=True)
    ]
