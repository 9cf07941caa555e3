"""What throttling saves: the closed loop against the open one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from mragaudit.monitor.evaluation.replayed import HOUR_SECONDS, Replayed, Row, by_profile, median_cells
from mragaudit.monitor.rejudge import Actor
from mragaudit.records.replay import DeliveredQuery
from mragaudit.stats.medians import median_interval


def throttling_table(replayed: Replayed, delivered: Iterable[DeliveredQuery], *, confidence: float) -> pd.DataFrame:
    """Return a row for each response, attacker profile and language, at the configured settings.

    Medians over attackers, of each attacker's own pair of loops; one that was never throttled has equal loops.
    """
    closed: dict[tuple[str, str], list[DeliveredQuery]] = {}
    for row in delivered:
        closed.setdefault((row.response, row.actor), []).append(row)
    responses = sorted({response for response, _ in closed})
    return pd.DataFrame([row for one in responses for row in _rows(replayed, one, closed, confidence=confidence)])


def _rows(
    replayed: Replayed,
    response: str,
    closed: Mapping[tuple[str, str], Sequence[DeliveredQuery]],
    *,
    confidence: float,
) -> Iterator[Row]:
    for profile, lang, actors in by_profile(replayed.attackers):
        pairs = [(actor, closed[response, actor.name]) for actor in actors if (response, actor.name) in closed]
        yield {
            "part": replayed.part,
            "response": response,
            "profile": profile,
            "lang": lang,
            "n_attackers": len(actors),
            "n_not_evaluated": len(actors) - len(pairs),
            "n_throttled": sum(any(row.throttled for row in rows) for _, rows in pairs),
            **_cells(pairs, confidence=confidence),
        }


def _cells(pairs: Sequence[tuple[Actor, Sequence[DeliveredQuery]]], *, confidence: float) -> Row:
    measures: dict[str, list[float]] = {
        "documents_open": [float(_documents_open(actor)) for actor, _ in pairs],
        "documents_closed": [float(_documents_closed(rows)) for _, rows in pairs],
        "saved_share": [_saved(actor, rows) for actor, rows in pairs],
        "hours_open": [_hours_open(actor) for actor, _ in pairs],
        "hours_closed": [_hours_closed(rows) for _, rows in pairs],
    }
    cells: Row = {}
    for name, values in measures.items():
        cells |= median_cells(median_interval(values, confidence=confidence), name=name)
    return cells


def _documents_open(actor: Actor) -> int:
    return len({one.doc_id for asked in actor.asked for one in asked.event.documents if one.planted})


def _documents_closed(rows: Sequence[DeliveredQuery]) -> int:
    return len({one.doc_id for row in rows for one in row.delivered if one.planted})


def _saved(actor: Actor, rows: Sequence[DeliveredQuery]) -> float:
    everything = _documents_open(actor)
    return 0.0 if everything == 0 else 1 - _documents_closed(rows) / everything


def _hours_open(actor: Actor) -> float:
    return (actor.asked[-1].event.time - actor.asked[0].event.time) / HOUR_SECONDS


def _hours_closed(rows: Sequence[DeliveredQuery]) -> float:
    return (max(row.answered for row in rows) - min(row.time for row in rows)) / HOUR_SECONDS
