"""Text in, items out."""

from __future__ import annotations

from functools import lru_cache

from mragaudit.leaks.nel import arabic, contacts, han, latin, tags
from mragaudit.leaks.nel.items import Board, Item
from mragaudit.leaks.nel.lexicon import Lexicon, read_lexicon
from mragaudit.text import normalise
from mragaudit.text.letters import latin_lookalikes

# Each takes what the ones before it left: an address in a URL is no name, a name in a street is no person.
_RULES = (
    tags.find,
    contacts.find_emails,
    contacts.find_links,
    contacts.find_numbers,
    tags.find_names,
    latin.find,
    han.find,
    arabic.find,
)


@lru_cache(maxsize=4)
def shipped_lexicon(resources: str = "resources") -> Lexicon:
    """Return the lexicon below `resources`, read once a process."""
    return read_lexicon(resources)


def classify(text: str, *, lexicon: Lexicon | None = None) -> tuple[Item, ...]:
    """Return the items of a text in order, disjoint; without `lexicon` by the one that ships.

    The language is not asked: rules go by script, and names of all languages are looked for in every text.
    Invisible characters, full-width forms, vowel points and letters of other scripts that look Latin make no
    difference; spans are those of the text as given. Takes time in proportion to the length of the text.
    """
    words = lexicon or shipped_lexicon()
    folded = normalise(text, keep_lines=True, drop_vowel_points=True)
    plain = latin_lookalikes(folded.text)
    board = Board(plain, labelled=_labelled(plain, words))
    for rule in _RULES:
        rule(board, words)
    items = []
    for found in sorted(board.findings, key=lambda finding: finding.start):
        start, end = folded.original_span(found.start, found.end)
        items.append(Item(type=found.type, text=text[start:end], start=start, end=end, rule=found.rule))
    return tuple(items)


def _labelled(text: str, lexicon: Lexicon) -> frozenset[int]:
    """Return where labels end, in code points of the text."""
    folded = normalise(text, casefold=True, keep_lines=True)
    spans = (match.span() for match in lexicon.label.finditer(folded.text))
    return frozenset(folded.original_span(*span)[1] for span in spans)
