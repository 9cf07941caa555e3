"""Replay traffic through the monitor."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import monitor_replay

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    monitor_replay.run(
        traffic=Path(snakemake.input.traffic),
        counts=Path(snakemake.output.counts),
        settings=settings_from_slice(snakemake.params.settings),
    )
