"""Names, organisations, titles and streets in Latin letters.

Rules go over the words from left to right; at each capitalised word the first rule that applies takes its words. No
rule looks further than eight words ahead, so the time is in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mragaudit.leaks.nel.items import Board, ItemType
from mragaudit.leaks.nel.lexicon import Kind, Lexicon, latin_key

_LETTERS = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_WORD = re.compile(rf"[{_LETTERS}]{{1,64}}(?:['-][{_LETTERS}]{{1,64}}){{0,4}}\.?")
_GAP = re.compile(r"[*_`]{0,3} (?:& )?[*_`]{0,3}")
_NUMBER_BEFORE = re.compile(r"[0-9]{1,5}[A-Za-z]?,? \Z")
_NUMBER_AFTER = re.compile(r" (?:[Nn]r\.? |[Nn]o\.? |namba )?[0-9]{1,4}[a-z]?(?![0-9])")
_CODE_AFTER = re.compile(r"[-_]?[0-9]")
_CODE_BEFORE = re.compile(r"(?:[0-9@#]|(?<!_)_)\Z")
_FAMILY_PREFIX = re.compile(r"(?:O'|Mc|Mac)[A-Z]|(?:al|Al|el|El)-[A-Z]")
_PARTICLES = frozenset(
    "von van de der den des del della di da dos du la le zu zum zur vom ten ter bin bint binti ibn ben al el wa".split()
)
_CONNECTORS = frozenset("of for the ya wa la cha za vya der des für von".split())
_NEVER = Kind.NOT | Kind.TITLE | Kind.ORGANISATION | Kind.PROJECT | Kind.STREET | Kind.HEAD | Kind.HONORIFIC
_AHEAD = 8
_MAX_FAMILY_SPAN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of the text with what the lexicon says of it."""

    start: int
    end: int
    text: str
    kind: int
    capital: bool
    joined: bool
    # to the word before, by nothing but a space
    amp: bool
    # joined by an ampersand

    @property
    def initial(self) -> bool:
        """Whether it is one letter that stands for a name."""
        return self.capital and len(self.text.removesuffix(".")) == 1

    @property
    def particle(self) -> bool:
        """Whether it may link a given name with a family name."""
        return self.text in _PARTICLES or self.text.lower() in _PARTICLES

    @property
    def nameable(self) -> bool:
        """Whether it may be a part of a name."""
        return self.capital and (bool(self.kind & Kind.NAME) or not self.kind & _NEVER)

    @property
    def unknown(self) -> bool:
        """Whether no list has it and it is written like a name, not like an abbreviation."""
        return self.capital and self.kind == Kind.NONE and len(self.text) > 1 and not self.text.isupper()

    def sure(self, kind: int) -> bool:
        """Whether it is a name of the kind and no ordinary word."""
        return bool(self.kind & kind) and not self.kind & Kind.WORD


class Reader:
    """The words of one text, with the board on which rules put what they find."""

    def __init__(self, board: Board, lexicon: Lexicon) -> None:
        self.board = board
        self.lexicon = lexicon
        self.words = _split(board.text, lexicon)

    def follows(self, at: int) -> bool:
        """Whether there is a word, joined to the one before and free."""
        return at < len(self.words) and self.words[at].joined and self.free(at)

    def free(self, at: int) -> bool:
        """Whether no earlier rule took the word."""
        return self.board.free(self.words[at].start, self.words[at].end)

    def chain_end(self, at: int) -> int:
        """Return the index past the capitalised words that follow each other from `at` on."""
        past = at + 1
        while past < at + _AHEAD and self.follows(past) and self.words[past].capital and not self.barred(past):
            past += 1
        return past

    def barred(self, at: int) -> bool:
        """Whether the word ends a run of names."""
        return bool(self.words[at].kind & Kind.NOT)

    def span(self, first: int, past: int) -> tuple[int, int]:
        """Return the span of the words, without the dot that ends a sentence and an English genitive."""
        end = self.words[past - 1].end
        last = self.words[past - 1]
        if last.text.endswith(".") and not last.initial and not last.kind & Kind.HONORIFIC:
            end -= 1
        text = self.board.text[self.words[first].start : end]
        return self.words[first].start, end - 2 if text.endswith(("'s", "'S")) else end


