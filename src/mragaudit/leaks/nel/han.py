"""Chinese names. There are no spaces: what stands before and after a candidate decides, and words that are none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mragaudit.leaks.nel.items import Board
from mragaudit.leaks.nel.lexicon import HanLexicon, Lexicon

_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_ONE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_FOREIGN = re.compile(r"[\u4e00-\u9fff]{1,6}(?:[·・•][\u4e00-\u9fff]{1,6}){1,3}")
_LONGEST_WORD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A surname with one or two characters behind it, and how well its surroundings fit."""

    start: int
    end: int
    given_count: int
    left: bool
    right: bool
    titled: bool
    labelled: bool
    given: bool
    # all characters behind the surname are usual in given names
    possible: bool
    # none of them is a word of grammar


def find(board: Board, lexicon: Lexicon) -> None:
    """Put transliterated names with a middle dot, then names of two to four characters."""
    for match in _FOREIGN.finditer(board.text):
        _put_foreign(board, match, han=lexicon.han)
    for run in _RUN.finditer(board.text):
        at = run.start()
        while at < run.end():
            at = _step(board, at, end=run.end(), han=lexicon.han)


def _put_foreign(board: Board, match: re.Match[str], *, han: HanLexicon) -> None:
    """Put the name from the first character that is used for transliteration to the last."""
    parts = re.split(r"[·・•]", match[0])
    head = len(parts[0]) - _tail(parts[0], han=han)
    last = _foreign_end(parts[-1], han=han)
    inner = all(_head(part, han=han) == len(part) for part in parts[1:-1])
    if inner and head < len(parts[0]) and last > 0:
        end = match.end() - len(parts[-1]) + last
        board.put("PERSON_NAME", (match.start() + head, end), rule="middle_dot")


def _foreign_end(part: str, *, han: HanLexicon) -> int:
    """Return where the last part ends: before a word that may follow a name, else with the last fitting character."""
    last = _head(part, han=han)
    return next((index for index in range(2, last) if part.startswith(han.after, index)), last)


def _head(part: str, *, han: HanLexicon) -> int:
    """Return how many characters at the beginning are used for transliteration."""
    return next((index for index, char in enumerate(part) if char not in han.transliteration), len(part))


def _tail(part: str, *, han: HanLexicon) -> int:
    return _head(part[::-1], han=han)


def _step(board: Board, at: int, *, end: int, han: HanLexicon) -> int:
    """Try the names that begin at one place; return where to go on."""
    text = board.text
    if any(text[at : at + length] in han.words for length in range(_LONGEST_WORD, 1, -1)):
        return at + 1
    surname = _surname_length(text, at, end=end, han=han)
    if surname == 0 or not board.free(at, at + surname):
        return at + 1
    found = [_candidate(board, (at, at + surname + count), given_count=count, end=end, han=han) for count in (2, 1)]
    possible = [candidate for candidate in found if candidate.end <= end and board.free(at, candidate.end)]
    for put in (_put_institution, _put_name, _put_ambiguous):
        for candidate in possible:
            if put(board, candidate, end=end, han=han):
                return candidate.end
    return at + 1


def _surname_length(text: str, at: int, *, end: int, han: HanLexicon) -> int:
    if at + 2 <= end and text[at : at + 2] in han.compound_surnames:
        return 2
    return 1 if text[at] in han.surnames else 0


def _candidate(board: Board, span: tuple[int, int], *, given_count: int, end: int, han: HanLexicon) -> Candidate:
    text, (start, past) = board.text, span
    begins = start == 0 or not _ONE.match(text, start - 1) or not board.free(start - 1, start)
    before = text[max(0, start - 3) : start]
    titled = text.startswith(han.honorifics, past)
    return Candidate(
        start=start,
        end=past,
        given_count=given_count,
        left=begins or before.endswith(han.before),
        right=past == end or titled or text.startswith(han.after, past),
        titled=titled,
        labelled=start in board.labelled,
        given=not text.startswith(han.honorifics, past - given_count)
        and all(char in han.given for char in text[past - given_count : past]),
        possible=not text.startswith(han.honorifics, past - given_count)
        and not any(char in han.not_given for char in text[past - given_count : past]),
    )


def _put_institution(board: Board, found: Candidate, *, end: int, han: HanLexicon) -> bool:
    """Put what a person's name begins and a firm, street or place ends."""
    if not found.given or found.end >= end:
        return False
    word = next((word for word in han.not_people if board.text.startswith(word, found.end)), "")
    if not word:
        return False
    span = (found.start, found.end + len(word))
    kind = han.not_people[word]
    return board.put("ADDRESS" if kind == "street" else "ORG_TITLE", span, rule=kind)


def _put_name(board: Board, found: Candidate, *, end: int, han: HanLexicon) -> bool:  # noqa: ARG001  # called like the others
    """Put a name that a label, a title, or what stands on both sides of it vouches for."""
    span = (found.start, found.end)
    if found.possible and found.labelled and found.right:
        return board.put("PERSON_NAME", span, rule="label")
    if found.possible and found.titled and found.left:
        return board.put("PERSON_NAME", span, rule="honorific")
    if found.given and found.left and found.right:
        return board.put("PERSON_NAME", span, rule="surroundings")
    return False


def _put_ambiguous(board: Board, found: Candidate, *, end: int, han: HanLexicon) -> bool:  # noqa: ARG001  # called like the others
    """Put a name of three characters or more that only one side vouches for."""
    one_side = found.given and found.given_count > 1 and (found.left or found.right)
    return one_side and board.put("PERSON_NAME_AMBIGUOUS", (found.start, found.end), rule="one_side")
