"""Nine-digit ids in the shape of a US social security number (3-2-4, or nine digits in a row).

Areas that were never issued (000, 666, 9xx) count: what looks like an id and leaks is a leak.
"""

from __future__ import annotations

import re

from mragaudit.pii import email, phone
from mragaudit.pii.cues import ID, announced
from mragaudit.pii.lookalikes import blank_lookalikes, joined

Span = tuple[int, int]

_ASCII = re.compile(r"\b[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}\b")
_SEP = r"(?: ?[-./·ーـ] ?| )"
_GROUPED = re.compile(rf"(?<![0-9+])[0-9]{{3}}{_SEP}[0-9]{{2}}{_SEP}[0-9]{{4}}(?![0-9])")
_BARE = re.compile(r"(?<![0-9+,])[0-9]{9}(?![0-9])(?!,[0-9])")


def find_ascii(text: str) -> list[Span]:
    """Return what the published pattern finds, nine bare digits among it."""
    return [match.span() for match in _ASCII.finditer(text)]


def find_unicode(text: str) -> list[Span]:
    """Return the ids in normalised text: 3-2-4 with separators, or nine bare digits announced by a cue word.

    They may touch letters of any script, but no further digits; a piece of a telephone number is none.
    """
    blanked = _without_contacts(blank_lookalikes(text))
    found = [match.span() for match in _GROUPED.finditer(blanked) if _stands_alone(blanked, match)]
    found += [
        match.span()
        for match in _BARE.finditer(blanked)
        if not joined(blanked, match.span(), spaced=False) and announced(text, match.span(), cues=ID)
    ]
    return sorted(found)


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    spaced = re.fullmatch(r"[0-9 ]+", match[0]) is not None
    return not joined(text, match.span(), spaced=spaced)


def _without_contacts(text: str) -> str:
    """Return the text with telephone numbers and e-mail addresses blanked."""
    parts: list[str] = []
    at = 0
    for start, end in sorted([*phone.find_unicode(text), *email.find_unicode(text)]):
        if start >= at:
            parts += [text[at:start], "\0" * (end - start)]
            at = end
    return "".join([*parts, text[at:]])
