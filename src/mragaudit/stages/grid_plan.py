"""Stage `grid_plan`: the cells of the hook audit's grid."""

from __future__ import annotations

import logging
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.grid.cells import cells_to_run, plan_cells
from mragaudit.records.base import write_records
from mragaudit.records.grid import cell_key

logger = logging.getLogger(__name__)


def run(*, cells: Path, settings: Settings) -> None:
    """Write `hook_audit/cells.jsonl`."""
    planned = plan_cells(settings.hook_audit)
    write_records(cells, planned, key=cell_key)
    logger.info("grid_plan: %d cells, of which %d are run", len(planned), len(cells_to_run(planned)))
