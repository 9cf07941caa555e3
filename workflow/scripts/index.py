"""Embed the documents and store the index."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import index
from mragaudit.stages.jobs import ModelJob

if TYPE_CHECKING:
    from snakemake.script import snakemake

with (
    run_log(snakemake.log[0]),
    ModelJob(stage="index", run=snakemake.wildcards.run, shard="all", threads=snakemake.threads) as job,
):
    index.run(
        documents=Path(snakemake.input.documents),
        folder=Path(snakemake.output.index),
        job=job,
        settings=settings_from_slice(snakemake.params.settings),
    )
