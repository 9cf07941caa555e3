"""The section `hook_audit`: the grid of attacks and defenses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from mragaudit.config.section import Section, require_plugin

LEAST_DEVELOPMENT_SEEDS = 2
GridCorpus = Literal["email", "business", "pubmedqa"]
ItemCorpus = Literal["email", "business"]
"""Those with planted items; PubMedQA has none that could be recovered."""
GridMode = Literal["in_domain_queries", "targeted_queries"]
CanaryClass = Literal["email", "person_name", "phone", "id"]
Seeds = tuple[Annotated[int, Field(ge=0)], ...]
"""Of generators, which take no negative ones."""
Combination = Annotated[tuple[str, ...], Field(min_length=1)]
"""Defenses in their order; one alone is a combination of one."""
MEMBERSHIP_ATTACK = "mi"


def _distinct(values: Iterable[object], *, what: str) -> None:
    """Raise ValueError for a value that stands twice: two cells would have one name."""
    for value, count in Counter(values).items():
        if count > 1:
            raise ValueError(f"{what} {value} stands twice")


def _known_attack(name: str) -> str:
    require_plugin("attack", name)
    return name


def _known_combinations(combinations: tuple[Combination, ...]) -> tuple[Combination, ...]:
    for parts in combinations:
        for name in parts:
            require_plugin("defense", name)
        _distinct(parts, what=f"in the combination [{', '.join(parts)}] the defense")
        if len(parts) > 1 and "none" in parts:
            raise ValueError(f"[{', '.join(parts)}] combines none with a defense; leave none out")
    _distinct((f"[{', '.join(parts)}]" for parts in combinations), what="the combination")
    return combinations


def _known_extraction(name: str) -> str:
    require_plugin("attack", name)
    if name == MEMBERSHIP_ATTACK:
        raise ValueError(f'"{name}" asks whether a document is indexed and recovers no item; name another attack')
    return name


Combinations = Annotated[tuple[Combination, ...], AfterValidator(_known_combinations)]
KnownAttack = Annotated[str, AfterValidator(_known_attack)]
ExtractionAttack = Annotated[str, AfterValidator(_known_extraction)]


class Membership(Section):
    """Membership inference in the grid."""

    members: int | None = Field(None, ge=2, description="indexed documents asked about; null: all")
    non_members: int | None = Field(None, ge=2, description="held-out documents asked about; null: all")
    questions: int = Field(1, ge=1, le=3, description="questions a document")


class Canaries(Section):
    """Planted strings that are nobody's, a class a run; what certifies a defense."""

    classes: tuple[CanaryClass, ...] = Field(("email", "person_name"), description="classes; each is a run of its own")
    seeds: Seeds = Field((1, 2, 3, 4, 5), description="realisations; fewer than five certify nothing")
    per_seed: int = Field(12, ge=1, description="indexed documents, and canaries, a realisation")
    held_out: int = Field(12, ge=1, description="never-planted controls a realisation")
    defenses: Combinations = Field((("none",), ("pad",), ("lprag",)), description="defenses under test")
    attack: ExtractionAttack = Field("ps", description="attack that seeks them, every document by its public title")
    budget: int = Field(12, ge=1, description="target calls a realisation")

    @model_validator(mode="after")
    def _comparable(self) -> Canaries:
        _distinct(self.classes, what="in classes,")
        _distinct(self.seeds, what="in seeds,")
        if self.classes and not self.seeds:
            raise ValueError("seeds is empty, and classes is not; name seeds, or leave classes empty for no canaries")
        if self.classes and ("none",) not in self.defenses:
            raise ValueError("defenses lacks [none]; what is certified is measured against it")
        return self


class Adaptive(Section):
    """Attacks that know the defense: chosen on some seeds, measured on others."""

    corpus: ItemCorpus = Field("email", description="corpus; one with planted items")
    mode: GridMode = Field("targeted_queries", description="what the attacker knows")
    probes: tuple[ExtractionAttack, ...] = Field(
        ("repeat_union", "encoding_round_trip", "denoise", "session_reset", "cross_lingual", "split_request"),
        description="family from which the best is chosen",
    )
    fixed_attack: ExtractionAttack = Field(
        "ps", description="attack against which the lift is measured, at the same budget"
    )
    defenses: Combinations = Field((("ca_dp",), ("pad",), ("lprag",)), description="defenses that they are tried on")
    development_seeds: Seeds = Field((101, 102), description="realisations on which the best is chosen")
    check_seeds: Seeds = Field((201,), description="other realisations, on which it is measured")
    budget: int = Field(8, ge=1, description="target calls a cell")

    @model_validator(mode="after")
    def _seeds_apart(self) -> Adaptive:
        both = sorted(set(self.development_seeds) & set(self.check_seeds))
        if both:
            raise ValueError(f"seed {both[0]} stands in development_seeds and in check_seeds; they must differ")
        for name in ("probes", "development_seeds", "check_seeds"):
            _distinct(getattr(self, name), what=f"in {name},")
        if self.probes and not self.check_seeds:
            raise ValueError("check_seeds is empty; what was chosen has to be measured on at least one other seed")
        if self.probes and self.fixed_attack in self.probes:
            raise ValueError(
                f'fixed_attack "{self.fixed_attack}" stands among probes; the lift would be against itself'
            )
        if self.probes and len(self.development_seeds) < LEAST_DEVELOPMENT_SEEDS:
            raise ValueError(f"development_seeds needs at least {LEAST_DEVELOPMENT_SEEDS}, or a choice is a draw")
        return self


