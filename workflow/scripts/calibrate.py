"""Choose each judge variant's threshold."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import calibrate
from mragaudit.stages.jobs import ModelJob

if TYPE_CHECKING:
    from snakemake.script import snakemake

with (
    run_log(snakemake.log[0]),
    ModelJob(
        stage="calibrate",
        run=snakemake.wildcards.run,
        shard="all",
        threads=snakemake.threads,
        journal="judge.calibration",
    ) as job,
):
    calibrate.run(
        queries=[Path(path) for path in snakemake.input.queries],
        thresholds=Path(snakemake.output.thresholds),
        job=job,
        settings=settings_from_slice(snakemake.params.settings),
    )
