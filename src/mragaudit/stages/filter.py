"""Stage `filter`: what an output filter says of every answer."""

from __future__ import annotations

from pathlib import Path

from mragaudit.filters import OUTPUT_FILTERS
from mragaudit.records.base import read_records, write_records
from mragaudit.records.results import Filtered, Generation, trial_key


def run(*, generations: Path, filtered: Path, variant: str) -> None:
    """Write `filtered/{variant}/{shard}.jsonl`."""
    rows = [_row(row, variant) for row in read_records(generations, Generation, key=trial_key)]
    write_records(filtered, rows, key=trial_key)


def _row(row: Generation, variant: str) -> Filtered:
    if row.not_evaluated is not None:
        return Filtered(trial_id=row.trial_id, variant=variant, fired=None, families=(), spans=())
    hit = OUTPUT_FILTERS[variant].apply(row.text)
    return Filtered(
        trial_id=row.trial_id,
        variant=variant,
        fired=hit.fired,
        families=tuple(sorted(hit.families)),
        spans=tuple(hit.spans),
    )