def find(board: Board, lexicon: Lexicon) -> None:
    """Put names, organisations, titles and streets; names of one part or of ordinary words as ambiguous."""
    reader = Reader(board, lexicon)
    at = 0
    while at < len(reader.words):
        at = _step(reader, at)


def _step(reader: Reader, at: int) -> int:
    """Return where to go on after the first rule that applies at a word."""
    word = reader.words[at]
    if not word.capital or not reader.free(at) or (word.kind & Kind.NOT and not _begins_place(reader, at)):
        return at + 1
    for rule in _RULES:
        past = rule(reader, at)
        if past > at:
            return past
    return at + 1


def _begins_place(reader: Reader, at: int) -> bool:
    """Whether a word that is no part of a name may begin something that holds one."""
    word = reader.words[at]
    return bool(word.kind & (Kind.HEAD | Kind.PROJECT | Kind.ORGANISATION | Kind.HONORIFIC)) or _street_head(reader, at)


def _split(text: str, lexicon: Lexicon) -> list[Word]:
    """Return the words of the text, capitalised or not."""
    words: list[Word] = []
    past = -1
    for match in _WORD.finditer(text):
        start, end = match.span()
        token = match[0]
        if token.endswith(".") and not _keeps_dot(token, lexicon):
            token, end = token[:-1], end - 1
        gap = text[past:start] if past >= 0 else ""
        words.append(
            Word(
                start=start,
                end=end,
                text=token,
                kind=_kind(token, lexicon),
                capital=_is_capital(text, (start, end)),
                joined=past >= 0 and len(gap) < 10 and _GAP.fullmatch(gap) is not None,  # noqa: PLR2004  # longest gap
                amp="&" in gap,
            )
        )
        past = end
    return words


def _is_capital(text: str, span: tuple[int, int]) -> bool:
    """Whether the word is written like a name: a capital first (or "al-R"), and no part of a code or handle."""
    start, end = span
    token = text[start:end]
    if not token[0].isupper() and _FAMILY_PREFIX.match(token) is None:
        return False
    return _CODE_AFTER.match(text, end) is None and _CODE_BEFORE.search(text, max(0, start - 2), start) is None


def _keeps_dot(token: str, lexicon: Lexicon) -> bool:
    """Whether the dot belongs to the word: an initial, a title, St."""
    kind = lexicon.latin.get(latin_key(token), Kind.NONE)
    return len(token) == 2 or bool(kind & (Kind.HONORIFIC | Kind.HEAD))  # noqa: PLR2004  # a letter and its dot


@lru_cache(maxsize=65536)
def _kind(token: str, lexicon: Lexicon) -> int:
    """Return what a word may be; of a hyphenated one that no list has, what its parts make it."""
    key = latin_key(token)
    known = lexicon.latin.get(key, Kind.NONE)
    if known or ("-" not in key and "'" not in key):
        return known | (_suffix_kind(key, lexicon) if not known else Kind.NONE)
    if _FAMILY_PREFIX.match(token):
        return Kind.SURNAME
    if key.endswith("'s"):
        return lexicon.latin.get(key[:-2], Kind.NONE)
    parts = [lexicon.latin.get(part, Kind.NONE) for part in key.split("-")]
    given = parts[0] & Kind.GIVEN if all(part & Kind.GIVEN for part in parts) else Kind.NONE
    surname = Kind.NONE
    for part in parts:
        surname |= part & (Kind.SURNAME | Kind.SUFFICES)
    word = Kind.WORD if all(part & Kind.WORD for part in parts) else Kind.NONE
    return _suffix_kind(key, lexicon) or given | surname | word


def _suffix_kind(key: str, lexicon: Lexicon) -> int:
    """Return STREET for a German compound whose last part is a street word."""
    return Kind.STREET if key.endswith(lexicon.street_suffixes) and len(key) > 7 else Kind.NONE  # noqa: PLR2004  # "Ring"


def _street_head(reader: Reader, at: int) -> bool:
    return latin_key(reader.words[at].text) in reader.lexicon.street_heads


