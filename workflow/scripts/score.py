"""Bring all stages together, one row a trial."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import score

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    score.run(
        run_folder=Path("results", snakemake.wildcards.run),
        trials=Path(snakemake.output.trials),
        noise=Path(snakemake.output.noise),
        settings=settings_from_slice(snakemake.params.settings),
    )
