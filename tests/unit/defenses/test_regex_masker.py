"""The regex masker: what it masks, what gets past it, and that it touches nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from mragaudit.defenses.regex_masker import Masked, RegexMasker
from mragaudit.rag.hooks import Turn

TURN = Turn(principal="p", session="s", rng=np.random.default_rng(0))


def masked(text: str, patterns: str = "regex_unicode") -> str:
    return RegexMasker(patterns=patterns).process_response(text, turn=TURN)


def test_the_kind_stands_in_the_place_of_what_was_found():
    text = "Ann: ann@corp.example, +1 202-555-0147, SSN 123-45-6789, order 4711."
    assert masked(text) == "Ann: [EMAIL], [PHONE], SSN [ID], order 4711."


@pytest.mark.parametrize(
    "text",
    ["", "Nothing here.", "a\u200bb  c\r\n\tﬁ½ ＡＢ", "王秀英 在 2026-11-30 10:00 到", "e\u0301 @ me, v1.2.3.4, 50 %"],
)
def test_text_without_a_match_stays_byte_for_byte(text):
    assert masked(text).encode() == text.encode()


def test_text_around_a_match_stays_byte_for_byte():
    assert masked("ﬁ\u200b  x\tann@corp.example\r\n½") == "ﬁ\u200b  x\t[EMAIL]\r\n½"


def test_matches_are_logged_by_place_and_never_by_content():
    masker = RegexMasker()
    for text in ("write to ann@corp.example", "nothing", "b@corp.example, c@corp.example"):
        masker.process_response(text, turn=TURN)
    assert masker.log == [
        Masked(reply=1, family="email", start=9, end=25),
        Masked(reply=3, family="email", start=0, end=14),
        Masked(reply=3, family="email", start=16, end=30),
    ]
