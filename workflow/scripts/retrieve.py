"""Retrieve the top k documents for every trial."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import retrieve
from mragaudit.stages.jobs import ModelJob

if TYPE_CHECKING:
    from snakemake.script import snakemake

with (
    run_log(snakemake.log[0]),
    ModelJob(
        stage="retrieve",
        run=snakemake.wildcards.run,
        shard=snakemake.wildcards.shard,
        threads=snakemake.threads,
    ) as job,
):
    retrieve.run(
        translations=Path(snakemake.input.translations),
        index_folder=Path(snakemake.input.index),
        retrieval=Path(snakemake.output.retrieval),
        job=job,
        settings=settings_from_slice(snakemake.params.settings),
    )
