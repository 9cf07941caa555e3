"""Where a text names people: rules and a lexicon, no model.

Capital letters, honorifics, labels such as "From:" and cue phrases for scripts with capitals; family names, titles and
cues for Chinese and Arabic; and any short run of a script without capitals inside text of one that has them. What the
rules do not see stays, so their recall is the protection; it is measured in `docs/hook_audit/defenses.md`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from mragaudit.defenses.name_words import Span, Word, script_of, words_of
from mragaudit.defenses.uncased_names import ArabicNames, HanNames
from mragaudit.defenses.vocabulary import Script, Vocabulary
from mragaudit.text.function_words import FUNCTION_WORDS

_SEGMENT = re.compile(r"[,;|/&、،]| and | und | na | - ")
_VALUE = re.compile(r"[^\n\d<(\[\0@]{1,120}")
_MAX_WORDS = 4
_MAX_HAN = 5
"""Characters of a word that counts as a name, or part of one, for standing alone in other text."""
_MAX_LETTERS = 40
_MIN_PART = 3
"""Letters of a part of a name that is also looked for by itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mention:
    """A place where a person is named, and who it is."""

    start: int
    end: int
    key: str
    """The same for all mentions of one person in a text, the shorter ones included."""
    script: Script


class NameFinder:
    """Finds the people of a text in the normal form of `mragaudit.text.normalise`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        grammar = {word for language in ("en", "de", "sw") for word in FUNCTION_WORDS[language]}
        self.particles = frozenset(vocabulary.particles)
        self.never_first = frozenset(vocabulary.not_names.split()) | grammar
        self.ended_by = self.never_first - self.particles
        self.weak = frozenset(vocabulary.weak_names.split())
        self.han = HanNames(vocabulary)
        self.arabic = ArabicNames(vocabulary)
        longest = sorted({*vocabulary.labels}, key=len, reverse=True)
        self._labels = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest))}) ?[:：] ?", re.IGNORECASE)
        self._honorifics = frozenset(word.casefold() for word in vocabulary.honorifics)
        cues = sorted(vocabulary.cues, key=len, reverse=True)
        self._cues = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, cues))}),?\s+(?=\S)", re.IGNORECASE)

    def find(self, text: str) -> list[Mention]:
        """Return all mentions, ascending and disjoint."""
        words = words_of(text)
        runs = list(self._runs(text, words))
        names = {start: (start, end) for run in runs for start, end in self._tails(run)}
        spans = [*self._pairs(runs, words), *self._after_honorifics(text, words, names)]
        spans += [*self._after_cues(text, names), *self._after_labels(text, words, names)]
        spans += [*self.han.find(text), *self.arabic.find(words), *_islands(text, words)]
        return self._mentions(text, words, spans=_merged(spans))

    # scripts with capitals
    def _runs(self, text: str, words: list[Word]) -> Iterator[list[Word]]:
        """Yield runs of capitalised words on one line, with particles and initials inside."""
        run: list[Word] = []
        for word in words:
            joined = bool(run) and re.fullmatch(r"\.? |\. ?", text[run[-1].end : word.start]) is not None
            if joined and len(run[-1].text) > 1 and text[run[-1].end] == ".":
                joined = run[-1].folded in self._honorifics
            if run and not joined:
                yield self._without_particles(run)
                run = []
            if self._may_name(word, inside=bool(run)):
                run.append(word)
            elif run:
                yield self._without_particles(run)
                run = []
        yield self._without_particles(run)

    def _may_name(self, word: Word, *, inside: bool) -> bool:
        if word.script != "cased" or word.folded in self._honorifics:
            return False
        if not word.capitalised:
            return inside and word.text in self.particles
        # "Der" begins a German sentence more often than a name, "van der Berg" has it inside.
        return word.folded not in (self.ended_by if inside else self.never_first)

    def _without_particles(self, run: list[Word]) -> list[Word]:
        while run and not run[-1].capitalised:
            run = run[:-1]
        return run

    def _tails(self, run: list[Word]) -> Iterator[Span]:
        """Yield what a name would be that begins at a word of the run, where a cue stands before it."""
        ordinary = True
        for word in reversed(run):
            ordinary = ordinary and word.folded in self.weak
            if word.capitalised and not ordinary:
                yield word.start, run[-1].end

    def _pairs(self, runs: list[list[Word]], words: list[Word]) -> Iterator[Span]:
        """Yield runs of two capitalised words or more that are not all ordinary ones."""
        plain = {word.folded for word in words if word.script == "cased" and not word.capitalised}
        for run in runs:
            capitals = [word for word in run if word.capitalised]
            ordinary = [word.folded in self.weak or word.folded in plain for word in capitals]
            if len(capitals) > 1 and not all(ordinary) and any(len(word.text) > 1 for word in capitals):
                yield run[0].start, run[-1].end

    def _after_honorifics(self, text: str, words: list[Word], names: dict[int, Span]) -> Iterator[Span]:
        for word, follower in pairwise(words):
            if word.folded in self._honorifics and re.fullmatch(r"\.? |\.", text[word.end : follower.start]):
                yield from _known(names, follower.start)

    def _after_cues(self, text: str, names: dict[int, Span]) -> Iterator[Span]:
        for match in self._cues.finditer(text):
            yield from _known(names, match.end())

    # labels, of any script
    def _after_labels(self, text: str, words: list[Word], names: dict[int, Span]) -> Iterator[Span]:
        for match in self._labels.finditer(text):
            value = _VALUE.match(text, match.end())
            if value is None:
                continue
            at = value.start()
            for number, segment in enumerate(_SEGMENT.split(value[0])):
                start = text.index(segment, at)
                at = start + len(segment)
                held = _inside(words, start, at)
                yield from self._label_value(text, held, names=names, first=number == 0)

    def _label_value(self, text: str, held: list[Word], *, names: dict[int, Span], first: bool) -> Iterator[Span]:
        if not held:
            return
        script = held[0].script
        if script == "han":
            yield from self.han.name_at(text, held[0].start, certain=first)
        elif script == "arabic":
            yield from self.arabic.names_from(held, 0)
        elif script == "other" and len(held) <= _MAX_WORDS:
            yield held[0].start, held[-1].end
        elif held[0].capitalised:
            yield from _known(names, held[0].start)
        elif first and len(held) <= _MAX_WORDS - 1 and not any(word.folded in self.ended_by for word in held):
            yield held[0].start, held[-1].end

    # who is who
    def _mentions(self, text: str, words: list[Word], *, spans: list[Span]) -> list[Mention]:
        people = _People()
        for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
            people.add(_tokens(text, words, (start, end)))
        spans = _merged([*spans, *self._repeats(text, words, spans)])
        return [
            Mention(
                start=start,
                end=end,
                key=people.key(_tokens(text, words, (start, end))),
                script=script_of(text[start:end]),
            )
            for start, end in spans
        ]

    def _repeats(self, text: str, words: list[Word], spans: list[Span]) -> Iterator[Span]:
        """Yield further places of a name that was found, and of its parts where they are no ordinary words."""
        parts: set[str] = set()
        for surface in {text[start:end] for start, end in spans}:
            bound = r"\b" if script_of(surface) != "han" else ""
            for match in re.finditer(bound + re.escape(surface) + bound, text, re.IGNORECASE):
                yield match.span()
        for start, end in spans:
            script = script_of(text[start:end])
            held = _inside(words, start, end)
            if script == "cased" and len(held) > 1:
                parts |= {word.folded for word in held if len(word.text) >= _MIN_PART}
        parts -= self.ended_by | self.weak | self.particles
        yield from ((word.start, word.end) for word in words if word.capitalised and word.folded in parts)


class _People:
    """The people of one text, the longest form of each name first."""

    def __init__(self) -> None:
        self._forms: list[tuple[frozenset[str], str]] = []

    def add(self, tokens: list[str]) -> None:
        """Take in a name, given longer ones before it."""
        if not any(_is_part(tokens, form) for form, _ in self._forms):
            self._forms.append((frozenset(tokens), " ".join(sorted(tokens))))

    def key(self, tokens: list[str]) -> str:
        """Return the key of the first person whose name has these words, initials for words included."""
        for form, key in self._forms:
            if _is_part(tokens, form):
                return key
        return " ".join(sorted(tokens))


def _is_part(tokens: list[str], form: frozenset[str]) -> bool:
    return all(
        token in form or (len(token) == 1 and any(other.startswith(token) for other in form)) for token in tokens
    )


def _inside(words: list[Word], start: int, end: int) -> list[Word]:
    """Return the words that lie inside a span."""
    first = bisect_left(words, start, key=lambda word: word.start)
    last = bisect_right(words, end, key=lambda word: word.end)
    return words[first:last]


def _tokens(text: str, words: list[Word], span: Span) -> list[str]:
    """Return the folded words of a span, cut to it: a name in Han script is often part of a longer run."""
    start, end = span
    first = bisect_right(words, start, key=lambda word: word.end)
    last = bisect_left(words, end, key=lambda word: word.start)
    return [text[max(word.start, start) : min(word.end, end)].casefold() for word in words[first:last]]


def _known(names: dict[int, Span], start: int) -> list[Span]:
    return [names[start]] if start in names else []


def _merged(spans: list[Span]) -> list[Span]:
    """Return the spans ascending, those that overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def _islands(text: str, words: list[Word]) -> Iterator[Span]:
    """Yield short runs of a script without capitals on lines that are otherwise mostly of one with capitals."""
    lines: dict[int, tuple[int, int]] = {}
    for run in _foreign_runs(text, words):
        start = text.rfind("\n", 0, run[0].start) + 1
        if start not in lines:
            line = text[start:].partition("\n")[0]
            lines[start] = sum(char.lower() != char.upper() for char in line), sum(map(str.isalpha, line))
        cased, letters = lines[start]
        others = letters - cased - sum(map(str.isalpha, text[run[0].start : run[-1].end]))
        if cased and cased >= others and _is_short(run):
            yield run[0].start, run[-1].end


def _foreign_runs(text: str, words: list[Word]) -> Iterator[list[Word]]:
    """Yield runs of neighbouring words of one script without capitals."""
    run: list[Word] = []
    for word in words:
        if run and (word.script != run[-1].script or text[run[-1].end : word.start] not in {" ", "·", "-"}):
            yield run
            run = []
        if word.script != "cased":
            run.append(word)
    if run:
        yield run


def _is_short(run: list[Word]) -> bool:
    longest = _MAX_HAN if run[0].script == "han" else _MAX_LETTERS
    letters = sum(len(word.text) for word in run)
    return len(run) <= _MAX_WORDS and 1 < letters <= _MAX_LETTERS and all(len(word.text) <= longest for word in run)
