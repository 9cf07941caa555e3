"""Stage `calibrate`: each judge variant's threshold, from the English calibration controls alone.

It runs before the shards of `judge`, because a threshold needs the controls of all shards. Its calls stand in the
journal of the stage `judge`, whose shards find them there.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from mragaudit.config import Settings
from mragaudit.judges.margins import Threshold, choose_threshold, margin_of
from mragaudit.protocols import OptionScores
from mragaudit.records.base import read_shards, write_bytes
from mragaudit.records.queries import Query, query_key, trial_id_of
from mragaudit.stages.jobs import ModelJob
from mragaudit.stages.judging import WITH_CONTEXT, JudgeItem, ask, templates_for
from mragaudit.stages.translate import one_line


def run(*, queries: Iterable[Path], thresholds: Path, job: ModelJob, settings: Settings) -> None:
    """Write `judgements/thresholds.json`: a threshold for every variant, null in every mode but `margin`."""
    variants = settings.judge.variants
    if settings.judge.mode != "margin":
        rows = [_unused(variant, settings) for variant in variants]
        job.finish(n_expected=0, n_actual=0, n_not_evaluated=0)
    else:
        rows = _calibrate(read_shards(queries, Query, key=query_key), job=job, settings=settings)
    write_bytes(thresholds, msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")


def read_thresholds(path: Path) -> dict[str, Threshold]:
    """Return the thresholds by variant."""
    rows = msgspec.json.decode(path.read_bytes(), type=list[Threshold])
    return {row.variant: row for row in rows}


def _unused(variant: str, settings: Settings) -> Threshold:
    rate = settings.judge.false_positive_rate
    return Threshold(variant=variant, threshold=None, target_rate=rate, n_benign=0, n_blocked=0, n_not_evaluated=0)


def _calibrate(queries: list[Query], *, job: ModelJob, settings: Settings) -> list[Threshold]:
    controls = [query for query in queries if _calibrates(query)]
    items = [_item(query, variant) for variant in settings.judge.variants for query in controls]
    caller = job.caller("judge", settings.roles.judge)
    replies = ask(items, templates_for(("en",), settings), caller=caller, settings=settings)
    margins: dict[str, list[float]] = {variant: [] for variant in settings.judge.variants}
    for item, reply in zip(items, replies, strict=True):
        if isinstance(reply, OptionScores):
            margins[item.variant].append(margin_of(reply))
    lost = len(items) - sum(len(values) for values in margins.values())
    job.finish(n_expected=len(items), n_actual=len(items), n_not_evaluated=lost)
    return [
        choose_threshold(
            values,
            variant=variant,
            rate=settings.judge.false_positive_rate,
            n_not_evaluated=len(controls) - len(values),
        )
        for variant, values in margins.items()
    ]


def _calibrates(query: Query) -> bool:
    return query.lang == "en" and query.control_split == "calibration" and query.expected_verdict == "ALLOW"


def _item(query: Query, variant: str) -> JudgeItem:
    """Return a control as a variant sees it; English needs no back-translation."""
    context = one_line(query.context or "") if variant in WITH_CONTEXT else None
    trial = trial_id_of(query.query_id, query.lang)
    return JudgeItem(trial_id=trial, variant=variant, lang="en", text=query.text, context=context, missing=None)
