"""RAG-Thief: an agent that continues what it has got, and asks for the documents that hold the continuation."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from mragaudit.attacks.common import Thoughts, check_sizes, draw_anchors, is_refusal, load_common
from mragaudit.attacks.pools import Pool, Writer, load_pool, require_fields
from mragaudit.attacks.steps import Ask, Outcome, Steps, Think, Tools, text_only
from mragaudit.text.sequences import Reference, folded_tokens

READ_CHARS = 20_000
MAX_CHUNKS = 60
"""How much of one reply is read: bounds against endless ones."""
CHUNK_TOKENS = 60
MIN_TOKENS = 4
WINDOWS = (40, 28, 20, 14, 10, 7, 5)
"""Words at the edge of a chunk that one continuation sees; the next one sees fewer."""
_BLOCK = re.compile(r"\n+")
_SENTENCE = re.compile(r"(?<=[.!?。！？؟])\s+|(?<=[。！？])")
_LABEL = re.compile(r"^(?:document|source|context)\s*\d*\s*:\s*", re.IGNORECASE)

Direction = Literal["forward", "backward"]


class RagThiefPool(Pool, frozen=True, kw_only=True):
    """The file `rag_thief.yaml`."""

    initial: tuple[str, ...]
    copy_instruction: str
    forward_writer: Writer
    backward_writer: Writer

    def __post_init__(self) -> None:
        for prompt in self.initial:
            require_fields(prompt, {"anchor"})
        require_fields(self.copy_instruction, {"continuation"})
        require_fields(self.forward_writer.turn, {"chunk"})
        require_fields(self.backward_writer.turn, {"chunk"})
        if not self.initial:
            raise ValueError('"initial" is empty; at least one prompt is needed')


@dataclass(frozen=True, kw_only=True, slots=True)
class RagThief:
    """RAG-Thief as its first version describes it.

    Source: Jiang et al. (arXiv 2411.14110v1, 2024), known in part from ports. A chunk is new when its ROUGE-L (ours:
    the F-measure) to every chunk in memory is below `new_below`. Where the model writes no continuation, the edge of
    the chunk itself is sent. When the queue is empty the attack begins anew with another anchor.
    """

    name: ClassVar[str] = "rag_thief"
    forward: int = 5
    """Continuations of a chunk behind it."""
    backward: int = 5
    """Continuations of a chunk before it."""
    new_below: float = 0.7
    reflect: bool = True
    """Whether it continues chunks; without that it only repeats its initial prompts."""
    max_thoughts: int | None = None
    """Calls of its own model in all; edges of chunks are sent after that."""

    def __post_init__(self) -> None:
        check_sizes(self.name, at_least=0, forward=self.forward, backward=self.backward)
        check_sizes(self.name, at_least=0, max_thoughts=self.max_thoughts or 0)

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask until the budget is spent; counts of chunks, of repeated ones, refusals and thoughts."""
        run = _Run(options=self, tools=tools)
        for number, anchor in enumerate(draw_anchors(tools, tools.budget)):
            if run.asks_left:
                prompt = run.pool.initial[number % len(run.pool.initial)]
                yield from run.ask(prompt.replace("{anchor}", anchor))
                yield from run.drain()
        return Outcome(counts={**run.counts, "thoughts": run.thoughts.count})


class Memory:
    """Chunks that are known, each with its tokens."""

    def __init__(self, *, new_below: float) -> None:
        self.new_below = new_below
        self._known: list[Reference] = []

    def __len__(self) -> int:
        return len(self._known)

    def add(self, chunk: str) -> bool:
        """Take a chunk in when it is new, and return whether it was; one without tokens never is."""
        items = folded_tokens(chunk)
        if not items or any(_f_measure(known, items) >= self.new_below for known in self._known):
            return False
        self._known.append(Reference(items))
        return True


def _f_measure(reference: Reference, items: list[str]) -> float:
    return 2 * reference.common_length(items) / (reference.length + len(items))


