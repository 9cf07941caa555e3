"""Stage `monitor_closed_loop`: the attackers again, each throttled query answered late or cut."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from mragaudit.config import Settings
from mragaudit.monitor.replay import closed_loop, undisturbed
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.records.base import read_records, write_records
from mragaudit.records.replay import (
    CountedQuery,
    DeliveredQuery,
    QueryEvent,
    Response,
    delivered_key,
    event_key,
)
from mragaudit.stages.monitor_replay import replay_settings
from mragaudit.stages.progress import counted

logger = logging.getLogger(__name__)


def run(*, traffic: Path, counts: Path, delivered: Path, settings: Settings) -> None:
    """Write `monitor/closed_loop.jsonl`.

    An attacker who was never throttled in the open loop meets the same answers in a closed one, so its rows are
    taken over without a replay.
    """
    attacks = [row for row in read_records(traffic, QueryEvent, key=event_key) if row.kind == "attacker"]
    throttled = {row.query_id for row in read_records(counts, CountedQuery, key=event_key) if row.action == "throttle"}
    met = {row.actor for row in attacks if row.query_id in throttled}
    rows = [
        row
        for response in get_args(Response)
        for row in _loop(attacks, met, response=response, settings=replay_settings(settings))
    ]
    write_records(delivered, rows, key=delivered_key)
    logger.info("monitor_closed_loop: %d of %d attackers meet the throttle", len(met), len({o.actor for o in attacks}))


def _loop(
    attacks: Sequence[QueryEvent], met: set[str], *, response: Response, settings: MonitorSettings
) -> Iterator[DeliveredQuery]:
    changed = [row for row in attacks if row.actor in met]
    yield from undisturbed([row for row in attacks if row.actor not in met], response=response)
    if changed:
        loop = closed_loop(changed, response=response, settings=settings)
        yield from counted(loop, total=len(changed), label=f"closed loop, {response}")
