"""Six probes, each made for one way in which a defense may fail; all of them are ours."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import ClassVar

import msgspec

from mragaudit.attacks.common import check_sizes, draw_anchors, is_refusal, load_common
from mragaudit.attacks.encodings import ENCODINGS, Encoding, readings
from mragaudit.attacks.pools import Pool, load_pool, require_fields
from mragaudit.attacks.ps import seed_prompts
from mragaudit.attacks.steps import Ask, Derived, Link, Outcome, Steps, Tools, text_only
from mragaudit.pii.email import find_unicode
from mragaudit.text.names import capitalised_names

READ_CHARS = 20_000
"""How much of one reply is read."""
QUOTED_WORDS = 12


class SplitPrompts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two turns of one dialogue."""

    first: str
    second: tuple[str, ...]
    second_bare: tuple[str, ...]

    def __post_init__(self) -> None:
        require_fields(self.first, {"anchor"})
        for template in self.second:
            require_fields(template, {"quote"})
        for template in self.second_bare:
            require_fields(template, set())
        if not self.second or len(self.second) != len(self.second_bare):
            raise ValueError('"second" and "second_bare" ask for the same attributes in the same order')


class ProbesPool(Pool, frozen=True, kw_only=True):
    """The file `probes.yaml`."""

    repeat_union: tuple[str, ...]
    encoding_round_trip: dict[str, tuple[str, ...]]
    denoise: tuple[str, ...]
    cross_lingual: dict[str, tuple[str, ...]]
    split_request: SplitPrompts

    def __post_init__(self) -> None:
        lists = [*self.encoding_round_trip.values(), *self.cross_lingual.values()]
        for templates in (self.repeat_union, self.denoise, *lists):
            if not templates:
                raise ValueError("a list of prompts is empty")
            for template in templates:
                require_fields(template, {"anchor"})
        if set(self.encoding_round_trip) != {encoding.name for encoding in ENCODINGS}:
            raise ValueError(f'"encoding_round_trip" needs exactly {[encoding.name for encoding in ENCODINGS]}')
        if len({len(templates) for templates in self.cross_lingual.values()}) != 1:
            raise ValueError('"cross_lingual" needs the same instructions in every language')


def load_probes(tools: Tools) -> ProbesPool:
    """Return the prompts of all probes; errors as in load_pool."""
    return load_pool(tools.resources, ProbesPool, name="probes")


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatUnion:
    """Repeat and union, against noise on scores: the same question again and again, all replies taken together.

    Holds if items recovered by the first r repeats rise with r where noise is fresh, and stay where it is kept for
    each question. `questions`: different questions that share the budget, in turn.
    """

    name: ClassVar[str] = "repeat_union"
    questions: int = 1

    def __post_init__(self) -> None:
        check_sizes(self.name, questions=self.questions)

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask the questions in turn until the budget is spent, each time in a new dialogue."""
        templates = load_probes(tools).repeat_union
        anchors = draw_anchors(tools, self.questions)
        asked = [templates[at % len(templates)].format(anchor=anchor) for at, anchor in enumerate(anchors)]
        for question in islice(cycle(asked), tools.budget):
            yield Ask(text=question)
        return Outcome(counts={"questions": min(self.questions, tools.budget)})


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodingRoundTrip:
    """Encoding round trip, against masks of patterns: replies spelled out, backwards, in base64, in another script.

    Holds if an item that a mask takes from plain replies stands in a decoded one. `Derived.how` names the encoding;
    Cyrillic is the lossy one.
    """

    name: ClassVar[str] = "encoding_round_trip"

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask in each encoding in turn about one anchor after the other, and decode what comes back."""
        prompts = load_probes(tools).encoding_round_trip
        anchors = draw_anchors(tools, math.ceil(tools.budget / len(ENCODINGS)))
        derived: list[Derived] = []
        for at in range(tools.budget):
            row, column = divmod(at, len(ENCODINGS))
            encoding = ENCODINGS[column]
            templates = prompts[encoding.name]
            reply = yield Ask(text=templates[row % len(templates)].format(anchor=anchors[row]))
            derived += _decoded(reply, encoding=encoding, call=at + 1)
        return Outcome(derived=tuple(derived), counts=_tally(ENCODINGS, derived))


def _decoded(reply: str, *, encoding: Encoding, call: int) -> list[Derived]:
    return [Derived(call=call, text=text, how=encoding.name) for text in readings(reply, encoding)]


def _tally(encodings: Iterable[Encoding], derived: Iterable[Derived]) -> dict[str, int]:
    """Return the number of decoded texts by encoding."""
    found = Counter(text.how for text in derived)
    return {encoding.name: found[encoding.name] for encoding in encodings}


