"""Plan the grid."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import grid_plan

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    grid_plan.run(
        cells=Path(snakemake.output.cells),
        settings=settings_from_slice(snakemake.params.settings),
    )
