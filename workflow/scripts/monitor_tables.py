"""Evaluate the monitor's replay."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import monitor_tables

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    monitor_tables.run(
        traffic=[Path(one) for one in snakemake.input.traffic],
        counts=[Path(one) for one in snakemake.input.counts],
        delivered=Path(snakemake.input.delivered),
        tables={name: Path(path) for name, path in snakemake.output.items()},
        settings=settings_from_slice(snakemake.params.settings),
    )
