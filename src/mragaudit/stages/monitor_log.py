"""Stage `monitor_log`: the user's own access log as traffic."""

from __future__ import annotations

import logging
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.monitor.traffic.accesslog import read_access_log
from mragaudit.paths import RunPaths
from mragaudit.records.base import write_records
from mragaudit.records.replay import event_key
from mragaudit.stages.report import mask_key

logger = logging.getLogger(__name__)


def run(*, log: Path, traffic: Path, run_folder: Path, settings: Settings) -> None:
    """Write `monitor/traffic/log.jsonl`, users replaced by hashes keyed with the run's secret."""
    rows = read_access_log(log, sizes=settings.monitor.collection_sizes, secret=mask_key(RunPaths(run_folder)))
    write_records(traffic, rows, key=event_key)
    users = len({one.actor for one in rows})
    logger.info("monitor_log: %d queries by %d users", len(rows), users)
