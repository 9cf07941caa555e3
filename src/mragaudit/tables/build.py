"""All twelve tables of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from mragaudit.records.repeats import RepeatPair
from mragaudit.tables.columns import TrialColumns
from mragaudit.tables.contrasts import contrasts_table
from mragaudit.tables.findings import document_outcomes, f1_table, f2_table, f3_table, f4_table
from mragaudit.tables.funnel import funnel_tables
from mragaudit.tables.noise import noise_table
from mragaudit.tables.trial_rates import (
    Bootstrap,
    judges_table,
    retrieval_table,
    translation_table,
    utility_table,
)


def build_tables(
    columns: TrialColumns,
    *,
    pairs: Sequence[RepeatPair],
    k: int,
    generator: Callable[[], np.random.Generator],
    resamples: int,
    confidence: float,
    off_label: Mapping[tuple[str, str], str] | None = None,
) -> dict[str, pd.DataFrame]:
    """Return the tables by name.

    `generator` gives a fresh generator at each call: no interval depends on which others were made before it.
    `off_label` as in judges_table; None where no guard model judges.
    """
    how = Bootstrap(generator=generator, resamples=resamples, confidence=confidence)
    findings = document_outcomes(columns)
    funnel, stops = funnel_tables(columns)
    return {
        "f1_output_only": f1_table(findings, confidence=confidence),
        "f2_conditional": f2_table(findings, confidence=confidence),
        "f3_combined": f3_table(findings, confidence=confidence),
        "f4_context": f4_table(findings, confidence=confidence),
        "funnel": funnel,
        "stops": stops,
        "retrieval": retrieval_table(columns, k=k, how=how),
        "judges": judges_table(columns, how=how, off_label=off_label or {}),
        "utility": utility_table(columns, how=how),
        "translation": translation_table(columns, how=how),
        "contrasts": contrasts_table(findings, generator=generator, resamples=resamples, confidence=confidence),
        "noise": noise_table(pairs, languages=columns.languages, judges=columns.judges, confidence=confidence),
    }
