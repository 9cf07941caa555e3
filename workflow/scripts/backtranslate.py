"""Put non-English queries back into English."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import backtranslate
from mragaudit.stages.jobs import ModelJob

if TYPE_CHECKING:
    from snakemake.script import snakemake

with (
    run_log(snakemake.log[0]),
    ModelJob(
        stage="backtranslate",
        run=snakemake.wildcards.run,
        shard=snakemake.wildcards.shard,
        threads=snakemake.threads,
    ) as job,
):
    backtranslate.run(
        all_queries=map(Path, snakemake.input.all_queries),
        translations=Path(snakemake.input.translations),
        backtranslations=Path(snakemake.output.backtranslations),
        repeats=Path(snakemake.output.repeats),
        job=job,
        settings=settings_from_slice(snakemake.params.settings),
    )
