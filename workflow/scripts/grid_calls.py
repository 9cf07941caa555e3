"""Attack every arm."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import grid_calls
from mragaudit.stages.jobs import ModelJob

if TYPE_CHECKING:
    from snakemake.script import snakemake

with (
    run_log(snakemake.log[0]),
    ModelJob(
        stage="grid_calls",
        run=f"{snakemake.wildcards.run}/hook_audit",
        shard=snakemake.wildcards.shard,
        threads=snakemake.threads,
    ) as job,
):
    grid_calls.run(
        cells=Path(snakemake.input.cells),
        documents=Path(snakemake.input.documents),
        calls=Path(snakemake.output.calls),
        uses=Path(snakemake.output.uses),
        job=job,
        settings=settings_from_slice(snakemake.params.settings),
    )
