"""Bundle a finished grid and say its root digest."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.bundle.kinds import HOOK_AUDIT
from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import bundle

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    bundle.run(
        run_folder=Path("results", snakemake.params.run, HOOK_AUDIT.below),
        archive=Path(snakemake.output.archive),
        settings=settings_from_slice(snakemake.params.settings),
        kind=HOOK_AUDIT,
    )