def _street(reader: Reader, at: int) -> int:
    """Take "18 Abbey Road", "Hauptstraße 4", "Mtaa wa Samora"."""
    if _street_head(reader, at):
        return _behind_connector(reader, at, item="ADDRESS", rule="street")
    numbered = _NUMBER_BEFORE.search(reader.board.text, max(0, reader.words[at].start - 8), reader.words[at].start)
    for last in range(at, min(reader.chain_end(at), at + 6)):
        kind = reader.words[last].kind
        weak = bool(kind & (Kind.NAME | Kind.WORD | Kind.HONORIFIC | Kind.HEAD))
        alone = last == at and len(reader.words[at].text) < 8  # noqa: PLR2004  # "Straße" by itself names none
        if kind & Kind.STREET and not alone and (numbered or not weak):
            start, end = reader.span(at, last + 1)
            after = _NUMBER_AFTER.match(reader.board.text, end)
            span = (numbered.start() if numbered else start, after.end() if after else end)
            reader.board.put("ADDRESS", span, rule="street")
            return last + 1
    return at


def _behind_connector(reader: Reader, at: int, *, item: ItemType, rule: str) -> int:
    """Take a word and the capitalised ones behind it, with or without a connector: "University of X", "Mradi wa X"."""
    past = at + 1
    if reader.follows(past) and reader.words[past].text in _CONNECTORS:
        past += 1
        if reader.follows(past) and reader.words[past].text in _CONNECTORS:  # "of the"
            past += 1
    if not reader.follows(past) or not reader.words[past].capital:
        return at
    if reader.words[past].kind & Kind.NOT and past == at + 1:
        return at  # "Project The"; but "University of Nairobi"
    past = min(reader.chain_end(past), past + 4)
    if (
        reader.follows(past)
        and reader.words[past].particle
        and reader.follows(past + 1)
        and reader.words[past + 1].capital
    ):
        past += 2
    reader.board.put(item, reader.span(at, past), rule=rule)
    return past


def _organisation(reader: Reader, at: int) -> int:
    """Take "Harbor Light Insurance", "Kanzlei Schneider", "Project Violet Harbor", "Ernst & Young"."""
    word = reader.words[at]
    if word.kind & Kind.PROJECT:
        return _behind_connector(reader, at, item="ORG_TITLE", rule="project")
    past = reader.chain_end(at)
    last = max((index for index in range(at, past) if _is_organisation(reader, at, index)), default=-1)
    amp = next((index for index in range(at + 1, past) if reader.words[index].amp), -1)
    if amp > 0 and (amp == at + 1 or past == amp + 1):
        last = max(last, past - 1)
    if last > at:
        reader.board.put("ORG_TITLE", reader.span(at, last + 1), rule="organisation")
        return last + 1
    head = word.kind & (Kind.HEAD | Kind.ORGANISATION) and not word.kind & Kind.NAME
    return _behind_connector(reader, at, item="ORG_TITLE", rule="head") if head else at


def _is_organisation(reader: Reader, at: int, index: int) -> bool:
    """Whether the word makes the run before it an organisation; "Anna Hall" is a person, "Grace Hall" a place."""
    word = reader.words[index]
    if not word.kind & Kind.ORGANISATION:
        return False
    return not word.kind & Kind.NAME or not any(reader.words[before].sure(Kind.GIVEN) for before in range(at, index))


def _title(reader: Reader, at: int) -> int:
    """Take two or more words of a job title, and pass over one."""
    past = at
    while past < at + _AHEAD and (past == at or reader.follows(past)) and reader.words[past].kind & Kind.TITLE:
        if reader.words[past].kind & Kind.NAME:
            break
        past += 1
    if past > at + 1:
        reader.board.put("ORG_TITLE", reader.span(at, past), rule="title")
    return past


def _name_end(reader: Reader, at: int) -> int:
    """Return the index past the words that a title or label says to be a name: at most four, and particles.

    The first two may be unknown, from the third on a list has them or a particle stands before.
    """
    past, parts = at, 0
    while past < at + _AHEAD and parts < 4 and (past == at or reader.follows(past)):  # noqa: PLR2004  # given, family
        word = reader.words[past]
        if word.particle and not word.capital and reader.follows(past + 1):
            past += 1
            continue
        listed = word.kind & Kind.NAME or word.initial or reader.words[past - 1].particle
        if not word.nameable or (parts > 1 and not listed):
            break
        past, parts = past + 1, parts + 1
    while past > at and not reader.words[past - 1].capital:
        past -= 1
    return past


