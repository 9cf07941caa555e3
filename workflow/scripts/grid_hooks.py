"""Audit the hooks of the defenses."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import grid_hooks

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    grid_hooks.run(
        hooks=Path(snakemake.output.hooks),
        settings=settings_from_slice(snakemake.params.settings),
    )
