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


def seconds(text: str) -> float:
    begin = time.process_time()
    classify(text)
    return time.process_time() - begin


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_four_times_the_text_takes_no_more_than_ten_times_as_long(piece: str) -> None:
    long = seconds((piece * 40_000)[:40_000])

    # A quadratic rule takes sixteen times as long; below half a second there is nothing to tell.
    assert long < 0.5 or long < 10 * seconds((piece * 10_000)[:10_000])
