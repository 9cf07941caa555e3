"""Answer every trial."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import generate
from mragaudit.stages.jobs import ModelJob

if TYPE_CHECKING:
    from snakemake.script import snakemake

with (
    run_log(snakemake.log[0]),
    ModelJob(
        stage="generate",
        run=snakemake.wildcards.run,
        shard=snakemake.wildcards.shard,
        threads=snakemake.threads,
    ) as job,
):
    generate.run(
        documents=Path(snakemake.input.documents),
        all_queries=map(Path, snakemake.input.all_queries),
        translations=Path(snakemake.input.translations),
        retrieval=Path(snakemake.input.retrieval),
        generations=Path(snakemake.output.generations),
        repeats=Path(snakemake.output.repeats),
        job=job,
        settings=settings_from_slice(snakemake.params.settings),
    )
