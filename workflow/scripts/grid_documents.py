"""Make the grid's corpora and canaries."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import grid_documents

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    grid_documents.run(
        documents=Path(snakemake.output.documents),
        splits=Path(snakemake.output.splits),
        settings=settings_from_slice(snakemake.params.settings),
    )
