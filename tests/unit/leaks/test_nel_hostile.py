"""Time of the NEL_strict classifier on long and hostile text."""

from __future__ import annotations

import pytest
from cpu_limit import finishes

from mragaudit.leaks.nel import classify

HOSTILE = {
    "capitals": "A ", "names": "Anna Weber ", "open names": "Anna von ", "titles": "Mr. ", "labels": "Name: ",
    "label words": "name of the ", "organisations": "University of ", "ampersands": "A & ", "at signs": "a@",
    "dots": "a.", "handles": "@a", "brackets": "[", "angles": "<a", "stars": "*", "hyphens": "Anna-",
    "apostrophes": "O'", "addresses": "http://a ", "domains": "a.a.a.a.com/", "digits": "1", "phones": "+1 212 555 01 ",
    "surnames": "王", "chinese names": "李明", "middle dots": "安·", "arabic names": "محمد ", "servants": "عبد ",
    "zero width": "a\u200b", "marks": "\u0301", "mixed scripts": "аa", "spaces": " ", "lines": "\n", "word": "x",
}  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_time_grows_with_the_length_of_the_text_not_with_its_square(piece: str) -> None:
    assert finishes(lambda: classify((piece * 200_000)[:200_000]))
