"""Plant documents, or take the user's own."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import corpus

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    corpus.run(
        documents=Path(snakemake.output.documents),
        run_folder=Path("results", snakemake.wildcards.run),
        settings=settings_from_slice(snakemake.params.settings),
    )
