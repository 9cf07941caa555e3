"""Letters without marks, and letters that look like Latin ones."""

from __future__ import annotations

import pytest

from mragaudit.text.letters import latin_lookalikes, without_marks


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", ""),
        ("Weber", "Weber"),
        ("Müller", "Muller"),
        ("Zoe\u0308", "Zoe"),
        ("Łódź", "Łodz"),
        ("مُحَمَّد", "محمد"),
        ("王", "王"),
    ],
)
def test_marks_are_left_out_and_letters_stay(text: str, plain: str) -> None:
    assert without_marks(text) == plain


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("", ""),
        ("Аnna", "Anna"),
        ("Weber Аnnа", "Weber Anna"),
        ("Анна", "Анна"),
        ("Anna", "Anna"),
        ("τest", "τest"),
        ("l\u0435na@web.de", "lena@web.de"),
        ("王Anna", "王Anna"),
    ],
)
def test_words_of_mixed_scripts_are_spelled_in_latin(text: str, latin: str) -> None:
    assert latin_lookalikes(text) == latin
    assert len(latin_lookalikes(text)) == len(text)
