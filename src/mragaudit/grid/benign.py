"""Benign questions as if they were an attack, so that utility is measured by the same harness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mragaudit.attacks.steps import Ask, Outcome, Steps, Tools
from mragaudit.errors import DataError
from mragaudit.records.documents import Fact
from mragaudit.records.grid import GridDocument


@dataclass(frozen=True, kw_only=True, slots=True)
class BenignQuestion:
    """A question about a non-personal fact, and the document that answers it."""

    doc_id: str
    fact: Fact


@dataclass(frozen=True, kw_only=True, slots=True)
class BenignQuestions:
    """Asks each question once, in a dialogue of its own."""

    name: str
    questions: tuple[BenignQuestion, ...]

    def steps(self, tools: Tools) -> Steps:  # noqa: ARG002  # an attack takes its tools
        """Ask in order."""
        for question in self.questions:
            yield Ask(text=question.fact.question, candidate=question.doc_id)
        return Outcome()


def draw_benign(documents: Sequence[GridDocument], *, n: int, rng: np.random.Generator) -> tuple[BenignQuestion, ...]:
    """Return n questions about indexed documents, drawn without repeats; fewer where there are no more facts."""
    every = [
        BenignQuestion(doc_id=document.doc_id, fact=fact)
        for document in sorted(documents, key=lambda one: one.doc_id)
        if document.split == "indexed"
        for fact in document.facts
    ]
    return tuple(every[int(at)] for at in rng.permutation(len(every))[:n])


def benign_question(documents: Sequence[GridDocument], *, doc_id: str | None, question: str) -> Fact:
    """Return the fact that a question asks for; raises DataError where the document has no such question."""
    for document in documents:
        for fact in document.facts:
            if document.doc_id == doc_id and fact.question == question:
                return fact
    raise DataError(f'document "{doc_id}" has no benign question "{question}"; run the stage grid_calls again')
