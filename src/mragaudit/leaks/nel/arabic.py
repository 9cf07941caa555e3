"""Arabic names. There are no capitals: the lexicon, family particles and forms of origin decide."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mragaudit.leaks.nel.items import Board, ItemType
from mragaudit.leaks.nel.lexicon import Kind, Lexicon, arabic_key

_WORD = re.compile(r"[\u0621-\u064a\u0671-\u06d3]+")
_SERVANT = "عبد"
_COMPLEMENTS = frozenset(arabic_key(word) for word in "الله الدين الحق الإسلام".split())
_PARTICLES = frozenset(arabic_key(word) for word in "بن ابن بنت آل أبو ابو أم بو ولد بني".split())
_FAMILY = frozenset(arabic_key(word) for word in "آل بن ابن بنت".split())
# The family behind them is named before: "X آل Y", "X بن Y".
# As it stands in the text: the key of "on" is that of the name Ali.
_ON = "على"
_KUNYA = frozenset(arabic_key(word) for word in "أبو ابو أم".split())
_PREFIXES = "وفبلك"
_ORIGIN = re.compile(r"ال[\u0621-\u064a]{2,12}[ىه]|(?!ى|ت|ن|س)[\u0621-\u064a]{3,12}ى")
_NEVER = Kind.NOT | Kind.TITLE | Kind.ORGANISATION | Kind.STREET | Kind.HEAD | Kind.HONORIFIC
_AHEAD = 8
_MIN_NAME = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word, or two that are one name ("عبد الله", "نور الدين"), with what the lexicon says of it."""

    start: int
    end: int
    key: str
    kind: int
    joined: bool

    @property
    def nameable(self) -> bool:
        """Whether it may be a part of a name."""
        return bool(self.kind & Kind.NAME) or not self.kind & _NEVER

    @property
    def origin(self) -> bool:
        """Whether it has the form of a name of origin ("المصري")."""
        return not self.kind & _NEVER and _ORIGIN.fullmatch(self.key) is not None

    def sure(self, kind: int) -> bool:
        """Whether it is a name of the kind and no everyday word."""
        return bool(self.kind & kind) and not self.kind & Kind.WORD


def find(board: Board, lexicon: Lexicon) -> None:
    """Put names; those of one part or of everyday words as ambiguous, those of institutions as ORG_TITLE."""
    words = _split(board.text, lexicon)
    at = 0
    while at < len(words):
        at = _step(board, words, at)


def _split(text: str, lexicon: Lexicon) -> list[Word]:
    words: list[Word] = []
    past = -1
    for match in _WORD.finditer(text):
        joined = past >= 0 and _gap(text[past : match.start()])
        key = arabic_key(match[0])
        start = match.start() + _prefix_length(key, lexicon)
        key = key[start - match.start() :]
        past = match.end()
        if joined and words and _completes(words[-1], key):
            words[-1] = _merged(words[-1], match.end(), key=key)
            continue
        kind = Kind.NOT if match[0] == _ON else lexicon.arabic.get(key, Kind.NONE)
        words.append(Word(start=start, end=match.end(), key=key, kind=kind, joined=joined))
    return words


def _completes(first: Word, key: str) -> bool:
    """Whether the word makes one name with the word before: "عبد الله", "نور الدين"."""
    return key in _COMPLEMENTS or (first.key == _SERVANT and key.startswith("ال"))


def _gap(gap: str) -> bool:
    return gap == " " or (len(gap) < 8 and gap.strip("*_`") == " ")  # noqa: PLR2004  # markup on both sides


def _prefix_length(key: str, lexicon: Lexicon) -> int:
    """Return 1 where a one-letter word ("and", "to", "by") is written onto a known given name."""
    known = lexicon.arabic.get(key, Kind.NONE)
    rest = lexicon.arabic.get(key[1:], Kind.NONE)
    attached = not known and key[0] in _PREFIXES and len(key) > _MIN_NAME and rest & (Kind.NAME | Kind.HONORIFIC)
    return 1 if attached else 0


def _merged(first: Word, end: int, *, key: str) -> Word:
    given = first.key == _SERVANT or bool(first.kind & Kind.GIVEN)
    kind = Kind.GIVEN if given else first.kind
    return Word(start=first.start, end=end, key=f"{first.key} {key}", kind=kind, joined=first.joined)


def _follows(board: Board, words: list[Word], at: int) -> bool:
    return at < len(words) and words[at].joined and board.free(words[at].start, words[at].end)


