"""IKEA: implicit extraction by benign questions, steered by what was refused or answered beside the point."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mragaudit.attacks.common import (
    Space,
    Thoughts,
    check_sizes,
    is_refusal,
    load_common,
    open_space,
)
from mragaudit.attacks.pools import Pool, Writer, load_pool, require_fields
from mragaudit.attacks.steps import Ask, Outcome, Steps, Think, Tools, text_only
from mragaudit.errors import ConfigError
from mragaudit.text.rarity import rare_words

READ_CHARS = 1200
SHOWN_CHARS = 240
"""How much of a reply the attacker's encoder and its model are given."""
_WORDS_PER_REPLY = 8
_QUESTION_WORDS = (3, 30)
_NAME_WORDS = 4
_WORD = re.compile(r"[^\W\d_][\w &'-]*")
_SEPARATOR = re.compile(r"[,;|\n]")


class IkeaPool(Pool, frozen=True, kw_only=True):
    """The file `ikea.yaml`."""

    anchor_writer: Writer
    question_writer: Writer
    word_writer: Writer
    fallback_questions: tuple[str, ...]
    override_patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        require_fields(self.anchor_writer.turn, {"domain"})
        require_fields(self.question_writer.turn, {"anchor"})
        require_fields(self.word_writer.turn, {"question", "answer_text"})
        for question in self.fallback_questions:
            require_fields(question, {"anchor"})

    def overrides(self, question: str) -> bool:
        """Return whether a question asks for more than a benign one would."""
        return any(re.search(pattern, question, re.IGNORECASE) for pattern in self.override_patterns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A question that was asked, and what the attacker holds against its anchor for the reply."""

    anchor: str
    question: str
    reply: str
    penalty: float
    """0 for an answer; below 0 for a refusal or an answer beside the point."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ikea:
    """IKEA with the thresholds of its paper, taken in a centred space.

    Source: Wang et al. (arXiv 2505.15420v1), with one question a call of the model, as it decodes greedily. Ours are
    `unrelated_below`, which the paper's table lacks, the number of anchors, and the prepared questions. The paper knows
    a topic word alone: so the domain is what anchors are proposed for; topics stand in where the model's words do not
    pass, and public titles, where known, are the anchors themselves. An anchor whose questions are spent is dropped;
    when all are, the attack ends below its budget.
    """

    name: ClassVar[str] = "ikea"
    anchors: int = 20
    anchor_to_topic: float = 0.3
    """Least cosine of an anchor to the domain."""
    anchor_to_anchor: float = 0.5
    """Greatest cosine of two anchors."""
    question_to_anchor: float = 0.7
    near: float = 0.7
    """Cosine from which an earlier question counts against an anchor."""
    refusal_penalty: float = -10.0
    unrelated_penalty: float = -7.0
    unrelated_below: float = 0.3
    trust_region: float = 0.5
    """A new word must be at least so near to the answer, as a share of the question's cosine to it."""
    repeated_above: float = 0.6
    """Cosine to an earlier question or answer at which a chain of mutations ends."""
    mutate: bool = True
    """Trust-region directed mutation."""
    max_thoughts: int | None = None
    """Calls of its own model in all; prepared words stand in after that."""

    def __post_init__(self) -> None:
        check_sizes(self.name, anchors=self.anchors)
        check_sizes(self.name, at_least=0, max_thoughts=self.max_thoughts or 0)
        for option in ("refusal_penalty", "unrelated_penalty"):
            if getattr(self, option) > 0:
                raise ConfigError(f'{self.name}: "{option}" is above 0; a penalty is 0 or below')

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask until the budget or all anchors are spent; counts of questions by origin, refusals and thoughts."""
        run = _Run(options=self, tools=tools)
        yield from run.propose_anchors()
        while run.asks_left and run.has_anchors():
            yield from run.chain(run.sampled_anchor())
        return Outcome(counts={**run.counts, "thoughts": run.thoughts.count})


def anchor_probabilities(penalties: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of the summed penalties, at temperature 1."""
    weights = np.exp(penalties - penalties.max())
    return np.asarray(weights / weights.sum())


def summed_penalties(
    anchors: Sequence[str], history: Sequence[Exchange], *, space: Space, near: float
) -> NDArray[np.float64]:
    """Return for each anchor the sum of the penalties of questions made for it, or at least `near` to it."""
    counted = [exchange for exchange in history if exchange.penalty]
    if not counted:
        return np.zeros(len(anchors))
    close = space.cosines(anchors, [exchange.question for exchange in counted]) >= near
    own = np.array([[exchange.anchor == anchor for exchange in counted] for anchor in anchors])
    penalties = np.array([exchange.penalty for exchange in counted])
    return np.asarray(((close | own) * penalties).sum(axis=1))


@dataclass(kw_only=True)
class _Run:
    """State of one run."""

    options: Ikea
    tools: Tools
    anchors: list[str] = field(default_factory=list)
    history: list[Exchange] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    spent: set[str] = field(default_factory=set)
    """Anchors for which no further question is left."""
    written: set[str] = field(default_factory=set)
    """Anchors for which the model was asked; it would write the same again."""
    prepared: set[str] = field(default_factory=set)
    """Questions that the model did not write."""

    def __post_init__(self) -> None:
        self.pool = load_pool(self.tools.resources, IkeaPool, name="ikea")
        self.common = load_common(self.tools.resources)
        self.space = open_space(self.tools)
        self.thoughts = Thoughts(self.options.max_thoughts)
        self.counts.update(dict.fromkeys(("written_questions", "prepared_questions", "prepared_anchors"), 0))
        self.counts.update(dict.fromkeys(("refusals", "unrelated", "mutations"), 0))

    @property
    def asks_left(self) -> int:
        return self.tools.budget - len(self.history)

    @property
    def open_anchors(self) -> list[str]:
        return [anchor for anchor in self.anchors if anchor not in self.spent]

    def propose_anchors(self) -> Generator[Think, str, None]:
        """Take public titles, else what the model names for the domain, filled up with the topics."""
        knowledge = self.tools.knowledge
        if knowledge.handles:
            self.anchors = list(dict.fromkeys(knowledge.handles))
            return
        written = yield from self.thoughts.ask(self.pool.anchor_writer.think(domain=knowledge.domain))
        known = {knowledge.domain.casefold()}
        proposed = [word for word in self._benign(_named(written)) if word.casefold() not in known]
        self.anchors = self._dispersed([*proposed, *knowledge.topics])
        self.counts["prepared_anchors"] = sum(anchor not in proposed for anchor in self.anchors)

    def _dispersed(self, words: Sequence[str]) -> list[str]:
        """Return the words near enough to the domain and far enough from each other, in order."""
        kept: list[str] = []
        for word in dict.fromkeys(words):
            near_topic = self.space.cosine(word, self.tools.knowledge.domain) >= self.options.anchor_to_topic
            apart = not kept or self.space.cosines([word], kept).max() <= self.options.anchor_to_anchor
            if near_topic and apart and len(kept) < self.options.anchors:
                kept.append(word)
        return kept

    def has_anchors(self) -> bool:
        """Return whether an anchor has questions left, once topics stand in where all others are spent."""
        if not self.open_anchors and not self.tools.knowledge.handles:
            known = self.tools.knowledge.topics or (self.tools.knowledge.domain,)
            added = [topic for topic in dict.fromkeys(known) if topic not in self.anchors]
            self.anchors += added
            self.counts["prepared_anchors"] += len(added)
        return bool(self.open_anchors)

    def sampled_anchor(self) -> str:
        """Draw one of the open anchors."""
        anchors = self.open_anchors
        penalties = summed_penalties(anchors, self.history, space=self.space, near=self.options.near)
        return anchors[int(self.tools.rng.choice(len(anchors), p=anchor_probabilities(penalties)))]

    def chain(self, anchor: str) -> Generator[Ask | Think, str, None]:
        """Ask about an anchor, then about words from the answers, until one leads back to what is known."""
        question = yield from self.question(anchor)
        while question is not None and self.asks_left:
            earlier = list(self.history)
            self.counts["prepared_questions" if question in self.prepared else "written_questions"] += 1
            reply = yield Ask(text=question)
            exchange = self.judged(anchor, question=question, reply=reply[:READ_CHARS])
            self.history.append(exchange)
            if not self.options.mutate or not self.asks_left or self._ended(exchange, earlier=earlier):
                return
            word = yield from self.mutated_word(exchange)
            question = (yield from self.question(word)) if word else None
            if question is None or self._repeats(question, [item.question for item in self.history]):
                return
            self.counts["mutations"] += 1
            anchor = word

    def judged(self, anchor: str, *, question: str, reply: str) -> Exchange:
        """Return the exchange with its penalty."""
        penalty = 0.0
        if is_refusal(reply, phrases=self.common.refusals):
            penalty = self.options.refusal_penalty
            self.counts["refusals"] += 1
        elif self.space.cosine(question, reply) < self.options.unrelated_below:
            penalty = self.options.unrelated_penalty
            self.counts["unrelated"] += 1
        return Exchange(anchor=anchor, question=question, reply=reply, penalty=penalty)

    def _ended(self, exchange: Exchange, *, earlier: Sequence[Exchange]) -> bool:
        refused = is_refusal(exchange.reply, phrases=self.common.refusals)
        return refused or self._repeats(exchange.reply, [item.reply for item in earlier if item.reply.strip()])

    def _repeats(self, text: str, others: Sequence[str]) -> bool:
        return bool(others) and float(self.space.cosines([text], others).max()) > self.options.repeated_above

    def mutated_word(self, exchange: Exchange) -> Generator[Think, str, str]:
        """Return the word within the trust region of the answer that is least like the question; empty: none."""
        shown = " ".join(exchange.reply[:SHOWN_CHARS].split())
        think = self.pool.word_writer.think(question=exchange.question, answer_text=shown)
        written = yield from self.thoughts.ask(think)
        [of_reply] = rare_words([exchange.reply], count=_WORDS_PER_REPLY)
        words = [word for word in self._benign((*_named(written), *of_reply)) if word not in self.spent]
        bound = self.options.trust_region * self.space.cosine(exchange.question, exchange.reply)
        near = [word for word in words if self.space.cosine(word, exchange.reply) >= bound]
        return min(near, key=lambda word: self.space.cosine(word, exchange.question), default="")

    def question(self, anchor: str) -> Generator[Think, str, str | None]:
        """Return a new benign question: the model's where it is near enough, else the nearest of the prepared ones.

        None, and the anchor is spent, where all have been asked.
        """
        asked = {exchange.question for exchange in self.history}
        if anchor not in self.written:
            self.written.add(anchor)
            question = _first_question((yield from self.thoughts.ask(self.pool.question_writer.think(anchor=anchor))))
            if self._accepted(question, anchor=anchor) and question not in asked:
                return question
        prepared = [text.format(anchor=anchor) for text in self.pool.fallback_questions]
        left = [text for text in prepared if text not in asked]
        if not left:
            self.spent.add(anchor)
            return None
        chosen = max(left, key=lambda text: self.space.cosine(text, anchor))
        self.prepared.add(chosen)
        return chosen

    def _benign(self, texts: Iterable[str]) -> list[str]:
        """Return the distinct words that could stand in a benign question, in order."""
        return [text for text in dict.fromkeys(texts) if not self.pool.overrides(text)]

    def _accepted(self, question: str, *, anchor: str) -> bool:
        least, most = _QUESTION_WORDS
        fits = question.endswith(("?", "？", "؟")) and least <= len(question.split()) <= most
        if not fits or self.pool.overrides(question.replace(anchor, "")):  # a public title may hold any word
            return False
        return self.space.cosine(question, anchor) >= self.options.question_to_anchor


def _named(written: str) -> list[str]:
    """Return the words that a model wrote, separated by commas or lines, without what is no word."""
    words = (word.strip(" .\"'-*") for word in _SEPARATOR.split(written))
    return [word for word in dict.fromkeys(words) if _WORD.fullmatch(word) and len(word.split()) <= _NAME_WORDS]


def _first_question(written: str) -> str:
    """Return the first line up to its question mark."""
    line = next((line.strip() for line in written.splitlines() if line.strip()), "")
    marked = re.match(r"[^?？؟]*[?？؟]", line)
    return marked[0] if marked else line
