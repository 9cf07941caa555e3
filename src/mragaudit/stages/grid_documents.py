"""Stage `grid_documents`: the realisations of the grid's corpora, and whether members can be told by text alone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.corpus.canaries import CanaryPlan
from mragaudit.corpus.grid_documents import SyntheticSource
from mragaudit.corpus.grid_drafts import DraftSource
from mragaudit.corpus.grid_templates import load_canary_templates, load_grid_templates, read_vocabulary
from mragaudit.corpus.pubmedqa import PubMedSource, read_articles
from mragaudit.corpus.realisation import realise
from mragaudit.grid.candidates import membership_candidates
from mragaudit.grid.realisations import Realisation, all_realisations, corpus_realisations
from mragaudit.grid.splits import check_split
from mragaudit.randomness import generator_for
from mragaudit.records.base import write_records
from mragaudit.records.grid import GridDocument, ItemKind, grid_document_key, split_check_key
from mragaudit.resources import resource_folder

logger = logging.getLogger(__name__)

CORPORA = Path("hook_audit", "corpora")


def run(*, documents: Path, splits: Path, settings: Settings) -> None:
    """Write `hook_audit/documents.jsonl` and `hook_audit/splits.jsonl`."""
    grid = settings.hook_audit
    maker = _Maker(settings)
    made = {one: maker.documents(one) for one in all_realisations(grid)}
    write_records(documents, [row for rows in made.values() for row in rows], key=grid_document_key)
    checks = [
        check_split(
            membership_candidates(made[one], grid, seed=one.seed),
            generator=generator_for(one.seed, f"blind.{one.name}"),
        )
        for one in corpus_realisations(grid)
    ]
    write_records(splits, checks, key=split_check_key)
    logger.info("grid_documents: %d realisations, %d splits checked", len(made), len(checks))


class _Maker:
    """Makes realisations; templates and files are read once."""

    def __init__(self, settings: Settings) -> None:
        self._grid = settings.hook_audit
        self._resources = resource_folder(settings.resources)
        self._source: Callable[[str], DraftSource] = cache(self._make_source)

    def documents(self, one: Realisation) -> tuple[GridDocument, ...]:
        """Return the documents of a realisation."""
        canaries, grid = self._grid.canaries, self._grid
        planted = one.canary_class is not None
        return realise(
            self._source(one.corpus),
            seed=one.seed,
            n_indexed=canaries.per_seed if planted else grid.indexed,
            n_held_out=canaries.held_out if planted else grid.held_out,
            canaries=self._canaries(one.canary_class) if one.canary_class is not None else None,
        )

    def _make_source(self, corpus: str) -> DraftSource:
        if corpus == "pubmedqa":
            path = Path(self._grid.pubmedqa or "")
            return PubMedSource(articles=read_articles(path), in_order=self._grid.pubmedqa_in_order)
        templates = load_grid_templates(self._resources / CORPORA, corpus)
        return SyntheticSource(templates=templates, min_words=self._grid.min_words, max_words=self._grid.max_words)

    def _canaries(self, kind: ItemKind) -> CanaryPlan:
        return CanaryPlan(
            kind=kind,
            templates=load_canary_templates(self._resources / CORPORA),
            forbidden=read_vocabulary(vocabularies(self._resources)),
        )


def vocabularies(resources: Path) -> list[Path]:
    """Return the files whose words no canary name may have: the scorer's lexicon, and the words of the defenses."""
    folders = (resources / "hook_audit" / "nel", resources / "defenses")
    return [path for folder in folders for path in sorted(folder.rglob("*.yaml"))]
