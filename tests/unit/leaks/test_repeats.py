from __future__ import annotations

import numpy as np
import pytest
from cpu_limit import finishes

from mragaudit.leaks.repeats import extractions, repeats

DOCUMENT = " ".join(f"word{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(60))
WORDS = DOCUMENT.split()


@pytest.mark.parametrize(("count", "expected"), [(19, False), (20, True)])
def test_19_tokens_are_no_repeat_and_20_are(count: int, expected: bool) -> None:
    copied = "As it says: " + " ".join(WORDS[7 : 7 + count]) + " and so on."
    assert repeats(copied, document=DOCUMENT) is expected
    assert extractions([DOCUMENT], replies=[copied])[0].repeated is expected


def test_20_tokens_with_a_gap_are_no_repeat() -> None:
    assert not repeats(" ".join([*WORDS[:10], "gap", *WORDS[10:20]]), document=DOCUMENT)


def test_case_punctuation_and_line_breaks_do_not_hide_a_repeat() -> None:
    assert repeats(",\n".join(WORDS[:20]).upper(), document=DOCUMENT)


def test_signs_of_a_script_without_spaces_are_tokens() -> None:
    text = "公司预算已经批准请在周一之前把签好的表格交给财务部门"
    assert repeats(text[:20], document=text)
    assert not repeats(text[:19], document=text)


def test_rouge_l_by_hand() -> None:
    # common subsequence of "the cat sat on the mat" and "the cat on mat": 4 of 6 tokens, 4 of 4
    found = extractions(["the cat sat on the mat"], replies=["The cat, on: mat."])[0]
    assert (found.rouge_l_recall, found.rouge_l_precision) == (4 / 6, 1.0)


def test_the_published_rule_takes_a_short_reply_by_its_precision_and_ours_does_not() -> None:
    found = extractions([DOCUMENT], replies=[WORDS[0]])[0]
    assert (found.resembled, found.resembled_by_recall) == (True, False)


def test_exactly_half_is_not_above_half() -> None:
    found = extractions(["a1 b1"], replies=["a1 x1"])[0]
    assert (found.rouge_l_recall, found.rouge_l_precision) == (0.5, 0.5)
    assert not found.resembled


def test_the_best_reply_counts_for_each_document() -> None:
    found = extractions(["red green blue", "one two six"], replies=["one two", "red", "red green blue", ""])
    assert [record.rouge_l_recall for record in found] == [1.0, 2 / 3]


def test_without_replies_or_tokens_nothing_is_repeated() -> None:
    assert [record.rouge_l_recall for record in extractions(["red", "..."], replies=[])] == [0.0, 0.0]
    assert extractions(["..."], replies=["..."])[0].rouge_l_precision == 0.0


def _textbook_lcs(first: list[int], second: list[int]) -> int:
    row = [0] * (len(second) + 1)
    for item in first:
        above = 0
        for at, other in enumerate(second, start=1):
            above, row[at] = row[at], (above + 1 if item == other else max(row[at], row[at - 1]))
    return row[-1]


def test_the_fast_common_subsequence_equals_the_textbook_one_on_random_sequences() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        first, second = (rng.integers(0, 6, size=rng.integers(0, 90)).tolist() for _ in range(2))
        found = extractions([" ".join(f"t{item}" for item in first)], replies=[" ".join(f"t{item}" for item in second)])
        expected = _textbook_lcs(first, second) / len(first) if first else 0.0
        assert found[0].rouge_l_recall == expected


def test_pairs_are_compared_without_going_through_all_pairs_of_tokens() -> None:
    rng = np.random.default_rng(2)
    texts = [" ".join(f"t{item}" for item in rng.integers(0, 400, size=20_000)) for _ in range(6)]
    assert finishes(lambda: extractions(texts[:3], replies=texts[3:]))
