"""Stage `monitor_replay`: the traffic through the monitor, in simulated time, open loop."""

from __future__ import annotations

import logging
import secrets
import time
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.monitor.replay import in_order, open_loop
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.records.base import read_records, write_records
from mragaudit.records.replay import CountedQuery, QueryEvent, event_key
from mragaudit.stages.monitor_files import monitor_settings
from mragaudit.stages.progress import counted

logger = logging.getLogger(__name__)

MEMORY = "memory://"
TIMEOUT_SECONDS = 10.0


def run(*, traffic: Path, counts: Path, settings: Settings) -> None:
    """Write `monitor/replay/{part}.jsonl`: a row for each query of the traffic, in the order of its ids."""
    events = read_records(traffic, QueryEvent, key=event_key)
    start = time.perf_counter()
    rows: list[CountedQuery] = list(
        counted(open_loop(in_order(events), settings=replay_settings(settings)), total=len(events), label="replay")
    )
    write_records(counts, rows, key=event_key)
    logger.info("monitor_replay: %d queries in %.1f s", len(rows), time.perf_counter() - start)


def replay_settings(settings: Settings) -> MonitorSettings:
    """Return the monitor's settings on a store that holds nothing yet: a server in memory, or a prefix of its own."""
    given = monitor_settings(settings)
    token = secrets.token_hex(8)
    url = settings.monitor.store
    place = {"url": f"{MEMORY}replay-{token}"} if url.startswith(MEMORY) else {"url": url, "prefix": f"replay-{token}"}
    store = given.store.model_copy(update={**place, "timeout_seconds": TIMEOUT_SECONDS})
    return given.model_copy(update={"store": store})
