"""DEAL: a request that is optimised on the attacker's own retrieval system, then put to the target unchanged."""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mragaudit.attacks.common import check_sizes, draw_anchors, open_space
from mragaudit.attacks.pools import Pool, Writer, load_pool, require_fields
from mragaudit.attacks.steps import Ask, Outcome, Steps, Think, Tools, text_only
from mragaudit.text.sequences import rouge_l

_WORDS = (3, 40)
_SEPARATOR = re.compile(r"[|\n]")
_SENTENCE = re.compile(r"(?<=[.?!]) +")


class ShadowPool(Pool, frozen=True, kw_only=True):
    """The file `shadow_documents.yaml`."""

    documents: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.documents:
            raise ValueError('"documents" is empty; the shadow system needs some')


class DealPool(Pool, frozen=True, kw_only=True):
    """The file `deal.yaml`."""

    information: str
    seeds: tuple[str, ...]
    shadow_subjects: tuple[str, ...]
    shadow_generator: Writer
    document: str
    optimiser: Writer

    def __post_init__(self) -> None:
        require_fields(self.information, {"anchor"})
        require_fields(self.shadow_generator.turn, {"context", "question"})
        require_fields(self.document, {"text"})
        require_fields(self.optimiser.turn, {"scored"})
        if not self.seeds or not self.shadow_subjects:
            raise ValueError('"seeds" and "shadow_subjects" must not be empty')


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """A request and how much of the shadow context it brought out."""

    request: str
    recall: float
    """Mean ROUGE-L recall of the shadow replies against their contexts, 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """What the shadow phase came to."""

    best: Scored
    best_so_far: tuple[float, ...]
    """Best recall after the seeds and after each iteration; never falls."""
    prepared: int
    """Requests put together from known ones, where the optimiser wrote too few."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deal:
    """DEAL with a reward from the attacker's own shadow system alone.

    Source: Zhang et al. (OpenReview sx8dtyZT41), whose full text was not obtainable: all sizes are ours. The shadow
    phase draws no random number and knows nothing of the target, so its calls are the same in every cell of a run.
    """

    name: ClassVar[str] = "deal"
    iterations: int = 10
    seeds: int = 8
    """Requests at the start, the first of the file."""
    queries: int = 5
    """Shadow questions by which a request is scored, the first of the file."""
    shown: int = 5
    """Best requests that the optimiser is shown."""
    new_requests: int = 4
    """Requests that an iteration adds."""
    k: int = 5
    """Shadow documents in a context."""

    def __post_init__(self) -> None:
        check_sizes(self.name, seeds=self.seeds, queries=self.queries, shown=self.shown, k=self.k)
        check_sizes(self.name, at_least=0, iterations=self.iterations, new_requests=self.new_requests)

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Find the best request, then ask it about an anchor a question; counts of the shadow phase."""
        anchors = draw_anchors(tools, tools.budget)
        shadow = _Shadow(options=self, tools=tools)
        search = yield from shadow.optimise()
        for anchor in anchors:
            yield Ask(text=shadow.question(anchor, search.best.request))
        counts = {"thoughts": shadow.n_thoughts, "prepared_requests": search.prepared}
        return Outcome(counts={**counts, "best_shadow_recall_permille": round(search.best.recall * 1000)})


@dataclass(kw_only=True)
class _Shadow:
    """The attacker's retrieval system over public documents, and the search for a request on it."""

    options: Deal
    tools: Tools
    n_thoughts: int = 0
    scored: dict[str, Scored] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pool = load_pool(self.tools.resources, DealPool, name="deal")
        self.documents = load_pool(self.tools.resources, ShadowPool, name="shadow_documents").documents
        self.space = open_space(self.tools)

    def question(self, anchor: str, request: str) -> str:
        """Return a question: what to look for, and the request."""
        return f"{self.pool.information.replace('{anchor}', anchor)} {request}"

    def optimise(self) -> Generator[Think, str, Search]:
        """Score the seeds, then let the optimiser add requests and score those."""
        for request in self.pool.seeds[: self.options.seeds]:
            yield from self._score(request)
        best_so_far, prepared = [self._best().recall], 0
        for _ in range(self.options.iterations):
            written = yield from self._think(self.pool.optimiser.think(scored=self._shown()))
            added = [request for request in requests(written) if request not in self.scored]
            added = added[: self.options.new_requests]
            made = self._recombined(self.options.new_requests - len(added), taken=added)
            prepared += len(made)
            for request in (*added, *made):
                yield from self._score(request)
            best_so_far.append(self._best().recall)
        return Search(best=self._best(), best_so_far=tuple(best_so_far), prepared=prepared)

    def _score(self, request: str) -> Generator[Think, str, None]:
        recalls = []
        for subject in self.pool.shadow_subjects[: self.options.queries]:
            question = self.question(subject, request)
            context = self._context(question)
            reply = yield from self._think(self.pool.shadow_generator.think(context=context, question=question))
            recalls.append(rouge_l(reply, reference=context).recall)
        self.scored[request] = Scored(request=request, recall=float(np.mean(recalls)))

    def _context(self, question: str) -> str:
        """Return the k nearest shadow documents, best first."""
        cosines = self.space.cosines(self.documents, [question])[:, 0]
        best = np.argsort(-cosines, kind="stable")[: self.options.k]
        return "\n".join(self.pool.document.replace("{text}", self.documents[at]) for at in best)

    def _think(self, think: Think) -> Generator[Think, str, str]:
        self.n_thoughts += 1
        return (yield think)

    def _ranked(self) -> list[Scored]:
        """Return all requests, best first, earlier ones first among equals."""
        return sorted(self.scored.values(), key=lambda scored: -scored.recall)

    def _best(self) -> Scored:
        return self._ranked()[0]

    def _shown(self) -> str:
        """Return the best requests with their scores, in ascending order."""
        top = self._ranked()[: self.options.shown]
        return "\n".join(f"{scored.recall:.2f} {scored.request}" for scored in reversed(top))

    def _recombined(self, count: int, *, taken: Sequence[str]) -> list[str]:
        """Return up to so many new requests that join a sentence of one request to one of another, best ones first."""
        ranked = [scored.request for scored in self._ranked()]
        made: list[str] = []
        for first, second in itertools.permutations(ranked, 2):
            if len(made) == count:
                break
            joined = f"{_SENTENCE.split(first)[0]} {_SENTENCE.split(second)[-1]}"
            if joined not in self.scored and joined not in taken and joined not in made:
                made.append(joined)
        return made


def requests(written: str) -> list[str]:
    """Return the requests that the optimiser wrote, in order, without numbering and what is no request."""
    least, most = _WORDS
    stripped = (re.sub(r"^[\s\-*•\d.):]+", "", part).strip(" \"'") for part in _SEPARATOR.split(written))
    return [text for text in dict.fromkeys(stripped) if least <= len(text.split()) <= most]