def _step(board: Board, words: list[Word], at: int) -> int:
    word = words[at]
    if not board.free(word.start, word.end):
        return at + 1
    if word.kind & (Kind.ORGANISATION | Kind.STREET | Kind.HEAD) and not word.kind & Kind.NAME:
        return _institution(board, words, at)
    if word.start in board.labelled and word.nameable:
        return _announced(board, words, at, rule="label")
    if word.kind & Kind.HONORIFIC and _follows(board, words, at + 1):
        past = _titled(board, words, at)
        if past > at:
            return past
    if word.kind & Kind.GIVEN:
        return _given_first(board, words, at)
    return _family_by_particle(board, words, at)


def _institution(board: Board, words: list[Word], at: int) -> int:
    """Take an institution, street or place with the names behind it."""
    past = at + 1
    while past < at + 5 and _follows(board, words, past) and _belongs(words[past]):
        past += 1
    if past == at + 1:
        return past
    item: ItemType = "ADDRESS" if words[at].kind & Kind.STREET else "ORG_TITLE"
    board.put(item, (words[at].start, words[past - 1].end), rule="institution")
    return past


def _belongs(word: Word) -> bool:
    """Whether the word goes on the name of an institution."""
    known = word.kind & (Kind.NAME | Kind.HEAD | Kind.HONORIFIC) or word.key in _PARTICLES
    return bool(known) or (word.key.startswith("ال") and not word.kind & Kind.NOT)


def _titled(board: Board, words: list[Word], at: int) -> int:
    """Take the name behind one title or more."""
    first = at + 1
    while first < at + 4 and _follows(board, words, first) and words[first].kind & Kind.HONORIFIC:
        if words[first].kind & Kind.GIVEN:
            break
        first += 1
    if not _follows(board, words, first) or not words[first].nameable or words[first].kind & Kind.NOT:
        return at
    return _announced(board, words, first, rule="honorific")


def _announced(board: Board, words: list[Word], first: int, *, rule: str) -> int:
    """Take what a title or label says to be a name: two parts whatever they are, further ones that a list has."""
    past = _after_given(board, words, first)
    if past == first + 1 and _follows(board, words, past) and words[past].nameable:
        past += 1
        while past < first + _AHEAD and _family_end(board, words, past) > past:
            past = _family_end(board, words, past)
    span = (words[first].start, words[past - 1].end)
    if past > first + 1:
        board.put("PERSON_NAME", span, rule=rule)
    else:
        board.put("PERSON_NAME_AMBIGUOUS", span, rule=f"{rule}_single")
    return past


def _after_given(board: Board, words: list[Word], first: int) -> int:
    """Return the index past the given name and the family parts that the rules know behind it."""
    past = first + 1
    if words[first].key in _KUNYA and _follows(board, words, past):
        past += 1
    while past < first + _AHEAD:
        further = _family_end(board, words, past)
        if further == past:
            break
        past = further
    return past


def _family_end(board: Board, words: list[Word], at: int) -> int:
    """Return the index past one family part at `at`: particles and a name, a known name, a name of origin."""
    past = at
    while past < at + 3 and _follows(board, words, past) and words[past].key in _PARTICLES:
        past += 1
    if not _follows(board, words, past):
        return at
    word = words[past]
    if past > at:
        return past + 1 if word.nameable else at
    return past + 1 if word.kind & Kind.NAME or word.origin else at


def _given_first(board: Board, words: list[Word], at: int) -> int:
    """Take a known given name with its family parts."""
    past = _after_given(board, words, at)
    span = (words[at].start, words[past - 1].end)
    if past == at + 1:
        if words[at].sure(Kind.GIVEN):
            board.put("PERSON_NAME_AMBIGUOUS", span, rule="given")
        return past
    particle = any(word.key in _PARTICLES for word in words[at + 1 : past])
    origin = any(word.origin and not word.kind & Kind.WORD for word in words[at + 1 : past])
    if particle or origin or words[at].sure(Kind.GIVEN):
        board.put("PERSON_NAME", span, rule="given_family")
    elif words[at + 1].kind & Kind.NAME:
        board.put("PERSON_NAME_AMBIGUOUS", span, rule="everyday_words")
    return past


def _family_by_particle(board: Board, words: list[Word], at: int) -> int:
    """Take an unknown word before "آل X" or "بن X": what stands before a family is a given name."""
    word = words[at]
    if word.kind or word.key in _PARTICLES or len(word.key) < _MIN_NAME or not _follows(board, words, at + 1):
        return at + 1
    if words[at + 1].key not in _FAMILY:
        return at + 1
    past = _after_given(board, words, at)
    if past == at + 1:
        return past
    board.put("PERSON_NAME", (word.start, words[past - 1].end), rule="family_particle")
    return past
