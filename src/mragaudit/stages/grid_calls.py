"""Stage `grid_calls`: every attack of a shard's cells against its pipeline, call by call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mragaudit.attacks.steps import Attack, Candidate, Knowledge, Steps, Tools
from mragaudit.calls import Caller
from mragaudit.config import Role, Settings
from mragaudit.config.settings import Index
from mragaudit.corpus.grid_templates import load_domain
from mragaudit.defenses.arms import make_arm
from mragaudit.defenses.dp_r import Sensitivity
from mragaudit.defenses.private_rag import public_threshold
from mragaudit.grid.benign import BenignQuestions, draw_benign
from mragaudit.grid.candidates import membership_candidates
from mragaudit.grid.cells import BENIGN, MEMBERSHIP, arms_by_name, cells_to_run, deal_cells
from mragaudit.grid.harness import CellRun, Models, run_cells
from mragaudit.index.kinds import build_index
from mragaudit.prompts import GeneratorTemplate, load_generator
from mragaudit.protocols import Embedder
from mragaudit.rag.pipeline import Collection, PipelineOptions, RagPipeline
from mragaudit.randomness import generator_for
from mragaudit.records.base import read_records, write_records
from mragaudit.records.grid import Cell, GridDocument, Purpose, call_key, cell_key, grid_document_key
from mragaudit.registry import create
from mragaudit.resources import resource_folder
from mragaudit.stages.jobs import ModelJob
from mragaudit.stages.progress import counted

CONTROLS: dict[Purpose, str] = {"positive_control": "echo", "negative_control": "blind"}
"""Rule of the scripted generator in whose stead a control puts the model."""
CORPORA = Path("hook_audit", "corpora")
"""Below the resources."""
LANGUAGE = "en"
"""Of the collection and of the generator's prompt; attacks may ask in others."""


def run(*, cells: Path, documents: Path, calls: Path, uses: Path, job: ModelJob, settings: Settings) -> None:
    """Write `hook_audit/calls/{shard}.jsonl` and `hook_audit/uses/{shard}.jsonl`."""
    every = cells_to_run(read_records(cells, Cell, key=cell_key))
    dealt = deal_cells(every, n_shards=settings.shards)
    mine = [cell for cell in every if dealt[cell.cell_id] == job.shard]
    bench = Bench(documents=documents, job=job, settings=settings)
    logged = []
    for control in (None, *CONTROLS):
        runs = [bench.cell_run(cell) for cell in mine if _control_of(cell) == control]
        _drive(runs, models=bench.models(control), label=f"grid_calls {job.shard}")
        logged += [one.logged() for one in runs]
    write_records(calls, [call for one in logged for call in one.calls], key=call_key)
    write_records(uses, [one.use for one in logged], key=cell_key)
    missing = sum(one.use.n_not_evaluated > 0 for one in logged)
    job.finish(n_expected=len(mine), n_actual=len(logged), n_not_evaluated=missing)


def _control_of(cell: Cell) -> Purpose | None:
    """Return which control a cell belongs to, None for a cell before the real model."""
    return cell.purpose if cell.purpose in CONTROLS else None


def _drive(runs: Sequence[CellRun], *, models: Models, label: str) -> None:
    """Run the cells to their end; the bar counts target calls, of which an attack may leave some unused."""
    total = sum(run.cell.budget for run in runs)
    made = (one for n in run_cells(runs, models=models) for one in range(n))
    for _ in counted(made, total=total, label=label):
        pass


@dataclass(frozen=True, kw_only=True, slots=True)
class _Corpus:
    """One realisation, ready to be asked."""

    documents: tuple[GridDocument, ...]
    collection: Collection
    public_threshold: float
    """What public questions reach, for a defense that filters by score."""