def _honorific(reader: Reader, at: int) -> int:
    """Take the name behind "Dr.", "Frau", "Bw."; the title itself is no part of it."""
    first = at
    while first < at + 4 and first < len(reader.words) and reader.words[first].kind & Kind.HONORIFIC:
        if first > at and not reader.words[first].joined:
            break
        first += 1
    if first == at or not reader.follows(first) or not reader.words[first].nameable:
        return at
    return _announced(reader, first, rule="honorific")


def _label(reader: Reader, at: int) -> int:
    """Take the name behind "Name:" or "the full name is"."""
    return _announced(reader, at, rule="label") if reader.words[at].start in reader.board.labelled else at


def _announced(reader: Reader, first: int, *, rule: str) -> int:
    """Take a name that a title or label vouches for, whatever the lists say of its parts."""
    comma = _comma(reader, first)
    if comma > first:
        return comma
    past = _name_end(reader, first)
    parts = sum(word.capital for word in reader.words[first:past])
    if parts > 1:
        reader.board.put("PERSON_NAME", reader.span(first, past), rule=rule)
    elif parts == 1 and not reader.words[first].kind & Kind.WORD:
        reader.board.put("PERSON_NAME_AMBIGUOUS", reader.span(first, past), rule=f"{rule}_single")
    return past


def _comma(reader: Reader, at: int) -> int:
    """Take "Weber, Anna": a known surname alone, a comma, a given name that is no ordinary word."""
    word, second = reader.words[at], at + 1
    if not word.kind & Kind.SURNAME or second >= len(reader.words) or not reader.free(second):
        return at
    before = reader.words[at - 1] if at > 0 and word.joined else None
    after_name = before is not None and before.capital and bool(before.kind & Kind.GIVEN)
    if after_name or reader.board.text[word.end : reader.words[second].start] != ", ":
        return at
    past = second
    while past < at + 4 and past < len(reader.words) and (past == second or reader.follows(past)):
        if not reader.words[past].capital or not (reader.words[past].kind & Kind.GIVEN or reader.words[past].initial):
            break
        past += 1
    follows_family = reader.follows(past) and reader.words[past].nameable
    if past == second or not reader.words[second].sure(Kind.GIVEN) or follows_family:
        return at
    reader.board.put("PERSON_NAME", reader.span(at, past), rule="family_comma_given")
    return past


def _given_first(reader: Reader, at: int) -> int:
    """Take a given name with what follows of it: more given names, initials, particles, the family name."""
    if not reader.words[at].kind & Kind.GIVEN or _opens_sentence(reader, at):
        return at
    past = at + 1
    while past < at + 4 and reader.follows(past) and _given_or_initial(reader.words[past]):
        past += 1
    family = _family_end(reader, past)
    if family == past and past - at > 1 and reader.words[past - 1].kind & Kind.SURNAME:
        family, past = past, past - 1  # the last of several given names is the family name
    if family == past:
        sure = any(word.sure(Kind.GIVEN) for word in reader.words[at:past])
        if sure:
            reader.board.put("PERSON_NAME_AMBIGUOUS", reader.span(at, past), rule="given")
        return past
    certain = _certain(reader.words[at:past], reader.words[past:family])
    if certain:
        reader.board.put("PERSON_NAME", reader.span(at, family), rule="given_family")
    else:
        reader.board.put("PERSON_NAME_AMBIGUOUS", reader.span(at, family), rule="ordinary_words")
    return family


def _opens_sentence(reader: Reader, at: int) -> bool:
    """Whether the name is an ordinary word here: it begins a sentence, and a whole name follows ("Jana Amos Omari")."""
    if not reader.words[at].kind & Kind.FUNCTION or not reader.follows(at + 1):
        return False
    first = reader.words[at + 1]
    if not first.capital or not reader.follows(at + 2) or not reader.words[at + 2].capital:
        return False
    family = reader.words[at + 2]
    known = bool(first.kind & Kind.GIVEN) or first.unknown
    return (known and bool(family.kind & Kind.SURNAME)) or (first.sure(Kind.GIVEN) and family.unknown)


