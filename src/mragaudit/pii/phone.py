"""Telephone numbers: ITU-T E.164 with a country code, or the 3-3-4 grouping of the North American plan."""

from __future__ import annotations

import re
from functools import lru_cache

from mragaudit.pii.cues import PHONE, announced
from mragaudit.pii.lookalikes import blank_lookalikes, joined

Span = tuple[int, int]

_ASCII = re.compile(
    r"(?<!\w)(?:\+?1[-. ]?)?(?:\([0-9]{3}\) ?|\b[0-9]{3}[-. ]?)[0-9]{3}[-. ]?[0-9]{4}\b",
)
_SEP = r"(?:\ ?[-./·ーـ]\ ?|\ )"
_EXTENSION = (
    r"(?:\ ?[,;]?\ ?(?:extension|ext\.?|x|\#|durchwahl|dw\.?|nebenstelle|apparat|分机号?|轉|转|تحويلة|داخلي|kiendelezi)"
    r"\ ?:?\ ?[0-9]{1,6}(?![0-9]))?"
)
_GROUPED = re.compile(
    rf"""
    (?<![0-9+])(?:
        (?:(?:\+\ ?1|001|1){_SEP}?)?\([0-9]{{3}}\){_SEP}?[0-9]{{3}}{_SEP}?[0-9]{{4}}
      | (?:\+\ ?1|001){_SEP}?[0-9]{{3}}{_SEP}?[0-9]{{3}}{_SEP}?[0-9]{{4}}
      | (?:1{_SEP})?[0-9]{{3}}{_SEP}[0-9]{{3}}{_SEP}[0-9]{{4}}
    )(?![0-9]){_EXTENSION}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_INTERNATIONAL = re.compile(
    rf"(?<![0-9+])(?:\+\ ?|00\ ?)(?P<number>[2-9](?:[ \-./()ーـ]{{0,2}}[0-9]){{6,40}}+)(?![0-9]){_EXTENSION}",
    re.IGNORECASE | re.VERBOSE,
)
_BARE = re.compile(r"(?<![0-9+])[0-9](?:[ \-./]{0,2}[0-9]){6,11}+(?![0-9])")
_SEVEN_DIGITS = re.compile(r"(?:[0-9][^0-9\n]{0,3}){7}")
_MIN_INTERNATIONAL, _MAX_INTERNATIONAL = (
    9,
    15,
)  # E.164 allows 15; the shortest national plans have 6 and a code
_NATIONAL = re.compile(r"[0-9]{10}|[0-9]{3}[- ][0-9]{4}|0[0-9 \-./]{8,16}|1[3-9][0-9][0-9 -]{8,12}")


def find_ascii(text: str) -> list[Span]:
    """Return the numbers that the published pattern finds: ten ASCII digits, with or without separators."""
    return [match.span() for match in _ASCII.finditer(text)]


def find_unicode(text: str) -> list[Span]:
    """Return the telephone numbers in normalised text, with their extensions.

    A number has a country code, or the grouping 3-3-4, or a cue word before it ("call 555-0142"). It may
    touch letters of any script, but no further digits. Dates, IBANs, cards, UUIDs, ISBNs and IPv4
    addresses are none.
    """
    return list(_find_unicode(text))


@lru_cache(maxsize=4)  # the finder of ids asks again for the same text
def _find_unicode(text: str) -> tuple[Span, ...]:
    if _SEVEN_DIGITS.search(text) is None:
        return ()
    blanked = blank_lookalikes(text)
    found = [*_grouped(blanked), *_international(blanked), *_cued(blanked)]
    spans: list[Span] = []
    for span in sorted(found, key=lambda found_span: (found_span[0], -found_span[1])):
        if not spans or span[0] >= spans[-1][1]:
            spans.append(span)
    return tuple(spans)


def _grouped(text: str) -> list[Span]:
    found = []
    for match in _GROUPED.finditer(text):
        coded = match[0].startswith(("+", "00"))
        spaced = not coded and re.fullmatch(r"[0-9 ]+", match[0]) is not None
        version = "." in match[0] and text[max(0, match.start() - 1) : match.start()] in {"v", "V"}
        if not version and (coded or not joined(text, match.span(), spaced=spaced)):
            found.append(match.span())
    return found


def _international(text: str) -> list[Span]:
    found = []
    for match in _INTERNATIONAL.finditer(text):
        plus = match[0].startswith("+")
        end = _within_plan(match["number"])
        digits = sum(map(str.isdecimal, match["number"][:end]))
        decimal = re.fullmatch(r"[0-9]+\.[0-9]+", match["number"]) is not None
        if digits < _MIN_INTERNATIONAL or decimal or (not plus and joined(text, match.span(), spaced=True)):
            continue
        whole = end == len(match["number"])
        found.append((match.start(), match.end() if whole else match.start("number") + end))
    return found


def _within_plan(number: str) -> int:
    """Return where the number ends if trailing groups beyond 15 digits are cut off."""
    end = len(number)
    while sum(map(str.isdecimal, number[:end])) > _MAX_INTERNATIONAL:
        shorter = re.search(r"[^0-9]+[0-9]+\Z", number[:end])
        if shorter is None:
            return 0
        end = shorter.start()
    return end


def _cued(text: str) -> list[Span]:
    return [
        match.span()
        for match in _BARE.finditer(text)
        if _NATIONAL.fullmatch(match[0])
        and not joined(text, match.span(), spaced=False)
        and announced(text, match.span(), cues=PHONE)
    ]
