"""Time of the NEL_strict classifier on long and hostile text."""

from __future__ import annotations

import time

import pytest

from mragaudit.leaks.nel import classify

HOSTILE = {
    "capitals": "A ", "names": "Anna Weber ", "open names": "Anna von ", "titles": "Mr. ", "labels": "Name: ",
    "label words": "name of the ", "organisations": "University of ", "ampersands": "A & ", "at signs": "a@",
    "dots": "a.", "handles": "@a", "brackets": "[", "angles": "<a", "stars": "*", "hyphens": "Anna-",
    "apostrophes": "O'", "addresses": "http://a ", "domains": "a.a.a.a.com/", "digits": "1", "phones": "+1 212 555 01 ",
    "surnames": "王", "chinese names": "李明", "middle dots": "安·", "arabic names": "محمد ", "servants": "عبد ",
    "zero width": "a\u200b", "marks": "\u0301", "mixed scripts": "аa", "spaces": " ", "lines": "\n", "word": "x",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    classify("the lexicon is read once")


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_a_long_repetition_is_read_in_seconds(piece: str) -> None:
    text = (piece * 100_000)[:100_000]
    begin = time.process_time()

    classify(text)

    # Rules that read on to the end at every place took 19 to 58 seconds here; the slowest takes 2.
    assert time.process_time() - begin < 8
