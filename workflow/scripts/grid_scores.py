"""Score the grid."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import grid_scores

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    grid_scores.run(
        run_folder=Path("results", snakemake.wildcards.run),
        calls=[Path(name) for name in snakemake.input.calls],
        settings=settings_from_slice(snakemake.params.settings),
    )
