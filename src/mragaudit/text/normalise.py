"""One normal form for filters and scorers, with a map back to the code points of the original.

The form is NFKC (Unicode Standard Annex 15) with format characters and other invisible ones removed,
decimal digits of any script as ASCII, every dash as "-", every apostrophe as "'", and runs of white space
as one. One departure from NFKC: characters of category No (superscripts, circled numbers, fractions) stay
as they are, because a footnote mark behind a number is no digit of that number.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

# Characters that map to themselves unless a combining mark follows: the fast path for most text.
_INERT = r"!-~À-ÖØ-öø-ÿΑ-ΡΣ-ωА-яء-غف-ي一-鿿ぁ-ゔァ-ヺ가-힣。、"
_INERT_RUN = re.compile(rf"[{_INERT}](?:[{_INERT}]| (?=[{_INERT}]))*")
# Default-ignorable code points that are not of category Cf (Unicode DerivedCoreProperties).
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# Arabic harakat and tatweel, Hebrew points: optional marks that do not change which word it is.
_OTHER_RUN = re.compile(rf"[^{_INERT}\s]{{1,256}}")  # bounded, so that a call looks no further
_VOWEL_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0656-\u065f\u0670]")
_APOSTROPHES = frozenset("'´ʹʻʼˈ‘’‛′ꞌ＇")
_DASHES_OUTSIDE_PD = frozenset("−⁃˗➖")
_SPACES = re.compile(r"\s+")
_LINE_BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
# UAX 15 calls text with at most 30 marks in a row stream-safe; ordering longer runs takes quadratic time.
_MAX_MARKS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedText:
    """A folded text that knows where each of its code points came from."""

    text: str
    # the folded form
    starts: tuple[int, ...]
    # where each piece begins in `text`, ascending
    sources: tuple[tuple[int, int, bool], ...]
    # per piece: half-open span in the original, and whether it maps one code point to one

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the half-open span of the original that folded to `text[start:end]`.

        Counted in Unicode code points. A span that cuts a character's expansion gives the whole character.
        An empty span gives an empty span. Raises IndexError outside the text.
        """
        if not 0 <= start <= end <= len(self.text):
            raise IndexError(f"span ({start}, {end}) lies outside a text of {len(self.text)} code points")
        if start == end:
            at = self._first(start) if start < len(self.text) else self._past(start)
            return at, at
        return self._first(start), self._past(end)

    def _first(self, index: int) -> int:
        piece = bisect_right(self.starts, index) - 1
        begin, _, aligned = self.sources[piece]
        return begin + (index - self.starts[piece]) if aligned else begin

    def _past(self, end: int) -> int:
        if end == 0:
            return 0
        piece = bisect_right(self.starts, end - 1) - 1
        begin, past, aligned = self.sources[piece]
        return begin + (end - self.starts[piece]) if aligned else past


class _Builder:
    """Collects folded pieces with their source spans."""

    def __init__(self, *, keep_lines: bool) -> None:
        self.keep_lines = keep_lines
        self.parts: list[str] = []
        self.starts: list[int] = []
        self.sources: list[tuple[int, int, bool]] = []
        self.length = 0

    def put(self, piece: str, source: tuple[int, int], *, aligned: bool) -> None:
        if piece:
            self.parts.append(piece)
            self.starts.append(self.length)
            self.sources.append((*source, aligned))
            self.length += len(piece)

    def space(self, run: str, source: tuple[int, int]) -> None:
        folded = "\n" if self.keep_lines and not _LINE_BREAKS.isdisjoint(run) else " "
        if self.parts and self.parts[-1] in {" ", "\n"}:
            self.parts[-1] = "\n" if "\n" in (folded, self.parts[-1]) else " "
            self.sources[-1] = (self.sources[-1][0], source[1], False)
        else:
            self.put(folded, source, aligned=False)

    def build(self) -> MappedText:
        return MappedText(text="".join(self.parts), starts=tuple(self.starts), sources=tuple(self.sources))


@lru_cache(maxsize=65536)
def _is_dropped(char: str) -> bool:
    return unicodedata.category(char) == "Cf" or _INVISIBLE.match(char) is not None


@lru_cache(maxsize=65536)
def _is_dropped_or_point(char: str) -> bool:
    return _is_dropped(char) or _VOWEL_POINTS.match(char) is not None


@lru_cache(maxsize=65536)
def _continues(char: str) -> bool:
    """Whether the character may combine with the one before: a mark, or a Hangul vowel or final."""
    first = unicodedata.normalize("NFKD", char)[0]
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"


@lru_cache(maxsize=65536)
def _fold_char(char: str) -> str:
    if char in _APOSTROPHES:
        return "'"
    if char in _DASHES_OUTSIDE_PD or unicodedata.category(char) == "Pd":
        return "-"
    decimal = unicodedata.decimal(char, None)
    return char if decimal is None else str(decimal)


@lru_cache(maxsize=65536)
def _fold_cluster(base: str, marks: str) -> str:
    """Return the normal form of one base character and the marks on it."""
    if base in _APOSTROPHES and not marks:
        return "'"
    form: Literal["NFC", "NFKC"] = "NFC" if unicodedata.category(base) == "No" else "NFKC"
    spelled = unicodedata.normalize("NFKD", marks)[:_MAX_MARKS] if marks else ""
    return "".join(map(_fold_char, unicodedata.normalize(form, base + spelled)))