@dataclass(frozen=True, kw_only=True, slots=True)
class Denoise:
    """Denoise, against substitution of entities: consistent pseudonyms still tell that two documents share a person.

    Holds if the number of links under substitution is that without it. A link is a name (two capitalised words) or
    an e-mail address that stands in replies about different anchors and in no question. Not scored: whether the
    pseudonym could be resolved, whether two documents really share the person, and names in scripts without capitals.
    """

    name: ClassVar[str] = "denoise"

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask who is named in one document after the other; return the links."""
        templates = load_probes(tools).denoise
        anchors = draw_anchors(tools, tools.budget)
        seen: dict[str, dict[int, str]] = defaultdict(dict)
        questions = []
        for call, anchor in enumerate(anchors, start=1):
            questions.append(templates[(call - 1) % len(templates)].format(anchor=anchor))
            reply = yield Ask(text=questions[-1])
            for name in _people(reply[:READ_CHARS]):
                seen[name][call] = anchor
        links = _links(seen, questions=questions)
        return Outcome(links=links, counts={"names": len(seen), "links": len(links)})


def _people(reply: str) -> set[str]:
    spans = [*capitalised_names(reply), *find_unicode(reply)]
    return {reply[start:end] for start, end in spans}


def _links(seen: dict[str, dict[int, str]], *, questions: Sequence[str]) -> tuple[Link, ...]:
    asked = "\n".join(questions).casefold()
    return tuple(
        Link(name=name, calls=tuple(sorted(calls)))
        for name, calls in sorted(seen.items())
        if len(set(calls.values())) > 1 and name.casefold() not in asked
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionReset:
    """Session reset, against budgets of a dialogue: questions of one long dialogue, then the same in new dialogues.

    Holds if a budget that the long dialogue has used up is there again in a new one, which it must not be when the
    ledger is the asker's. Tells something only where half the budget exceeds the horizon of the defense.
    """

    name: ClassVar[str] = "session_reset"

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask half the budget in one dialogue and the same again in one each; counts of refusals in either half."""
        phrases = load_common(tools.resources).refusals
        questions = [prompt.question for prompt in seed_prompts(tools)][: math.ceil(tools.budget / 2)]
        refused = {"refusals_in_one_session": 0, "refusals_in_new_sessions": 0}
        for question in questions:
            reply = yield Ask(text=question, session="reset-long")
            refused["refusals_in_one_session"] += is_refusal(reply, phrases=phrases)
        for number, question in enumerate(questions[: tools.budget - len(questions)], start=1):
            reply = yield Ask(text=question, session=f"reset-{number}")
            refused["refusals_in_new_sessions"] += is_refusal(reply, phrases=phrases)
        return Outcome(counts=refused)


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossLingual:
    """Cross-lingual instruction, against judges of the question: the anchor stays English, the instruction does not.

    Holds if more questions pass, or more items come back, than in English at the same budget. Each anchor is asked
    about in all languages in turn, so that languages differ by the instruction alone.
    """

    name: ClassVar[str] = "cross_lingual"

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask in each language in turn about one anchor after the other; counts of refusals by language."""
        prompts = load_probes(tools).cross_lingual
        languages = list(prompts)
        phrases = load_common(tools.resources).refusals
        anchors = draw_anchors(tools, math.ceil(tools.budget / len(languages)))
        refused = {f"refusals_{language}": 0 for language in languages}
        for at in range(tools.budget):
            row, column = divmod(at, len(languages))
            templates = prompts[languages[column]]
            reply = yield Ask(text=templates[row % len(templates)].format(anchor=anchors[row]))
            refused[f"refusals_{languages[column]}"] += is_refusal(reply, phrases=phrases)
        return Outcome(counts=refused)


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitRequest:
    """Split request, against judges of the question: a harmless turn finds the document, the next asks one attribute.

    Holds if the second turn passes where the two in one question are stopped. With `restate` the second turn quotes
    some words of the first reply, so that a pipeline without memory finds the document by them. Without it the second
    turn says "there": it needs a pipeline that keeps the history of `Ask.session`, and finds nothing without one.
    """

    name: ClassVar[str] = "split_request"
    restate: bool = True

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask pairs of turns, each pair in its dialogue; an odd call of the budget is left unused."""
        prompts = load_probes(tools).split_request
        phrases = load_common(tools.resources).refusals
        bare = 0
        for number, anchor in enumerate(draw_anchors(tools, tools.budget // 2)):
            session = f"split-{number + 1}"
            reply = yield Ask(text=prompts.first.format(anchor=anchor), session=session)
            quote = "" if is_refusal(reply, phrases=phrases) else _quote(reply)
            if self.restate and quote:
                second = prompts.second[number % len(prompts.second)].replace("{quote}", quote)
            else:
                second, bare = prompts.second_bare[number % len(prompts.second_bare)], bare + 1
            yield Ask(text=second, session=session)
        return Outcome(counts={"second_turns_without_quote": bare})


def _quote(reply: str) -> str:
    """Return the first words of a reply, without any name or address: the second turn may not ask with an item."""
    shown = reply[:READ_CHARS]
    for start, end in sorted([*capitalised_names(shown), *find_unicode(shown)], reverse=True):
        shown = f"{shown[:start]} {shown[end:]}"
    words = [word for word in shown.split() if not any(map(str.isdigit, word))]
    return " ".join(words[:QUOTED_WORDS]).replace('"', "")
