"""Judge every trial in every variant."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import judge
from mragaudit.stages.jobs import ModelJob

if TYPE_CHECKING:
    from snakemake.script import snakemake

with (
    run_log(snakemake.log[0]),
    ModelJob(
        stage="judge", run=snakemake.wildcards.run, shard=snakemake.wildcards.shard, threads=snakemake.threads
    ) as job,
):
    judge.run(
        inputs=judge.Inputs(
            documents=Path(snakemake.input.documents),
            queries=Path(snakemake.input.queries),
            all_queries=[Path(path) for path in snakemake.input.all_queries],
            translations=Path(snakemake.input.translations),
            backtranslations=Path(snakemake.input.backtranslations),
            retrieval=Path(snakemake.input.retrieval),
            thresholds=Path(snakemake.input.thresholds),
        ),
        outputs={Path(path).parent.name: Path(path) for path in snakemake.output.variants},
        repeats=Path(snakemake.output.repeats),
        job=job,
        settings=settings_from_slice(snakemake.params.settings),
    )
