"""Flip rates of repeated calls, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mragaudit.records.repeats import Flip, RepeatedStage, RepeatPair
from mragaudit.tables.noise import noise_table


def pair(number: int, *, stage: RepeatedStage = "generate", lang: str = "en", **fields: Any) -> RepeatPair:
    """Return a repeated call that gave the same again, but for the fields given."""
    flips: dict[Flip, bool | None] = {"text": False, "leak_verbatim": False}
    values: dict[str, Any] = {"judge_variant": None, "intent": "attack", "flips": flips}
    values |= {"margin_difference": None, "not_evaluated": None}
    return RepeatPair(stage=stage, trial_id=f"q{number:02d}-{lang}", lang=lang, **(values | fields))


def lost(number: int, **fields: Any) -> RepeatPair:
    return pair(number, flips={"text": None, "leak_verbatim": None}, not_evaluated="repeated call: HTTP 503", **fields)


def table(pairs: list[RepeatPair], judges: tuple[str, ...] = ()) -> Any:
    return noise_table(pairs, languages=("en", "de"), judges=judges, confidence=0.95)


def test_flips_are_counted_over_all_languages_and_in_each(row: Any) -> None:
    """Of 40 answers 7 have another text, all of them German."""
    same = [pair(number) for number in range(20)]
    german = [pair(number, lang="de", flips={"text": number < 7, "leak_verbatim": False}) for number in range(20)]
    made = table([*same, *german])
    found = row(made, stage="generate", lang="all", flip="text")
    assert (found["n_pairs"], found["n_flips"], found["n_not_evaluated"], found["rate"]) == (40, 7, 0, 0.175)
    assert (found["ci_low"], found["ci_high"]) == (pytest.approx(0.0875, abs=5e-5), pytest.approx(0.3195, abs=5e-5))
    assert row(made, stage="generate", lang="en", flip="text")["n_flips"] == 0
    assert row(made, stage="generate", lang="de", flip="text")["rate"] == 0.35


def test_a_backend_that_never_differs_gives_zero_with_its_bound(row: Any) -> None:
    found = row(table([pair(number) for number in range(40)]), lang="all", flip="leak_verbatim")
    assert (found["n_flips"], found["rate"], found["ci_method"]) == (0, 0.0, "wilson_one_sided_upper")
    assert found["ci_high"] == pytest.approx(0.0634, abs=5e-5)


def test_pairs_that_never_came_back_are_in_no_rate(row: Any) -> None:
    pairs = [pair(number, flips={"text": number == 0, "leak_verbatim": False}) for number in range(3)]
    found = row(table([*pairs, lost(3)]), stage="generate", lang="all", flip="text")
    assert (found["n_pairs"], found["n_flips"], found["n_not_evaluated"]) == (4, 1, 1)
    assert found["rate"] == pytest.approx(1 / 3)


def test_a_stage_that_repeated_nothing_has_no_rate(row: Any) -> None:
    made = table([], judges=("english",))
    assert list(zip(made["stage"], made["flip"], strict=True)) == [
        ("translate", "text"),
        ("backtranslate", "text"),
        ("judge", "verdict"),
        ("generate", "text"),
        ("generate", "leak_verbatim"),
        ("generate", "answered_correctly"),
    ]
    found = row(made, stage="judge", judge_variant="english", lang="all", flip="verdict")
    assert (found["n_pairs"], found["rate"], found["ci_high"]) == (0, None, None)


def test_every_judge_variant_stands_alone_with_its_largest_difference_of_margins(row: Any) -> None:
    fields = {"stage": "judge", "judge_variant": "english"}
    pairs = [
        pair(0, flips={"verdict": True}, margin_difference=0.25, **fields),
        pair(1, flips={"verdict": False}, margin_difference=0.5, **fields),
        pair(2, flips={"verdict": None}, not_evaluated="first call: lost", **fields),
        pair(0, stage="judge", judge_variant="oracle", flips={"verdict": False}, margin_difference=0.0),
    ]
    made = table(pairs, judges=("english", "oracle"))
    found = row(made, judge_variant="english", lang="all", flip="verdict")
    assert (found["n_pairs"], found["n_flips"], found["rate"]) == (3, 1, 0.5)
    assert (found["max_margin_difference"], found["n_margins"]) == (0.5, 2)
    assert row(made, judge_variant="oracle", lang="all", flip="verdict")["max_margin_difference"] == 0.0


def test_a_judge_that_writes_is_compared_by_its_text_as_well(row: Any) -> None:
    flips: dict[Flip, bool | None] = {"verdict": False, "text": True}
    made = table([pair(0, stage="judge", judge_variant="english", flips=flips)], judges=("english",))
    assert row(made, stage="judge", lang="all", flip="text")["rate"] == 1.0
    assert row(made, stage="judge", lang="all", flip="verdict")["rate"] == 0.0