@lru_cache(maxsize=65536)
def _fold_case(piece: str) -> str:
    return "".join(map(_fold_char, unicodedata.normalize("NFKC", piece.casefold())))


def _run_end(text: str, run: re.Match[str], dropped: Callable[[str], bool]) -> int:
    """Return where the run may safely end: before its last character if a mark follows that one."""
    following = run.end()
    while following < len(text) and dropped(text[following]):
        following += 1
    return run.end() - (following < len(text) and _continues(text[following]))


def _cluster(text: str, begin: int, dropped: Callable[[str], bool]) -> tuple[str, int]:
    """Return the marks on the base at `begin`, dropped characters left out, and the end of the cluster."""
    end = begin + 1
    if end == len(text) or not (_continues(text[end]) or dropped(text[end])):
        return "", end
    marks: list[str] = []
    past = end
    while end < len(text):
        if _continues(text[end]) and not dropped(text[end]):
            marks.append(text[end])
            past = end + 1
        elif not dropped(text[end]):
            break
        end += 1
    return "".join(marks[:_MAX_MARKS]), past


def _put_others(builder: _Builder, run: str, begin: int, *, casefold: bool) -> None:
    """Put a run in which no character combines with its neighbours."""
    folded = [_fold_cluster(char, "") for char in run]
    if casefold:
        folded = [_fold_case(piece) for piece in folded]
    joined = "".join(folded)
    if len(joined) == len(run) and all(folded) and not any(map(str.isspace, joined)):
        builder.put(joined, (begin, begin + len(run)), aligned=True)
        return
    for offset, piece in enumerate(folded, begin):
        _put_cluster(builder, piece, (offset, offset + 1))


def _put_run(builder: _Builder, run: str, begin: int, *, casefold: bool) -> None:
    folded = run.casefold() if casefold else run
    if len(folded) == len(run):
        builder.put(folded, (begin, begin + len(run)), aligned=True)
        return
    for offset, char in enumerate(run):
        builder.put(_fold_case(char), (begin + offset, begin + offset + 1), aligned=False)


def _put_cluster(builder: _Builder, folded: str, source: tuple[int, int]) -> None:
    if not any(map(str.isspace, folded)):
        builder.put(folded, source, aligned=False)
        return
    for char in folded:
        if char.isspace():
            builder.space(char, source)
        else:
            builder.put(char, source, aligned=False)


def normalise(
    text: str, *, casefold: bool = False, keep_lines: bool = False, drop_vowel_points: bool = False
) -> MappedText:
    r"""Return the normal form of the text with its map back; empty text gives an empty form.

    `casefold` folds case as well (full folding: "ß" becomes "ss"), `keep_lines` leaves a line break in a
    run of white space as one "\n" instead of a space, `drop_vowel_points` removes Arabic and Hebrew vowel
    points and tatweel. Normalising twice changes nothing. Marks beyond the 30th on one character are dropped.
    """
    dropped = _is_dropped_or_point if drop_vowel_points else _is_dropped
    builder = _Builder(keep_lines=keep_lines)
    at = 0
    while at < len(text):
        run = _INERT_RUN.match(text, at)
        end = _run_end(text, run, dropped) if run else at
        if end > at:
            _put_run(builder, text[at:end], at, casefold=casefold)
        elif blank := _SPACES.match(text, at):
            builder.space(blank[0], blank.span())
            end = blank.end()
        else:
            end = _take_special(builder, text, at, dropped=dropped, casefold=casefold)
        at = end
    return builder.build()


def _take_special(builder: _Builder, text: str, at: int, *, dropped: Callable[[str], bool], casefold: bool) -> int:
    """Fold what is neither inert nor white space from `at` on; return where it ends."""
    run = _OTHER_RUN.match(text, at)
    others = run[0] if run else ""
    if skipped := _leading(others, dropped):
        return at + skipped
    plain = _leading(others, lambda char: not (_continues(char) or dropped(char)))
    if plain > 1:  # the last one may carry the marks that follow
        _put_others(builder, others[: plain - 1], at, casefold=casefold)
        return at + plain - 1
    marks, end = _cluster(text, at, dropped)
    folded = _fold_cluster(text[at], marks)
    _put_cluster(builder, _fold_case(folded) if casefold else folded, (at, end))
    return end


def _leading(run: str, wanted: Callable[[str], bool]) -> int:
    """Return how many characters at the beginning are wanted ones."""
    return next((index for index, char in enumerate(run) if not wanted(char)), len(run))


def fold_verbatim(text: str) -> MappedText:
    """Return the text with case folded and runs of white space as one space, and nothing else changed.

    This is the form of the published leak rule (design, "Leak").
    """
    builder = _Builder(keep_lines=False)
    for piece in re.finditer(r"\s+|\S+", text):
        if piece[0].isspace():
            builder.space(" ", piece.span())
            continue
        folded = piece[0].casefold()
        if len(folded) == len(piece[0]):
            builder.put(folded, piece.span(), aligned=True)
            continue
        for offset, char in enumerate(piece[0], piece.start()):
            builder.put(char.casefold(), (offset, offset + 1), aligned=False)
    return builder.build()
