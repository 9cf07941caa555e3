"""Numbers that are neither telephone numbers nor ids, blanked before those are sought."""

from __future__ import annotations

import re
from functools import lru_cache

_DIGIT = re.compile(r"[0-9]")
_HEX = "[0-9A-Fa-f]"
_ALTERNATIVES = (
    # IBAN: country, check digits, groups of four (ISO 13616)
    r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])",
    # UUID (RFC 9562)
    rf"(?<!{_HEX}){_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?!{_HEX})",
    # payment card in groups of four
    r"(?<![0-9])[0-9]{4}(?:[ -][0-9]{4}){3}(?![0-9])",
    # IPv4
    r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9])(?!\.[0-9])",
    # ISBN-13, and ISBN-10 where it is called so
    r"(?<![0-9])97[89](?:[ -]?[0-9]){10}(?![0-9])",
    r"ISBN(?:-1[03])?:? ?[0-9](?:[ -]?[0-9Xx]){9,12}(?![0-9])",
    # a date that begins with the year, with or without a time or an hour
    r"(?<![0-9])(?:19|20)[0-9]{2}[-/.][0-9]{1,2}[-/.][0-9]{1,2}"
    r"(?:[T ]+[0-9]{1,2}(?::?[0-9]{2}){0,2}(?:[.,][0-9]{1,9})?)?(?![0-9])",
    # a time of day with its offset
    r"(?<![0-9])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?: ?[+-][0-9]{2}:?[0-9]{2})?(?![0-9])",
)
_LOOKALIKES = re.compile("|".join(_ALTERNATIVES))


@lru_cache(maxsize=4)  # telephone numbers and ids are sought in the same text
def blank_lookalikes(text: str) -> str:
    """Return normalised text of the same length in which IBANs, UUIDs, cards and the like are NUL characters.

    The others are IPv4 addresses, ISBNs, dates that begin with the year, and times of day.
    """
    return _LOOKALIKES.sub(lambda match: "\0" * len(match[0]), text) if _DIGIT.search(text) else text


def joined(text: str, span: tuple[int, int], *, spaced: bool) -> bool:
    """Whether the number goes on beyond the span: behind a dash or dot, or, if `spaced`, a space.

    `spaced` is for numbers whose groups are parted by spaces alone, where a further group makes them a longer one.
    A run of letters and digits that touches the span, or is tied to it by a dash, also makes it part of a code.
    """
    seps = "-. " if spaced else "-."
    start, end = span
    before = text[max(0, start - 2) : start]
    left = before[1:] != "" and before[1] in seps and before[0].isdecimal()
    right = end + 1 < len(text) and text[end] in seps and text[end + 1].isdecimal()
    return left or right or _in_code(text, start)


def _in_code(text: str, start: int) -> bool:
    """Whether an ASCII token with both letters and digits touches the place from the left."""
    head = re.search(r"[A-Za-z0-9]{1,32}-?\Z", text[max(0, start - 33) : start])
    return head is not None and any(map(str.isdecimal, head[0])) and any(map(str.isalpha, head[0]))
