"""Ask every query in every language."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import translate
from mragaudit.stages.jobs import ModelJob

if TYPE_CHECKING:
    from snakemake.script import snakemake

with (
    run_log(snakemake.log[0]),
    ModelJob(
        stage="translate",
        run=snakemake.wildcards.run,
        shard=snakemake.wildcards.shard,
        threads=snakemake.threads,
    ) as job,
):
    translate.run(
        documents=Path(snakemake.input.documents),
        queries=Path(snakemake.input.queries),
        all_queries=map(Path, snakemake.input.all_queries),
        translations=Path(snakemake.output.translations),
        repeats=Path(snakemake.output.repeats),
        job=job,
        settings=settings_from_slice(snakemake.params.settings),
    )
