"""A small collection and its parts, for tests of the pipeline and of the grid."""

# ruff: noqa: ARG002  # a hook takes what the protocol hands it

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mragaudit.embed.hashing import HashingEmbedder
from mragaudit.index.flat import FlatIndex
from mragaudit.prompts import GeneratorTemplate, Template
from mragaudit.protocols import Completion, GenerateRequest
from mragaudit.rag.hooks import Turn
from mragaudit.rag.pipeline import Collection, PipelineOptions, RagPipeline
from mragaudit.records.grid import Cell

TEXTS = {
    "d1": "Project Tin Sparrow. Contact ada.lorne@example.com about the pump.",
    "d2": "Project Pale Marmot. Contact ravi.quill@example.org about the kiln.",
    "d3": "Project Dull Heron. Contact mona.teff@example.net about the crane.",
}
TEMPLATE = GeneratorTemplate(
    template=Template(system="Answer.", turn="{context}\nQuestion: {question}\nAnswer:", shots=(), stop=("\n",)),
    document="Document: {text}",
)


class Identity:
    """A defense that hands everything on."""

    declared_hooks: tuple[str, ...] = ()

    def process_query(self, query: str, *, turn: Turn) -> str | None:
        return query

    def perturb_scores(self, scores: NDArray[np.float64], *, turn: Turn) -> NDArray[np.float64]:
        return scores

    def rewrite_documents(self, documents: Sequence[str], *, turn: Turn) -> list[str]:
        return list(documents)

    def process_generation(self, request: GenerateRequest, *, turn: Turn) -> GenerateRequest:
        return request

    def process_response(self, response: str, *, turn: Turn) -> str:
        return response


def collection(texts: dict[str, str] = TEXTS) -> Collection:
    """Return the texts indexed by hashed words."""
    embedder = HashingEmbedder()
    vectors = embedder.embed_documents(list(texts.values()))
    index = FlatIndex.build(vectors, doc_ids=list(texts), embedder=embedder.identity)
    return Collection(texts=texts, index=index, embed_query=lambda text: embedder.embed_queries([text]))


def pipeline(defense: Any = None, *, k: int = 2) -> RagPipeline:
    """Return a pipeline over the small collection."""
    options = PipelineOptions(k=k, max_tokens=8, best_last=True)
    return RagPipeline(collection=collection(), template=TEMPLATE, defense=defense or Identity(), options=options)


def turn(number: int = 1, *, session: str = "s") -> Turn:
    """Return a turn with its own noise."""
    return Turn(principal="p", session=session, rng=np.random.default_rng(number))


def cell(**changes: Any) -> Cell:
    """Return a cell."""
    given: dict[str, Any] = {
        "cell_id": "grid.email.s1.targeted_queries.none.ps",
        "purpose": "grid",
        "corpus": "email",
        "realisation": "email.s1",
        "seed": 1,
        "mode": "targeted_queries",
        "arm": "none",
        "attack": "ps",
        "budget": 3,
    }
    return Cell(**{**given, **changes})


def completion(text: str) -> Completion:
    """Return a finished answer."""
    return Completion(text=text, finish_reason="stop", prompt_tokens=1, completion_tokens=1)


def echo(requests: Sequence[GenerateRequest], _names: Sequence[str]) -> list[Completion]:
    """Answer with the whole last turn, as the positive control does."""
    return [completion(request.prompt.messages[-1].content) for request in requests]
