"""Write the grid's manifest."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import manifest

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    manifest.run(
        run_folder=Path("results", snakemake.wildcards.run, "hook_audit"),
        manifest=Path(snakemake.output.manifest),
        settings=settings_from_slice(snakemake.params.settings),
    )
