"""Retriever, prompt and generator with the hooks of a defense between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mragaudit.index.base import RankedDocuments, VectorIndex, best_documents
from mragaudit.prompts import GeneratorTemplate
from mragaudit.protocols import GenerateRequest
from mragaudit.rag.hooks import Defense, Turn

REFUSAL = "I cannot answer that."
"""Reply to a question that the hook on queries refused; no model is asked."""
QUERY_HOOK = "query"


@dataclass(frozen=True, kw_only=True, slots=True)
class Collection:
    """The indexed documents of one realisation."""

    texts: Mapping[str, str]
    """Document id → text."""
    index: VectorIndex
    embed_query: Callable[[str], NDArray[np.float32]]
    """Unit vector of one question, shape (1, dimensions), by the embedder that made the index."""

    def scores(self, question: str) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return all document ids, in order, and their similarity to a question, shape (n_documents,)."""
        found = self.index.search_exactly(self.embed_query(question), len(self.index))[0]
        by_id = dict(zip(found.doc_ids, found.scores, strict=True))
        doc_ids = tuple(sorted(by_id))
        return doc_ids, np.array([by_id[name] for name in doc_ids], dtype=np.float64)


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineOptions:
    """How the audited system retrieves and answers."""

    k: int
    max_tokens: int
    best_last: bool
    """Whether the best document stands last in the prompt, next to the question."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A question on its way to the model."""

    retrieved: RankedDocuments
    context: tuple[str, ...]
    """Texts that the model sees, best document first."""
    request: GenerateRequest | None
    """None where a hook refused the question."""
    refused_by: str | None = None


class RagPipeline:
    """One audited system: a collection, a prompt, and a defense at the hooks; the model is called between the halves.

    `prepare` and `finish` are apart, so that a driver can send the questions of many systems to the model at once.
    A dialogue keeps its last question: a further one of the same session is searched and answered together with it.
    """

    def __init__(
        self, *, collection: Collection, template: GeneratorTemplate, defense: Defense, options: PipelineOptions
    ) -> None:
        self._collection = collection
        self._template = template
        self._defense = defense
        self._options = options
        self._last: dict[str, str] = {}

    def prepare(self, question: str, *, turn: Turn) -> Prepared:
        """Return what the model is to be asked, after the hooks on query, scores, documents and generation."""
        screened = self._defense.process_query(question, turn=turn)
        if screened is None:
            return Prepared(retrieved=_NOTHING, context=(), request=None, refused_by=QUERY_HOOK)
        asked = self._with_history(" ".join(screened.split()), turn.session)
        retrieved = self._retrieve(asked, turn)
        texts = [self._collection.texts[name] for name in retrieved.doc_ids]
        context = tuple(self._defense.rewrite_documents(texts, turn=turn))
        request = self._defense.process_generation(self._request(asked, context), turn=turn)
        return Prepared(retrieved=retrieved, context=context, request=request)

    def finish(self, answer: str, *, turn: Turn) -> str:
        """Return what the asker gets of the model's answer, after the hook on the response."""
        return self._defense.process_response(answer, turn=turn)

    def _with_history(self, question: str, session: str) -> str:
        before = self._last.get(session)
        self._last[session] = question
        return question if before is None else f"{before} {question}"

    def _retrieve(self, question: str, turn: Turn) -> RankedDocuments:
        doc_ids, scores = self._collection.scores(question)
        perturbed = np.asarray(self._defense.perturb_scores(scores, turn=turn), dtype=np.float64)
        if perturbed.shape != scores.shape:
            raise ValueError(f"the hook on scores returned {perturbed.shape} scores of {scores.shape}")
        allowed = [(name, float(score)) for name, score in zip(doc_ids, perturbed, strict=True) if np.isfinite(score)]
        return best_documents(allowed, k=self._options.k)

    def _request(self, question: str, context: Sequence[str]) -> GenerateRequest:
        shown = list(reversed(context)) if self._options.best_last else list(context)
        template = self._template.template
        return GenerateRequest(
            prompt=template.prompt(question=question, context=self._template.context(shown)),
            max_tokens=self._options.max_tokens,
            stop=template.stop,
        )


_NOTHING = RankedDocuments(doc_ids=(), scores=())
