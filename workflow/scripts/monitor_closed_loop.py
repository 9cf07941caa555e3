"""Replay attackers with throttling in force."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import monitor_closed_loop

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    monitor_closed_loop.run(
        traffic=Path(snakemake.input.traffic),
        counts=Path(snakemake.input.counts),
        delivered=Path(snakemake.output.delivered),
        settings=settings_from_slice(snakemake.params.settings),
    )