def chunks(reply: str) -> list[str]:
    """Return the pieces of a reply: its lines, long ones cut between sentences to about 60 tokens, without labels."""
    found: list[str] = []
    for block in _BLOCK.split(reply[:READ_CHARS]):
        found += _pieces(_LABEL.sub("", block.strip()))
    return [chunk for chunk in found if len(folded_tokens(chunk)) >= MIN_TOKENS][:MAX_CHUNKS]


def _pieces(block: str) -> list[str]:
    pieces: list[str] = []
    length = 0
    for sentence in filter(None, _SENTENCE.split(block)):
        added = len(folded_tokens(sentence))
        if pieces and length + added <= CHUNK_TOKENS:
            pieces[-1] += f" {sentence}"
            length += added
        else:
            pieces.append(sentence)
            length = added
    return pieces


def edge(chunk: str, *, direction: Direction, count: int) -> str:
    """Return so many words at the end or the beginning of a chunk."""
    words = chunk.split()
    return " ".join(words[-count:] if direction == "forward" else words[:count])


@dataclass(kw_only=True)
class _Run:
    """State of one run."""

    options: RagThief
    tools: Tools
    n_asked: int = 0
    asked: set[str] = field(default_factory=set)
    queue: deque[str] = field(default_factory=deque)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.pool = load_pool(self.tools.resources, RagThiefPool, name="rag_thief")
        self.common = load_common(self.tools.resources)
        self.memory = Memory(new_below=self.options.new_below)
        self.thoughts = Thoughts(self.options.max_thoughts)
        self.counts.update(dict.fromkeys(("chunks", "repeated_chunks", "refusals", "prepared_continuations"), 0))

    @property
    def asks_left(self) -> int:
        return self.tools.budget - self.n_asked

    def ask(self, question: str) -> Generator[Ask, str, None]:
        """Ask, and queue what is new in the reply; a refusal is no document."""
        self.n_asked += 1
        self.asked.add(question)
        reply = yield Ask(text=question)
        if is_refusal(reply, phrases=self.common.refusals):
            self.counts["refusals"] += 1
            return
        for chunk in chunks(reply):
            new = self.memory.add(chunk)
            self.counts["chunks" if new else "repeated_chunks"] += 1
            if new and self.options.reflect:
                self.queue.append(chunk)

    def drain(self) -> Generator[Ask | Think, str, None]:
        """Continue the queued chunks, first in first out, while asks are left."""
        while self.queue and self.asks_left:
            chunk = self.queue.popleft()
            for number in range(max(self.options.forward, self.options.backward)):
                yield from self._continued(chunk, number=number)

    def _continued(self, chunk: str, *, number: int) -> Generator[Ask | Think, str, None]:
        """Ask for what stands around a continuation each way, unless the same was asked before."""
        directions: dict[Direction, int] = {"forward": self.options.forward, "backward": self.options.backward}
        for direction, count in directions.items():
            if number < count and self.asks_left:
                text = yield from self._continuation(chunk, direction=direction, number=number)
                question = self.pool.copy_instruction.replace("{continuation}", text)
                if question not in self.asked:
                    yield from self.ask(question)

    def _continuation(self, chunk: str, *, direction: Direction, number: int) -> Generator[Think, str, str]:
        """Return what the model writes behind or before the chunk, else the outer half of what it was shown."""
        shown = edge(chunk, direction=direction, count=WINDOWS[min(number, len(WINDOWS) - 1)])
        writer = self.pool.forward_writer if direction == "forward" else self.pool.backward_writer
        written = " ".join((yield from self.thoughts.ask(writer.think(chunk=shown))).split())
        if len(folded_tokens(written)) >= MIN_TOKENS:
            return written
        self.counts["prepared_continuations"] += 1
        return edge(shown, direction=direction, count=max(MIN_TOKENS, len(shown.split()) // 2))
