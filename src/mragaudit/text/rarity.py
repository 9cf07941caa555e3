"""Which words set a text apart from the other texts of a set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mragaudit.text.function_words import FUNCTION_WORDS
from mragaudit.text.normalise import normalise
from mragaudit.text.tokens import tokens

_GRAMMAR = frozenset().union(*FUNCTION_WORDS.values())
_MIN_LETTERS = 4


def rare_words(texts: Sequence[str], *, count: int) -> list[tuple[str, ...]]:
    """Return up to `count` words of each text, those first that the fewest of the texts hold.

    Case-folded words of letters alone, at least four, none of them a word of grammar; among equals the earlier one in
    the text. A text without such words gives an empty tuple.
    """
    words = [_words(text) for text in texts]
    holders = Counter(word for found in words for word in found)
    return [tuple(sorted(found, key=lambda word: holders[word])[:count]) for found in words]


def _words(text: str) -> list[str]:
    """Return the distinct words in the order of the text."""
    folded = tokens(normalise(text, casefold=True).text)
    kept = (word for word in folded if word.isalpha() and len(word) >= _MIN_LETTERS and word not in _GRAMMAR)
    return list(dict.fromkeys(kept))
