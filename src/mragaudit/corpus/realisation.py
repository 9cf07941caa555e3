"""Realisations: indexed and held-out documents of one corpus and seed, with or without canaries."""

from __future__ import annotations

import numpy as np

from mragaudit.corpus.canaries import CanaryPlan, draw_canaries
from mragaudit.corpus.draws import pick
from mragaudit.corpus.grid_drafts import Draft, DraftSource, document_of, require_apart
from mragaudit.corpus.grid_templates import Room
from mragaudit.errors import ConfigError
from mragaudit.randomness import generator_for
from mragaudit.records.grid import GridDocument, ItemKind, PlantedItem, Split


def realisation_name(corpus: str, seed: int, canary_class: ItemKind | None = None) -> str:
    """Return the name of a realisation: `email.s1`, or `email.canary-phone.s1`."""
    middle = f".canary-{canary_class}" if canary_class else ""
    return f"{corpus}{middle}.s{seed}"


def realise(
    source: DraftSource,
    *,
    seed: int,
    n_indexed: int,
    n_held_out: int,
    canaries: CanaryPlan | None = None,
) -> tuple[GridDocument, ...]:
    """Return the documents of one realisation, sorted by id; the same arguments give the same documents.

    All documents, canaries included, are made first; which of them are indexed is drawn afterwards, so that
    the two sides are exchangeable. A source with an order of its own indexes its first documents instead.
    With `canaries` every document carries one; those of held-out documents are the never-planted controls.
    Raises ConfigError for fewer than one indexed document, or when the source cannot give so many.
    """
    if n_indexed < 1 or n_held_out < 0:
        raise ConfigError(
            f"{n_indexed} indexed and {n_held_out} held-out documents: at least one has to be indexed, none held out "
            "is allowed"
        )
    name = realisation_name(source.corpus, seed, canaries.kind if canaries else None)
    rng = generator_for(seed, f"hook_audit.{name}")
    room = canaries.templates.room(canaries.kind) if canaries else Room()
    drafts = source.drafts(n_indexed + n_held_out, rng=rng, room=room)
    if canaries:
        drafts = plant(drafts, canaries, rng=rng)
    splits = _splits(n_indexed, n_held_out, in_order=source.in_order, rng=rng)
    documents = [
        document_of(draft, corpus=source.corpus, realisation=name, split=split)
        for draft, split in zip(drafts, splits, strict=True)
    ]
    require_apart(documents)
    return tuple(sorted(documents, key=lambda document: document.doc_id))


def plant(drafts: list[Draft], canaries: CanaryPlan, *, rng: np.random.Generator) -> list[Draft]:
    """Return the drafts with one canary each, in a carrier sentence of its class."""
    values = draw_canaries(canaries, [draft.text for draft in drafts], rng=rng)
    carriers = canaries.templates.carriers[canaries.kind]
    return [
        draft.planted(PlantedItem(kind=canaries.kind, value=value, canary=True), carrier=pick(rng, carriers), rng=rng)
        for draft, value in zip(drafts, values, strict=True)
    ]


def _splits(n_indexed: int, n_held_out: int, *, in_order: bool, rng: np.random.Generator) -> list[Split]:
    places = np.arange(n_indexed + n_held_out)
    order = places if in_order else rng.permutation(places)
    return ["indexed" if place < n_indexed else "held_out" for place in order]
