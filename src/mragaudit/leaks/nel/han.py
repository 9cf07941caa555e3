"""Chinese names. There are no spaces: what stands before and after a candidate decides, and words that are none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mragaudit.leaks.nel.items import Board
from mragaudit.leaks.nel.lexicon import HanLexicon, Lexicon

_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
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
    last = _head(parts[-1], han=han)
    inner = all(_head(part, han=han) == len(part) for part in parts[1:-1])
    if inner and head < len(parts[0]) and last > 0:
        end = match.end() - len(parts[-1]) + last
        board.put("PERSON_NAME", (match.start() + head, end), rule="middle_dot")


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
    for given_count in (2, 1):
        past = at + surname + given_count
        if past > end or any(char not in han.given for char in text[at + surname : past]) or not board.free(at, past):
            continue
        found = _candidate(board, (at, past), given_count=given_count, end=end, han=han)
        if _put(board, found, end=end, han=han):
            return past
    return at + 1


def _surname_length(text: str, at: int, *, end: int, han: HanLexicon) -> int:
    if at + 2 <= end and text[at : at + 2] in han.compound_surnames:
        return 2
    return 1 if text[at] in han.surnames else 0


def _candidate(board: Board, span: tuple[int, int], *, given_count: int, end: int, han: HanLexicon) -> Candidate:
    text, (start, past) = board.text, span
    begins = start == 0 or not _RUN.match(text, start - 1) or not board.free(start - 1, start)
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
    )


def _put(board: Board, found: Candidate, *, end: int, han: HanLexicon) -> bool:
    """Put the candidate as what it is, or nothing; return whether it was taken."""
    span = (found.start, found.end)
    followed = next(
        (kind for word, kind in han.not_people.items() if found.end < end and board.text.startswith(word, found.end)), ""
    )
    if followed:
        length = next(len(word) for word in han.not_people if board.text.startswith(word, found.end))
        item = "ADDRESS" if followed == "street" else "ORG_TITLE"
        return board.put("ADDRESS" if item == "ADDRESS" else "ORG_TITLE", (span[0], span[1] + length), rule=followed)
    if found.labelled and found.right:
        return board.put("PERSON_NAME", span, rule="label")
    if found.titled and found.left:
        return board.put("PERSON_NAME", span, rule="honorific")
    if found.left and found.right:
        return board.put("PERSON_NAME", span, rule="surroundings")
    if found.given_count > 1 and (found.left or found.right):
        return board.put("PERSON_NAME_AMBIGUOUS", span, rule="one_side")
    return False
