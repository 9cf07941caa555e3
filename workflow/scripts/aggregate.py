"""Aggregate trials into tables."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import aggregate

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    aggregate.run(
        trials=Path(snakemake.input.trials),
        noise=Path(snakemake.input.noise),
        tables={name: Path(path) for name, path in snakemake.output.items()},
        settings=settings_from_slice(snakemake.params.settings),
    )
