"""Where a match may begin and end, so that a value inside another word or number is not the value."""

from __future__ import annotations

import re

from mragaudit.text.tokens import UNSEGMENTED

# Scripts in which a letter next to a name is another word or another name; in Han text there are no
# spaces, and in Arabic script prefixes are written onto the name.
_SEPARATE_WORDS = re.compile(rf"[^\W\d_{UNSEGMENTED}\u0590-\u08ff\ufb50-\ufeff]")
# The genitive and dative endings that German and English write onto a name.
_ENDING = re.compile(rf"(?:s|es|ns|ens|n|en)(?!{_SEPARATE_WORDS.pattern})")
_EMAIL_ATOM = re.compile(r"[a-z0-9_%+\u00c0-\u024f]")
_DOMAIN_GOES_ON = re.compile(r"[a-z0-9\u00c0-\u024f]|-[a-z0-9-]*\.[a-z]|[-.][a-z0-9-]+\.[a-z]|\.[a-z0-9]")


def touches_digit(text: str, start: int, end: int) -> bool:
    """Whether a digit at either edge of the span touches a further digit outside it."""
    left = start > 0 and text[start].isdecimal() and text[start - 1].isdecimal()
    return left or (end < len(text) and text[end - 1].isdecimal() and text[end].isdecimal())


def cuts_word_at_start(text: str, start: int) -> bool:
    """Whether a letter of a script with separate words touches the span's first letter."""
    return start > 0 and bool(_SEPARATE_WORDS.match(text[start]) and _SEPARATE_WORDS.match(text[start - 1]))


def cuts_word_at_end(text: str, end: int) -> bool:
    """Whether the span's last letter goes on in a further letter that is no case ending."""
    if end >= len(text) or not _SEPARATE_WORDS.match(text[end - 1]) or not _SEPARATE_WORDS.match(text[end]):
        return False
    return _ENDING.match(text, end) is None


def cuts_email(text: str, start: int, end: int, *, sentence_follows: bool) -> bool:
    """Whether the address in case-folded text is a piece of a longer one.

    `sentence_follows` says that a dot behind the address ends a sentence, which case-folded text cannot show.
    """
    if start > 0 and _EMAIL_ATOM.match(text[start - 1]):
        return True
    if start > 1 and text[start - 1] in ".-" and _EMAIL_ATOM.match(text[start - 2]):
        return True
    return not sentence_follows and _DOMAIN_GOES_ON.match(text, end) is not None
