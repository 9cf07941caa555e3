"""Where each attack trial was stopped: the funnel, and what each stage alone would stop.

A trial whose answer holds the planted value was not stopped by translation or retrieval, whatever those stages'
own checks say; so the last stage's survivors are exactly the trials that leak past judge and filter.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pandas as pd

from mragaudit.tables.columns import ALLOW, GROUPS, NO_JUDGE, SOURCES, UNKNOWN, Bools, TrialColumns
from mragaudit.tables.frames import Row, frame

FUNNEL_COLUMNS = (
    "lang,pii_group,judge_variant,filter_variant,stage,n_trials,n_surviving,share,n_not_evaluated,query_source"
).split(",")
STOPS_COLUMNS = (
    "lang,pii_group,judge_variant,filter_variant,stage,n_trials,n_first_stop,n_stop_alone,n_not_evaluated,query_source"
).split(",")

STAGES = ("queried", "translated", "judge", "retrieved", "generated", "filter")
STAGES_CONTEXT_JUDGE = ("queried", "translated", "retrieved", "judge", "generated", "filter")
CONTEXT_JUDGES = frozenset({"retrieved", "oracle"})
ESCAPED = "escaped"
NOT_EVALUATED = "not evaluated"


class Passage(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Which trials each stage lets pass under one judge and filter, shape `(n_trials,)` each."""

    order: tuple[str, ...]
    passes: dict[str, Bools]
    """Stage → trials that it alone would let pass."""
    unknown: Bools
    """Trials without an answer, without this judge's verdict, or with a leak of which the filter has said nothing."""


def stage_order(judge: str) -> tuple[str, ...]:
    """Return the stages in the order in which a trial meets them under a judge variant."""
    return STAGES_CONTEXT_JUDGE if judge in CONTEXT_JUDGES else STAGES


def passage(columns: TrialColumns, judge: str, filter_variant: str) -> Passage:
    """Return which trials pass each stage; UNPARSED counts as BLOCK, and without a judge all pass it."""
    leaked = columns.leak == 1
    everything = np.ones(len(leaked), dtype=np.bool_)
    verdict = None if judge == NO_JUDGE else columns.verdict[judge]
    fired = columns.fired[filter_variant]
    unknown = (columns.leak == UNKNOWN) | (leaked & (fired == UNKNOWN))
    return Passage(
        order=stage_order(judge),
        passes={
            "queried": everything,
            "translated": ~columns.failed | leaked,
            "judge": everything if verdict is None else verdict == ALLOW,
            "retrieved": (columns.gold_rank > 0) | leaked,
            "generated": leaked,
            "filter": fired != 1,
        },
        unknown=unknown if verdict is None else unknown | (verdict == UNKNOWN),
    )


def first_stops(path: Passage) -> list[tuple[str, Bools]]:
    """Return (stage, trials first stopped there) in order, and last (`escaped`, trials that passed all)."""
    surviving = ~path.unknown
    stops: list[tuple[str, Bools]] = []
    for stage in path.order:
        stops.append((stage, surviving & ~path.passes[stage]))
        surviving = surviving & path.passes[stage]
    return [*stops, (ESCAPED, surviving)]


def stop_of_each(path: Passage) -> list[str]:
    """Return, a trial, the stage that stopped it first, `escaped`, or `not evaluated`."""
    names = np.full(len(path.unknown), NOT_EVALUATED, dtype=object)
    for stage, trials in first_stops(path):
        names[trials] = stage
    return [str(name) for name in names]


def funnel_tables(columns: TrialColumns) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `funnel` and `stops`: rows a language, group, judge (`none` among them), filter and stage."""
    funnel: list[Row] = []
    stops: list[Row] = []
    slices = list(_slices(columns))
    for judge in (NO_JUDGE, *columns.judges):
        for filter_variant in columns.filters:
            path = passage(columns, judge, filter_variant)
            stopped = first_stops(path)
            for key, chosen in slices:
                names = key | {"judge_variant": judge, "filter_variant": filter_variant}
                counts = _Counts(path, stopped, chosen)
                funnel += [names | row for row in counts.funnel()]
                stops += [names | row for row in counts.stops()]
    return frame(funnel, FUNNEL_COLUMNS), frame(stops, STOPS_COLUMNS)


def _slices(columns: TrialColumns) -> Iterator[tuple[Row, Bools]]:
    attacks = columns.is_attack()
    for source in columns.sources():
        for code, lang in enumerate(columns.languages):
            for group in GROUPS:
                chosen = attacks & (columns.source == source) & (columns.lang == code)
                if source == 0 or chosen.any():
                    key = {"lang": lang, "pii_group": group, "query_source": SOURCES[source]}
                    yield key, chosen & columns.in_group(group)


class _Counts:
    """The rows of one slice of the trials under one judge and filter."""

    def __init__(self, path: Passage, stopped: list[tuple[str, Bools]], chosen: Bools) -> None:
        self._path = path
        self._stopped = {stage: int(np.count_nonzero(trials & chosen)) for stage, trials in stopped}
        self._known = chosen & ~path.unknown
        self._all = {
            "n_trials": int(np.count_nonzero(chosen)),
            "n_not_evaluated": int(np.count_nonzero(chosen & path.unknown)),
        }

    def funnel(self) -> Iterator[Row]:
        """Yield the survivors of each stage."""
        evaluated = self._all["n_trials"] - self._all["n_not_evaluated"]
        surviving = evaluated
        for stage in self._path.order:
            surviving -= self._stopped[stage]
            share = surviving / evaluated if evaluated else None
            yield self._all | {"stage": stage, "n_surviving": surviving, "share": share}

    def stops(self) -> Iterator[Row]:
        """Yield the trials that each stage stops first, and those that it alone would stop."""
        for stage in self._path.order:
            alone = int(np.count_nonzero(self._known & ~self._path.passes[stage]))
            yield self._all | {"stage": stage, "n_first_stop": self._stopped[stage], "n_stop_alone": alone}
