"""Tags such as [NAME] or <EMAIL>, and conventional names."""

from __future__ import annotations

import re

from mragaudit.leaks.nel.items import Board
from mragaudit.leaks.nel.lexicon import Lexicon
from mragaudit.text import normalise

_TAG = re.compile(
    r"(?:\[{1,2}|<{1,2}|\{{1,2}|【|《|«)([^\[\]<>{}【】《》«»\n@]{1,48})(?:\]{1,2}|>{1,2}|\}{1,2}|】|》|»)"
)
_TAG_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_HAN = re.compile(r"[\u3400-\u9fff]")
_SEVERAL_X = re.compile(r"(?<![^\W_])[Xx]{3,12}(?![^\W_])")


def find(board: Board, lexicon: Lexicon) -> None:
    """Put the tags that name what was left out."""
    for match in _TAG.finditer(board.text):
        inner = normalise(match[1], casefold=True).text.strip()
        words = [inner] if _HAN.match(inner) else _TAG_WORD.findall(inner.replace("_", " "))
        if not words or inner.startswith("/"):
            continue
        if _made_of(words, lexicon.email_tags, lexicon=lexicon):
            board.put("EMAIL_PLACEHOLDER", match.span(), rule="tag")
        elif _made_of(words, lexicon.name_tags, lexicon=lexicon):
            board.put("PERSON_NAME_PLACEHOLDER", match.span(), rule="tag")


def _made_of(words: list[str], wanted: frozenset[str], *, lexicon: Lexicon) -> bool:
    """Whether one word at least is wanted and the others may stand beside it; Chinese is compared by its ending."""
    if len(words) == 1 and _HAN.match(words[0]):
        return words[0] in wanted or any(words[0].removeprefix(filler) in wanted for filler in lexicon.tag_fillers)
    known = wanted | lexicon.tag_fillers
    return any(word in wanted for word in words) and all(word in known for word in words)


def find_names(board: Board, lexicon: Lexicon) -> None:
    """Put conventional names: John Doe, Erika Mustermann, 张三, فلان الفلاني."""
    folded = normalise(board.text, casefold=True, keep_lines=True)
    for match in lexicon.placeholder_names.finditer(folded.text):
        board.put("PERSON_NAME_PLACEHOLDER", folded.original_span(*match.span()), rule="convention")
    fields: set[int] = set()
    for match in lexicon.field_names.finditer(folded.text):
        start, end = folded.original_span(*match.span())
        if start in board.labelled or start - 1 in fields:
            board.put("PERSON_NAME_PLACEHOLDER", (start, end), rule="field")
            fields.add(end)
    for match in _SEVERAL_X.finditer(board.text):
        board.put("PERSON_NAME_PLACEHOLDER", match.span(), rule="crosses")