class Bench:
    """What all cells of a shard share: documents, indexes, embedder, prompt, models."""

    def __init__(self, *, documents: Path, job: ModelJob, settings: Settings) -> None:
        """Read the documents; models and indexes are made when a cell first needs them."""
        self._job = job
        self._settings = settings
        self._grid = settings.hook_audit
        self._resources = resource_folder(settings.resources)
        self._documents: dict[str, list[GridDocument]] = {}
        for document in read_records(documents, GridDocument, key=grid_document_key):
            self._documents.setdefault(document.realisation, []).append(document)
        self._corpora: dict[str, _Corpus] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._arms = arms_by_name(self._grid)
        self._template: GeneratorTemplate = load_generator(self._resources / "prompts", LANGUAGE)
        self._embedder: Embedder = job.embedder(settings.roles.embedder)
        self._target = job.caller("generator", settings.roles.generator, progress=False)
        self._attacker = self._attacker_of(settings)

    def _attacker_of(self, settings: Settings) -> Caller:
        if settings.roles.attacker == settings.roles.generator:
            return self._job.share("attacker", self._target)
        return self._job.caller("attacker", settings.roles.attacker, journal="grid_attacker", progress=False)

    def models(self, control: Purpose | None) -> Models:
        """Return the models of a control, whose generator is scripted, or of all other cells, None."""
        target = self._target
        if control is not None:
            scripted = Role(backend="scripted", model=CONTROLS[control], sha256=None)
            target = self._job.caller(control, scripted, journal=control, progress=False)
        return Models(
            target=lambda requests, names: target.generate(requests, trials=names),
            attacker=lambda requests, names: self._attacker.generate(requests, trials=names),
        )

    def cell_run(self, cell: Cell) -> CellRun:
        """Return a cell, ready to be driven."""
        corpus = self._corpus(cell.realisation)
        pipeline = RagPipeline(
            collection=corpus.collection,
            template=self._template,
            defense=make_arm(
                self._arms[cell.arm],
                k=self._grid.k,
                public_threshold=corpus.public_threshold,
                options=self._grid.defense_options,
            ),
            options=PipelineOptions(k=self._grid.k, max_tokens=self._grid.max_tokens, best_last=self._best_last),
        )
        return CellRun(cell, steps=self._steps(cell, corpus.documents), pipeline=pipeline)

    @property
    def _best_last(self) -> bool:
        return self._settings.generate.context_order == "best_last"

    def _steps(self, cell: Cell, documents: Sequence[GridDocument]) -> Steps:
        tools = self._tools(cell, documents)
        if cell.attack == BENIGN:
            rng = generator_for(cell.seed, f"benign.{cell.realisation}")
            questions = draw_benign(documents, n=cell.budget, rng=rng)
            return BenignQuestions(name=BENIGN, questions=questions).steps(tools)
        options = self._grid.attack_options.get(cell.attack, {})
        attack: Attack = create("attack", cell.attack, options=options)
        return attack.steps(tools)

    def _tools(self, cell: Cell, documents: Sequence[GridDocument]) -> Tools:
        return Tools(
            knowledge=self._knowledge(cell, documents),
            budget=cell.budget,
            rng=generator_for(cell.seed, f"attacker.{cell.realisation}.{cell.mode}"),
            embed=self._embed,
            resources=self._resources / "attacks",
        )

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions); arms share most texts, and each is embedded once."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, self._embedder.embed_queries(missing), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def _knowledge(self, cell: Cell, documents: Sequence[GridDocument]) -> Knowledge:
        domain = load_domain(self._resources / CORPORA, cell.corpus)
        indexed = [one for one in documents if one.split == "indexed"]
        titles = tuple(sorted(one.title for one in indexed)) if cell.mode == "targeted_queries" else ()
        candidates = self._candidates(cell, documents) if cell.attack == MEMBERSHIP else ()
        return Knowledge(domain=domain.description, topics=domain.topics, handles=titles, candidates=candidates)

    def _candidates(self, cell: Cell, documents: Sequence[GridDocument]) -> tuple[Candidate, ...]:
        chosen = membership_candidates(documents, self._grid, seed=cell.seed)
        return tuple(Candidate(candidate_id=one.doc_id, title=one.title, text=one.text) for one in chosen)

    def _corpus(self, realisation: str) -> _Corpus:
        if realisation not in self._corpora:
            documents = tuple(self._documents[realisation])
            collection = self._collection(documents)
            self._corpora[realisation] = _Corpus(
                documents=documents,
                collection=collection,
                public_threshold=public_threshold(
                    self._public_scores(documents[0].corpus, collection), k=self._grid.k, sensitivity=self._sensitivity
                ),
            )
        return self._corpora[realisation]

    @property
    def _sensitivity(self) -> Sensitivity:
        """Range of scores of the filter for which the public threshold is made."""
        given = self._grid.defense_options.get("private_rag", {}).get("sensitivity", 1)
        return 2 if given == 2 else 1  # noqa: PLR2004  # the only other one; anything else was refused

    def _public_scores(self, corpus: str, collection: Collection) -> NDArray[np.float64]:
        """Return the scores of all documents for public questions, one a topic, shape (n_topics, n_documents)."""
        domain = load_domain(self._resources / CORPORA, corpus)
        return np.stack([collection.scores(f"{topic} ({domain.description})")[1] for topic in domain.topics])

    def _collection(self, documents: Sequence[GridDocument]) -> Collection:
        texts = {one.doc_id: one.text for one in documents if one.split == "indexed"}
        doc_ids = sorted(texts)
        index = build_index(
            self._embedder.embed_documents([texts[name] for name in doc_ids]),
            doc_ids=doc_ids,
            embedder=self._embedder.identity,
            options=Index(),
            seed=self._settings.seed,
        )
        return Collection(texts=texts, index=index, embed_query=lambda question: self._embed([question]))
