"""Make the traffic of simulated users and attackers."""

from pathlib import Path
from typing import TYPE_CHECKING

from mragaudit.config import settings_from_slice
from mragaudit.runlog import run_log
from mragaudit.stages import monitor_traffic

if TYPE_CHECKING:
    from snakemake.script import snakemake

with run_log(snakemake.log[0]):
    monitor_traffic.run(
        documents=Path(snakemake.input.documents),
        translations=[Path(one) for one in snakemake.input.translations],
        retrieval=[Path(one) for one in snakemake.input.retrieval],
        index_folder=Path(snakemake.input.index),
        trials=Path(snakemake.input.trials) if snakemake.input.trials else None,
        traffic=Path(snakemake.output.traffic),
        part=snakemake.wildcards.seeds,
        settings=settings_from_slice(snakemake.params.settings),
    )