class HookAudit(Section):
    """Grid of attacks and defenses on one RAG pipeline (`snakemake --cores all hook_audit`)."""

    corpora: tuple[GridCorpus, ...] = Field(("email",), min_length=1, description="email, business, pubmedqa")
    pubmedqa: str | None = Field(None, description="path of PubMedQA's ori_pqal.json, which is not shipped")
    pubmedqa_in_order: bool = Field(
        False, description="index the first abstracts of the file, as published, instead of a sample"
    )
    seeds: Seeds = Field((1,), min_length=1, description="realisations of corpus and queries")
    indexed: int = Field(20, ge=2, description="indexed documents a realisation")
    held_out: int = Field(20, ge=2, description="documents of the same generator that are never indexed")
    min_words: int = Field(35, ge=20, description="fewest words of a document")
    max_words: int = Field(55, ge=30, description="most words of a document")
    modes: tuple[GridMode, ...] = Field(
        ("targeted_queries",),
        min_length=1,
        description="our two modes; in_domain_queries: the attacker knows the domain; targeted_queries: titles as well",
    )
    defenses: Combinations = Field(
        (("none",), ("dp_r",), ("ca_dp",), ("private_rag",), ("pad",), ("lprag",), ("dp_r", "lprag"), ("pad", "lprag")),
        min_length=1,
        description="defenses; several in one list act together, in this order",
    )
    epsilons: tuple[float, ...] = Field(
        (1.0, 5.0), min_length=1, description="nominal epsilons of the defenses that draw noise"
    )
    defense_options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="further options of a defense, by its name"
    )
    attacks: tuple[KnownAttack, ...] = Field(
        ("ps", "pm", "ikea", "deal", "rag_thief", "mi"), min_length=1, description="attacks of the grid"
    )
    attack_options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="further options of an attack, by its name"
    )
    budget: int = Field(8, ge=1, description="target calls of an extraction attack")
    benign_questions: int = Field(8, ge=0, description="benign questions an arm, for utility; 0: none")
    membership: Membership = Field(default_factory=Membership, description="membership inference")
    canaries: Canaries = Field(default_factory=Canaries, description="canaries")
    adaptive: Adaptive = Field(default_factory=Adaptive, description="adaptive attacks")
    k: int = Field(2, ge=1, description="documents retrieved a question; at most as many as are indexed")
    max_tokens: int = Field(32, ge=1, description="longest answer, in tokens")
    tolerance: float = Field(
        0.1, gt=0, lt=1, description="share by which a metric may move and still count as not moved"
    )

    @model_validator(mode="after")
    def _coherent(self) -> HookAudit:
        if self.k > self.indexed:
            raise ValueError(f"k is {self.k} and indexed is {self.indexed}; k documents are taken from them")
        if self.max_words < self.min_words + 10:
            raise ValueError("max_words must be at least min_words + 10, or no document fits")
        if "pubmedqa" in self.corpora and self.pubmedqa is None:
            raise ValueError('corpora names pubmedqa, and pubmedqa is null; give the path of its "ori_pqal.json"')
        if ("none",) not in self.defenses:
            raise ValueError("defenses lacks [none]; every effect is measured against it")
        self._candidates_exist()
        self._named_once()
        self._epsilons_tell_arms_apart()
        return self

    def _candidates_exist(self) -> None:
        for name, wanted, has in (
            ("members", self.membership.members, "indexed"),
            ("non_members", self.membership.non_members, "held_out"),
        ):
            if wanted is not None and wanted > getattr(self, has):
                raise ValueError(f"membership.{name} is {wanted} and {has} is {getattr(self, has)}; raise {has}")

    def _named_once(self) -> None:
        for name in ("corpora", "seeds", "modes", "epsilons", "attacks"):
            _distinct(getattr(self, name), what=f"in {name},")
        for attack in self.attack_options:
            require_plugin("attack", attack)
        for defense in self.defense_options:
            require_plugin("defense", defense)

    def _epsilons_tell_arms_apart(self) -> None:
        for epsilon in self.epsilons:
            if not 0 < epsilon < math.inf:
                raise ValueError(f"in epsilons, {epsilon:g} is not above 0 and finite; no noise could be drawn for it")
        _distinct((f"{epsilon:g}" for epsilon in self.epsilons), what="in epsilons, as arms are named,")
        for defense, options in self.defense_options.items():
            if "epsilon" in options:  # all arms of the defense would have it, whatever they are called
                raise ValueError(f"defense_options.{defense} has epsilon, which names arms; put it into epsilons")

    @property
    def n_members(self) -> int:
        """Indexed documents that membership inference asks about."""
        return min(self.indexed, self.membership.members or self.indexed)

    @property
    def n_non_members(self) -> int:
        """Held-out documents that it asks about."""
        return min(self.held_out, self.membership.non_members or self.held_out)
