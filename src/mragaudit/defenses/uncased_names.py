"""Names in Chinese and Arabic text, which has no capitals to go by: family or given names, titles and cues."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mragaudit.defenses.name_words import HAN, Span, Word
from mragaudit.defenses.vocabulary import Vocabulary

_RUN = re.compile(f"[{HAN}]+")
_MAX_BOUNDED = 4
"""Characters between a cue and what ends a name that count as one whatever they are."""
_MAX_GIVEN = 2
"""Characters of a Chinese given name."""
_DOUBLE = 2
_MAX_ARABIC_WORDS = 2
_PREFIXES = "وبلفك"
"""Arabic particles that are written together with the word behind them."""


class HanNames:
    """Names of a family name and one or two characters, and others where a cue bounds them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.family = frozenset("".join(vocabulary.han_family_names.split()))
        self.double = frozenset(vocabulary.han_double_family_names)
        self.stops = frozenset(vocabulary.han_stops)
        self.known = frozenset((*vocabulary.han_titles, *vocabulary.han_cues, *vocabulary.han_not_names))
        self._titles = re.compile("|".join(vocabulary.han_titles))
        self._cues = re.compile(f"(?:{'|'.join(vocabulary.han_cues)})[是为:： ]{{0,2}}")
        ends = "|".join([*sorted(self.known, key=len, reverse=True), *sorted(self.stops)])
        self._between = re.compile(f"(?:(?!{ends})[{HAN}]){{2,{_MAX_BOUNDED}}}(?=[^{HAN}]|{ends}|\\Z)")
        self._up_to = re.compile(f"(?:\\A|[^{HAN}]|{ends})((?:(?!{ends})[{HAN}]){{2,{_MAX_BOUNDED}}})\\Z")

    def find(self, text: str) -> Iterator[Span]:
        """Yield names behind a cue, before a title, alone, or at the beginning of a clause that goes on about them."""
        for match in self._cues.finditer(text):
            yield from self.name_at(text, match.end(), certain=False)
        for match in self._titles.finditer(text):
            yield from self._before(text, match.start())
        for match in _RUN.finditer(text):
            yield from self._whole(match)
            yield from self._leading(match)

    def name_at(self, text: str, at: int, *, certain: bool) -> Iterator[Span]:
        """Yield the name that begins at a place; `certain`: a label says so, whatever follows it."""
        run = _RUN.match(text, at)
        bounded = self._between.match(text, at)
        if run is None:
            return
        family = self._family(run[0])
        if family and not any(run[0].startswith(word) for word in self.known):
            yield at, at + family + self._given(run[0][family:])
        elif bounded is not None:
            yield bounded.span()
        elif certain:
            yield at, at + min(len(run[0]), _MAX_GIVEN + 1)

    def _family(self, run: str) -> int:
        """Return the length of the family name at the beginning, 0 where there is none."""
        if run[:_DOUBLE] in self.double and len(run) > _DOUBLE:
            return _DOUBLE
        return int(run[0] in self.family and len(run) > 1)

    def _given(self, rest: str) -> int:
        return 2 if len(rest) > 1 and rest[1] not in self.stops and rest[1:3] not in self.known else 1

    def _before(self, text: str, end: int) -> Iterator[Span]:
        for length in (4, 3, 2, 1):
            piece = text[max(0, end - length) : end]
            family = _DOUBLE if piece[:_DOUBLE] in self.double else int(piece[:1] in self.family)
            if family and len(piece) == length and length - family <= _MAX_GIVEN and _RUN.fullmatch(piece):
                yield end - length, end
                return
        bounded = self._up_to.search(text[max(0, end - 2 * _MAX_BOUNDED) : end])
        if bounded is not None:
            yield end - len(bounded[1]), end

    def _whole(self, match: re.Match[str]) -> Iterator[Span]:
        family = self._family(match[0])
        if family and len(match[0]) - family <= _MAX_GIVEN and match[0] not in self.known:
            yield match.span()

    def _leading(self, match: re.Match[str]) -> Iterator[Span]:
        run = match[0]
        family = self._family(run)
        length = family + _MAX_GIVEN
        if family and len(run) > length and run[length] in self.stops and run[length - 1] not in self.stops:
            yield match.start(), match.start() + length


class ArabicNames:
    """Names behind a title or a given name."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.given = frozenset(vocabulary.arabic_given_names)
        self.titles = frozenset(vocabulary.arabic_titles)
        self.connectors = frozenset(vocabulary.arabic_connectors)
        self.stops = frozenset(vocabulary.arabic_stops.split()) - self.connectors

    def find(self, words: Sequence[Word]) -> Iterator[Span]:
        """Yield a title's followers, and given names with what follows them."""
        for number, word in enumerate(words):
            if word.script != "arabic":
                continue
            if word.text in self.titles or (word.text[0] in _PREFIXES and word.text[1:] in self.titles):
                yield from self.names_from(words, number + 1)
            elif word.text in self.given or word.text[1:] in self.given:
                yield from self._from_given(words, number)

    def names_from(self, words: Sequence[Word], number: int) -> Iterator[Span]:
        """Yield the name of up to two words, connectors and compounds not counted, that begins at a word."""
        held = self._run(words, number)
        if held:
            yield held[0].start, held[-1].end

    def _from_given(self, words: Sequence[Word], number: int) -> Iterator[Span]:
        held = self._run(words, number)
        skipped = int(words[number].text not in self.given and words[number].text[0] in _PREFIXES)
        if len(held) > 1 and (skipped or words[number].text in self.given):
            yield held[0].start + skipped, held[-1].end

    def _run(self, words: Sequence[Word], number: int) -> list[Word]:
        held: list[Word] = []
        full = 0
        for word in words[number:]:
            apart = bool(held) and word.start - held[-1].end != 1
            if word.script != "arabic" or apart or word.text in self.stops:
                break
            if full >= _MAX_ARABIC_WORDS and not {word.text, held[-1].text} & self.connectors:
                break
            held.append(word)
            full += word.text not in self.connectors
        return held
