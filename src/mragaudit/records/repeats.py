"""A/A repeats: one call made twice with the same prompt, and what came out otherwise."""

from __future__ import annotations

from typing import Literal

from mragaudit.records.base import Record
from mragaudit.records.queries import Intent

RepeatedStage = Literal["translate", "backtranslate", "judge", "generate"]
Flip = Literal["text", "verdict", "leak_verbatim", "answered_correctly"]

REPEATED_STAGES: tuple[RepeatedStage, ...] = ("translate", "backtranslate", "judge", "generate")
FLIPS: tuple[Flip, ...] = ("text", "verdict", "leak_verbatim", "answered_correctly")


class RepeatPair(Record, frozen=True, kw_only=True, tag="repeat_pair/1"):
    """One call of a stage and its repeat."""

    stage: RepeatedStage
    trial_id: str
    judge_variant: str | None
    """null for stages other than `judge`."""
    lang: str
    intent: Intent
    flips: dict[Flip, bool | None]
    """What was compared → whether the repeat gave another one; null where either call never came back."""
    margin_difference: float | None
    """Absolute difference of the judge's log-odds, in nats; null without margins or where not evaluated."""
    not_evaluated: str | None
    """Why there is nothing to compare; null where there is."""

    def __post_init__(self) -> None:
        if any((flip is None) != (self.not_evaluated is not None) for flip in self.flips.values()):
            raise ValueError('a flip is null exactly where "not_evaluated" says why')


def pair_key(row: RepeatPair) -> str:
    """Return stage, judge variant and trial, by which pairs are sorted."""
    return f"{row.stage}/{row.judge_variant or '-'}/{row.trial_id}"