def _given_or_initial(word: Word) -> bool:
    return word.capital and (word.initial or bool(word.kind & Kind.GIVEN))


def _family_end(reader: Reader, at: int) -> int:
    """Return the index past the family name at `at`, which may begin with particles; `at` where there is none."""
    first = at
    while first < at + _MAX_FAMILY_SPAN and reader.follows(first) and reader.words[first].particle:
        first += 1
    if not reader.follows(first):
        return at
    word = reader.words[first]
    if (
        not (word.kind & Kind.SURNAME or word.unknown or (first > at and word.nameable))
        or not word.capital
        or word.initial
    ):
        return at
    past = first + 1
    double = reader.follows(past) and reader.words[past].capital and reader.words[past].sure(Kind.SURNAME)
    return past + 1 if double and not reader.words[past].kind & Kind.GIVEN else past


def _certain(given: Sequence[Word], family: Sequence[Word]) -> bool:
    """Whether one part at least is no ordinary word, and no part an unknown abbreviation."""
    if any(word.sure(Kind.GIVEN) for word in given):
        return True
    helped = any(word.initial for word in given) or family[0].particle
    return helped or any(word.sure(Kind.SURNAME) for word in family)


def _family_first(reader: Reader, at: int) -> int:
    """Take "Weber Anna", "Wang Wei": a surname that is no given name, then a given name, then no further name."""
    word, second = reader.words[at], at + 1
    if not word.sure(Kind.SURNAME) or word.kind & Kind.GIVEN or not reader.follows(second):
        return at
    if not reader.words[second].capital or not reader.words[second].sure(Kind.GIVEN):
        return at
    if reader.follows(second + 1) and reader.words[second + 1].nameable:
        return at
    reader.board.put("PERSON_NAME", reader.span(at, second + 1), rule="family_given")
    return second + 1


def _unknown_given(reader: Reader, at: int) -> int:
    """Take an unknown capitalised word before a surname: a name where the language writes its nouns small."""
    word, second = reader.words[at], at + 1
    if not (word.unknown or word.kind & Kind.SURNAME) or not reader.follows(second) or not reader.words[second].capital:
        return at
    surname = reader.words[second]
    if not surname.sure(Kind.SURNAME) or _opens_sentence(reader, at):
        return at
    beyond = reader.words[second + 1] if reader.follows(second + 1) else None
    further = beyond is not None and (beyond.initial or beyond.nameable)
    if surname.kind & Kind.GIVEN and further:
        return at  # "Employee John Smith"
    if word.unknown and reader.board.text.startswith(", ", surname.end) and not surname.kind & Kind.SUFFICES:
        return at  # "Yesterday Weber, Anna"
    item: ItemType = "PERSON_NAME" if surname.kind & Kind.SUFFICES else "PERSON_NAME_AMBIGUOUS"
    reader.board.put(item, reader.span(at, second + 1), rule="unknown_family")
    return second + 1


def _initials(reader: Reader, at: int) -> int:
    """Take "J. R. Smith": letters with dots before a surname that is no ordinary word."""
    past = at
    while past < at + 3 and (past == at or reader.follows(past)) and reader.words[past].text[1:] == ".":
        if not reader.words[past].initial:
            break
        past += 1
    if past == at or not reader.follows(past) or not reader.words[past].sure(Kind.SURNAME):
        return at
    if not reader.words[past].capital:
        return at
    reader.board.put("PERSON_NAME", reader.span(at, past + 1), rule="initials")
    return past + 1


def _single(reader: Reader, at: int) -> int:
    """Take a surname by itself."""
    word = reader.words[at]
    if word.sure(Kind.SURNAME) and len(word.text) > 2:  # noqa: PLR2004  # "Li", "Ng" are found in anything
        reader.board.put("PERSON_NAME_AMBIGUOUS", reader.span(at, at + 1), rule="single")
        return at + 1
    return at


_RULES: tuple[Callable[[Reader, int], int], ...] = (
    _street,
    _organisation,
    _label,
    _honorific,
    _title,
    _comma,
    _given_first,
    _family_first,
    _unknown_given,
    _initials,
    _single,
)
