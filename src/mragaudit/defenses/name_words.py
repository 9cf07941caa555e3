"""Words of a text with their places and scripts, as the search for names takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mragaudit.defenses.vocabulary import Script

Span = tuple[int, int]

HAN = "\u3400-\u4dbf\u4e00-\u9fff"
ARABIC = "\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06dc\u06df-\u06e8\u06ea-\u06ef\u06fa-\u06ff\u0750-\u077f"
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0900-\u0963\u0970-\u0dff\u0e00-\u0e7f"
_LETTER = rf"(?:[^\W\d_{HAN}{ARABIC}]|[{_MARKS}])"
# A single letter beside a digit or dash is part of a code, no initial.
_CODE = rf"(?:(?<=[\d_-]){_LETTER}(?!{_LETTER})|{_LETTER}(?=[\d_]))"
_WORD = re.compile(rf"(?P<uncased>[{HAN}]+|[{ARABIC}]+)|{_CODE}|(?P<other>{_LETTER}+(?:['\-]{_LETTER}+)*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A word of one script, with its place."""

    start: int
    end: int
    text: str
    script: Script

    @property
    def folded(self) -> str:
        """The word for comparison."""
        return self.text.casefold()

    @property
    def capitalised(self) -> bool:
        """Whether it begins with a capital letter, or has one behind an elided article (d'Arc)."""
        return self.text[0].isupper() or self.text[0].istitle() or self.text.rpartition("'")[2][:1].isupper()


def words_of(text: str) -> list[Word]:
    """Return the words of a text; a run of Han or Arabic letters is a word of its own."""
    return [
        Word(start=match.start(), end=match.end(), text=match[0], script=script_of(match[0]))
        for match in _WORD.finditer(text)
        if match.lastgroup
    ]


def script_of(word: str) -> Script:
    """Return the script of a word by its first letter."""
    if re.match(rf"[{HAN}]", word):
        return "han"
    if re.match(rf"[{ARABIC}]", word):
        return "arabic"
    return "cased" if word[0].lower() != word[0].upper() else "other"
