"""Stage `aggregate`: trials into tables; no model is needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from mragaudit.config import Settings
from mragaudit.errors import DataError
from mragaudit.randomness import generator_for
from mragaudit.records.base import iter_records, read_records, write_text
from mragaudit.records.repeats import RepeatPair, pair_key
from mragaudit.report.csv_safe import neutralise_cell
from mragaudit.stages.judging import off_label_uses
from mragaudit.tables.build import build_tables
from mragaudit.tables.columns import TrialRow, read_columns

logger = logging.getLogger(__name__)

FLOAT_FORMAT = "%.9g"


def run(*, trials: Path, noise: Path, tables: Mapping[str, Path], settings: Settings) -> None:
    """Write `tables/*.csv`."""
    columns = read_columns(
        iter_records(trials, TrialRow),
        languages=settings.languages,
        judges=settings.judge.variants,
        filters=settings.filter.variants,
    )
    built = build_tables(
        columns,
        pairs=read_records(noise, RepeatPair, key=pair_key),
        k=settings.retrieve.k,
        generator=lambda: generator_for(settings.seed, "aggregate"),
        resamples=settings.statistics.resamples,
        confidence=settings.statistics.confidence,
        off_label=off_label_uses(settings),
    )
    for name, path in tables.items():
        write_text(path, to_csv(built[name]))
    logger.info("aggregate: %d trials into %d tables", len(columns.lang), len(tables))


def to_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV: unknown is an empty cell, and no text cell can be read as a formula."""
    safe = table.copy()
    for name in safe.columns:
        if pd.api.types.is_string_dtype(safe[name]) or safe[name].dtype == object:
            safe[name] = [neutralise_cell(cell) if isinstance(cell, str) else cell for cell in safe[name]]
    return str(safe.to_csv(index=False, lineterminator="\n", float_format=FLOAT_FORMAT))


def read_table(path: Path) -> pd.DataFrame:
    """Return a table as `aggregate` wrote it: empty cells are missing values, `none` stays a word.

    Raises DataError for a file that is no table.
    """
    try:
        return pd.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:  # pandas' own errors of reading are of this kind, and those of decoding
        raise DataError(f"{path}: not readable as a table: {error}") from error
