"""Write attacks, benign questions and judge controls."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import queries

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    queries.run(
        documents=Path(snakemake.input.documents),
        shards={Path(path).stem: Path(path) for path in snakemake.output.shards},
        settings=settings_from_slice(snakemake.params.settings),
    )
