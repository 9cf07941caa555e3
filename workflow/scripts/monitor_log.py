"""Read the user's access log as traffic."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import monitor_log

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    monitor_log.run(
        log=Path(snakemake.input.log),
        traffic=Path(snakemake.output.traffic),
        run_folder=Path("results", snakemake.wildcards.run),
        settings=settings_from_slice(snakemake.params.settings),
    )
