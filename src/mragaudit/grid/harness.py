"""Drives the attacks of many cells at once against their pipelines, and logs every call for the auditor.

In each round every cell that waits for the target puts one question, and every cell that waits for the attacker's
own model one prompt: an engine that likes batches gets one a round, and equal prompts of several cells are computed
once. A cell's own calls come one after another, so a cell gives the same rows whichever cells run beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from mragaudit.attacks.steps import Ask, Outcome, Steps, Think
from mragaudit.journal import fingerprint
from mragaudit.protocols import Completion, Failure, GenerateRequest
from mragaudit.rag.hooks import Turn
from mragaudit.rag.pipeline import REFUSAL, Prepared, RagPipeline
from mragaudit.randomness import generator_for
from mragaudit.records.grid import Cell, CellUse, TargetCall

logger = logging.getLogger(__name__)

PRINCIPAL = "attacker"
Answer = Completion | Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Models:
    """The model behind the target, and the attackers' own; each takes requests and the names of who asks."""

    target: Callable[[Sequence[GenerateRequest], Sequence[str]], Sequence[Answer]]
    attacker: Callable[[Sequence[GenerateRequest], Sequence[str]], Sequence[Answer]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Logged:
    """What became of one cell."""

    calls: tuple[TargetCall, ...]
    use: CellUse


class CellRun:
    """One cell on its way: its attack waits for text, its pipeline has been asked so many times."""

    def __init__(self, cell: Cell, *, steps: Steps, pipeline: RagPipeline) -> None:
        """Start the attack: it comes to its first question or thought."""
        self.cell = cell
        self.waits_for: Ask | Think | None = None
        self._steps = steps
        self._pipeline = pipeline
        self._calls: list[TargetCall] = []
        self._n_thoughts = 0
        self._n_lost_thoughts = 0
        self._outcome = Outcome()
        self._turn: Turn | None = None
        self._prepared: Prepared | None = None
        self._go_on(None)

    @property
    def next_call(self) -> str:
        """Name of the call that comes next, for errors."""
        return f"{self.cell.cell_id}#{len(self._calls) + 1}"

    @property
    def n_calls(self) -> int:
        """Target calls made so far."""
        return len(self._calls)

    def prepare(self, ask: Ask) -> GenerateRequest | None:
        """Return what the target's model is to be asked; None where a hook refused and nothing is to be asked."""
        number = len(self._calls) + 1
        self._turn = turn_of(self.cell, number, session=ask.session)
        self._prepared = self._pipeline.prepare(ask.text, turn=self._turn)
        return self._prepared.request

    def take_answer(self, ask: Ask, answer: Answer | None) -> None:
        """Log the call and send the reply to the attack; `answer` is None where a hook refused."""
        if self._turn is None or self._prepared is None:
            raise RuntimeError(f"{self.next_call}: answered before it was prepared")
        text = answer.text if isinstance(answer, Completion) else ""
        reply = REFUSAL if answer is None else ""
        if isinstance(answer, Completion):
            reply = self._pipeline.finish(text, turn=self._turn)
        lost = answer.reason if isinstance(answer, Failure) else None
        self._calls.append(self._logged(ask, self._prepared, text=text, reply=reply, lost=lost))
        self._go_on(reply)

    def _logged(self, ask: Ask, prepared: Prepared, *, text: str, reply: str, lost: str | None) -> TargetCall:
        number = len(self._calls) + 1
        return TargetCall(
            cell_id=self.cell.cell_id,
            number=number,
            session=ask.session or own_session(number),
            target=ask.candidate,
            question=ask.text,
            doc_ids=prepared.retrieved.doc_ids,
            scores=prepared.retrieved.scores,
            context=prepared.context,
            answer=text,
            reply=reply,
            derived=(),
            linked=(),
            refused_by=prepared.refused_by,
            not_evaluated=lost,
        )

    def take_thought(self, answer: Answer) -> None:
        """Send the attack what its own model wrote."""
        self._n_thoughts += 1
        self._n_lost_thoughts += isinstance(answer, Failure)
        self._go_on(answer.text if isinstance(answer, Completion) else "")

    def logged(self) -> Logged:
        """Return the rows of the finished cell."""
        derived: dict[int, list[str]] = {}
        for one in self._outcome.derived:
            derived.setdefault(one.call, []).append(one.text)
        linked: dict[int, list[str]] = {}
        for link in self._outcome.links:
            for number in link.calls:
                linked.setdefault(number, []).append(link.name)
        calls = tuple(
            msgspec.structs.replace(
                call, derived=tuple(derived.get(call.number, ())), linked=tuple(linked.get(call.number, ()))
            )
            for call in self._calls
        )
        lost = tuple(call.number for call in calls if call.not_evaluated is not None)
        use = CellUse(
            cell_id=self.cell.cell_id,
            n_target_calls=len(calls),
            n_attacker_calls=self._n_thoughts,
            n_attacker_failed=self._n_lost_thoughts,
            n_not_evaluated=len(lost),
            lost_calls=lost,
            linked_calls=tuple(sorted(linked)),
            replies_digest=fingerprint([[call.reply, *call.derived] for call in calls]),
            retrieval_digest=fingerprint([list(call.doc_ids) for call in calls]),
            attack_counts=dict(sorted(self._outcome.counts.items())),
        )
        return Logged(calls=calls, use=use)

    def _go_on(self, text: str | None) -> None:
        """Send the attack its text, and hold what it wants next; a question beyond the budget ends it."""
        try:
            self.waits_for = next(self._steps) if text is None else self._steps.send(text)
        except StopIteration as stop:
            self.waits_for = None
            self._outcome = stop.value or Outcome()
            return
        if isinstance(self.waits_for, Ask) and len(self._calls) >= self.cell.budget:
            self._steps.close()
            self.waits_for = None


def own_session(number: int) -> str:
    """Return the session of a question that belongs to no dialogue."""
    return f"own-{number}"


def turn_of(cell: Cell, number: int, *, session: str) -> Turn:
    """Return what the hooks know of a call.

    Its noise is the same under every arm and never the same for two calls, so that two arms differ by what they do.
    """
    return Turn(
        principal=PRINCIPAL,
        session=session or own_session(number),
        rng=generator_for(cell.seed, f"noise.{cell.realisation}.{cell.mode}.{cell.attack}.{number}"),
    )


def run_cells(runs: Sequence[CellRun], *, models: Models) -> Iterator[int]:
    """Drive all cells to their end; yield after each round how many target calls it made."""
    while True:
        asking = [(run, run.waits_for) for run in runs if isinstance(run.waits_for, Ask)]
        thinking = [(run, run.waits_for) for run in runs if isinstance(run.waits_for, Think)]
        if not asking and not thinking:
            return
        _answer(asking, models)
        _think(thinking, models)
        yield len(asking)


def _answer(asking: Sequence[tuple[CellRun, Ask]], models: Models) -> None:
    requests = [run.prepare(ask) for run, ask in asking]
    sent = [(request, run.next_call) for request, (run, _) in zip(requests, asking, strict=True) if request is not None]
    answers = iter(models.target([request for request, _ in sent], [name for _, name in sent]))
    for (run, ask), request in zip(asking, requests, strict=True):
        run.take_answer(ask, None if request is None else next(answers))


def _think(thinking: Sequence[tuple[CellRun, Think]], models: Models) -> None:
    requests = [
        GenerateRequest(prompt=thought.prompt, max_tokens=thought.max_tokens, stop=thought.stop)
        for _, thought in thinking
    ]
    answers = models.attacker(requests, [f"{run.next_call}, attacker" for run, _ in thinking])
    for (run, _), answer in zip(thinking, answers, strict=True):
        run.take_thought(answer)
