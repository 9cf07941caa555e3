"""What looks like a name in running text, by its capitals."""

from __future__ import annotations

import re

from mragaudit.text.function_words import FUNCTION_WORDS

Span = tuple[int, int]

_CAPITALISED = re.compile(r"\b[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+(?:[ -][A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+)+")
_GRAMMAR = frozenset().union(*FUNCTION_WORDS.values())


def capitalised_names(text: str) -> list[Span]:
    """Return runs of two or more capitalised words of Latin script, without a word of grammar at the front.

    A rule of thumb: titles of projects look like names to it, and scripts without capitals have none.
    """
    found = []
    for match in _CAPITALISED.finditer(text):
        first, _, rest = match[0].partition(" ")
        if first.lower() not in _GRAMMAR:
            found.append(match.span())
        elif " " in rest:
            found.append((match.start() + len(first) + 1, match.end()))
    return found
