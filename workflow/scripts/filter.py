"""Apply one output filter to every answer."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.runlog import run_log
from mragaudit.stages import filter as filter_stage

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    filter_stage.run(
        generations=Path(snakemake.input.generations),
        filtered=Path(snakemake.output.filtered),
        variant=snakemake.wildcards.filter,
    )
