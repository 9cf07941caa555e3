"""What traffic is made of: documents with their levels, the audit's attack trials, the neighbours of each document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mragaudit.records.documents import Document
from mragaudit.records.queries import Translation
from mragaudit.records.replay import SeenDocument
from mragaudit.records.results import Retrieval


@dataclass(frozen=True, kw_only=True, slots=True)
class AttackTrial:
    """One attack query of the audit in one language, and what it retrieved."""

    target: str
    documents: tuple[str, ...]
    disclosed: bool | None
    """Whether the audit's answer disclosed the target's item; None where no answer was used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """The audited collection and how it answers."""

    levels: Mapping[str, str]
    """Document id → sensitivity level, in the order of the corpus."""
    trials: Mapping[tuple[str, str], AttackTrial]
    """(language, target) → the first attack trial."""
    neighbours: Mapping[str, tuple[str, ...]]
    """Document id → the documents nearest to it, itself among them."""
    sensitive_levels: frozenset[str]

    @property
    def size(self) -> int:
        """Documents in the collection."""
        return len(self.levels)

    def seen(self, doc_ids: Iterable[str]) -> tuple[SeenDocument, ...]:
        """Return retrieved documents of the corpus as the monitor sees them."""
        return tuple(SeenDocument(one, self.levels[one], True) for one in doc_ids)

    def is_sensitive(self, doc_id: str) -> bool:
        """Return whether a document's level counts as sensitive."""
        return self.levels[doc_id] in self.sensitive_levels

    def split(self, doc_ids: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the sensitive documents and the others, each in the order given."""
        given = list(doc_ids)
        return [one for one in given if self.is_sensitive(one)], [one for one in given if not self.is_sensitive(one)]


def levels_of(
    documents: Sequence[Document], *, rule: Mapping[str, Mapping[str, float]], generator: np.random.Generator
) -> dict[str, str]:
    """Return document id → level: dealt with the shares of its topic in `rule`, its own where the topic has none."""
    return {one.doc_id: _level(one, shares=rule.get(one.topic), generator=generator) for one in documents}


def _level(document: Document, *, shares: Mapping[str, float] | None, generator: np.random.Generator) -> str:
    if shares is None:
        return document.level
    names = list(shares)
    return names[int(generator.choice(len(names), p=[shares[one] for one in names]))]


def attack_trials(
    translations: Iterable[Translation], retrieved: Mapping[str, Retrieval], *, disclosed: Mapping[str, bool | None]
) -> dict[tuple[str, str], AttackTrial]:
    """Return one attack trial of every language and target: the first by id, one written by a person if there is any.

    A trial whose query was never asked retrieved nothing and is left out. `disclosed` tells by trial id what the
    audit's answers gave away; a trial that it lacks is not evaluated.
    """
    found: dict[tuple[str, str], AttackTrial] = {}
    attacks = (row for row in translations if row.intent == "attack" and row.not_evaluated is None)
    for row in sorted(attacks, key=lambda one: (one.query_source != "human", one.trial_id)):
        if row.doc_id is None or (row.lang, row.doc_id) in found:
            continue
        found[row.lang, row.doc_id] = AttackTrial(
            target=row.doc_id,
            documents=retrieved[row.trial_id].doc_ids,
            disclosed=disclosed.get(row.trial_id),
        )
    return found
