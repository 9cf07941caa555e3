"""Which realisations of which corpora a grid is run on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mragaudit.config.hook_audit_section import HookAudit
from mragaudit.corpus.realisation import realisation_name
from mragaudit.records.grid import ItemKind

CANARY_CORPUS = "email"
"""Canaries are planted in the synthetic e-mail corpus, as published."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Realisation:
    """One draw of one corpus."""

    corpus: str
    seed: int
    canary_class: ItemKind | None = None

    @property
    def name(self) -> str:
        """Corpus, class of canaries, seed."""
        return realisation_name(self.corpus, self.seed, self.canary_class)


def corpus_realisations(settings: HookAudit) -> Iterator[Realisation]:
    """Yield the realisations of the grid itself, corpus by corpus."""
    for corpus in settings.corpora:
        for seed in settings.seeds:
            yield Realisation(corpus=corpus, seed=seed)


def canary_realisations(settings: HookAudit) -> Iterator[Realisation]:
    """Yield the realisations with canaries, one class each."""
    for kind in settings.canaries.classes:
        for seed in settings.canaries.seeds:
            yield Realisation(corpus=CANARY_CORPUS, seed=seed, canary_class=kind)


def adaptive_realisations(settings: HookAudit) -> Iterator[Realisation]:
    """Yield the realisations on which adaptive attacks are chosen, then those on which they are measured."""
    adaptive = settings.adaptive
    seeds = (*adaptive.development_seeds, *adaptive.check_seeds) if adaptive.probes else ()
    for seed in seeds:
        yield Realisation(corpus=adaptive.corpus, seed=seed)


def all_realisations(settings: HookAudit) -> tuple[Realisation, ...]:
    """Return every realisation that a cell needs, each once, sorted by name."""
    found = [*corpus_realisations(settings), *canary_realisations(settings), *adaptive_realisations(settings)]
    return tuple(sorted(set(found), key=lambda one: one.name))
