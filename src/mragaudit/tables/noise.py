"""The noise floor: how often a model stage, asked the same once more, answers otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from mragaudit.records.repeats import FLIPS, Flip, RepeatedStage, RepeatPair
from mragaudit.stats.intervals import chance_rate
from mragaudit.tables.frames import Row, frame, interval_cells

NOISE_COLUMNS = (
    "stage,lang,judge_variant,flip,n_pairs,n_flips,n_not_evaluated,rate,ci_low,ci_high,ci_method,"
    "max_margin_difference,n_margins"
).split(",")
ALL_LANGUAGES = "all"
COMPARED: dict[RepeatedStage, tuple[Flip, ...]] = {
    "translate": ("text",),
    "backtranslate": ("text",),
    "judge": ("verdict",),
    "generate": ("text", "leak_verbatim", "answered_correctly"),
}
"""What every stage is compared by; a judge that writes is compared by its text as well."""


def noise_table(
    pairs: Sequence[RepeatPair], *, languages: Sequence[str], judges: Sequence[str], confidence: float
) -> pd.DataFrame:
    """Return flip rates: a stage, judge variant and thing compared, over all languages and in each that was repeated.

    `rate` is of n_pairs less n_not_evaluated. The row over all languages stands also where nothing was repeated: it has
    no rate then. Limits are Wilson's with a pair as the unit: two-sided, one-sided where no or every pair flips.
    """
    rows: list[Row] = []
    for stage, variant in _parts(judges):
        own = [pair for pair in pairs if (pair.stage, pair.judge_variant) == (stage, variant)]
        for flip in FLIPS:
            compared = [pair for pair in own if flip in pair.flips]
            if compared or flip in COMPARED[stage]:
                rows += [
                    {"stage": stage, "lang": lang, "judge_variant": variant, "flip": flip}
                    | _cells(part, flip, confidence=confidence)
                    for lang, part in _by_language(compared, languages)
                ]
    return frame(rows, NOISE_COLUMNS)


def _parts(judges: Sequence[str]) -> Iterator[tuple[RepeatedStage, str | None]]:
    for stage in COMPARED:
        yield from ((stage, variant) for variant in (judges if stage == "judge" else (None,)))


def _by_language(pairs: Sequence[RepeatPair], languages: Sequence[str]) -> Iterator[tuple[str, Sequence[RepeatPair]]]:
    yield ALL_LANGUAGES, pairs
    for lang in languages:
        if part := [pair for pair in pairs if pair.lang == lang]:
            yield lang, part


def _cells(pairs: Sequence[RepeatPair], flip: Flip, *, confidence: float) -> Row:
    known = [pair.flips[flip] for pair in pairs if pair.flips[flip] is not None]
    found = chance_rate(sum(map(bool, known)), len(known), confidence=confidence)
    margins = [pair.margin_difference for pair in pairs if pair.margin_difference is not None]
    return (
        {"n_pairs": len(pairs), "n_flips": sum(map(bool, known)), "n_not_evaluated": len(pairs) - len(known)}
        | interval_cells(found)
        | {"ci_method": found.method, "max_margin_difference": max(margins, default=None), "n_margins": len(margins)}
    )
