"""E-mail addresses: RFC 5322 atoms without those that are rather punctuation, RFC 5891 domain labels."""

from __future__ import annotations

import re

Span = tuple[int, int]

_LATIN = "A-Za-z0-9\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
# The bound on the local part is RFC 5321's; possessive, so that a long run is read once.
_ASCII = re.compile(r"\b[A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b")
_LABEL = rf"[{_LATIN}](?:[{_LATIN}-]{{0,61}}[{_LATIN}])?"
_LETTERS = _LATIN.replace("0-9", "")
_TOP = rf"(?:xn--[A-Za-z0-9-]{{0,57}}[A-Za-z0-9]|[{_LETTERS}]{{2,63}}(?![{_LETTERS}]))"
# An ideographic full stop separates labels (RFC 3490, 3.1) only where no ASCII dot does: else it ends a
# sentence.
_DOMAIN = re.compile(rf"@(?:(?:{_LABEL}\.){{1,16}}{_TOP}|{_LABEL}。{_TOP})", re.IGNORECASE)
_LOCAL_REVERSED = re.compile(rf"[{_LATIN}_~%+'.-]{{0,63}}[{_LATIN}]")
_MAX_LOCAL = 64


def find_ascii(text: str) -> list[Span]:
    """Return what the published pattern finds; it misses addresses that touch a letter of any script."""
    return [match.span() for match in _ASCII.finditer(text)]


def find_unicode(text: str) -> list[Span]:
    """Return the addresses in normalised text, without neighbours of other scripts.

    Latin letters with marks belong to an address; Han, Arabic, Cyrillic and other letters next to it do not.
    Spelled-out forms ("name (at) domain dot com") are not found.
    """
    spans: list[Span] = []
    for match in _DOMAIN.finditer(text):
        start = match.start()
        local = _LOCAL_REVERSED.match(text[max(0, start - _MAX_LOCAL) : start][::-1])
        if local is not None:
            spans.append((start - local.end(), match.end()))
    return spans
