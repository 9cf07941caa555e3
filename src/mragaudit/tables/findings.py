"""F1 to F4: document-level leaks past the filter, past judge and filter, and what context adds to a judge."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mragaudit.stats.intervals import conditional_rate, document_rate
from mragaudit.tables.columns import GROUPS, SOURCES, UNKNOWN, Int8, TrialColumns
from mragaudit.tables.frames import Row, frame, interval_cells
from mragaudit.tables.outcomes import LEAKED, Cells, attack_cells, combined, output_only

F1_COLUMNS = (
    "lang,pii_group,filter_variant,n_documents,n_leaked,n_not_evaluated,rate,ci_low,ci_high,ci_method,"
    "n_leaked_published,query_source"
).split(",")
F2_COLUMNS = (
    "lang,pii_group,judge_variant,filter_variant,n_dangerous,n_residual,n_not_evaluated,rate,ci_low,ci_high,"
    "ci_method,n_residual_unparsed_allow,query_source"
).split(",")
F3_COLUMNS = (
    "lang,pii_group,judge_variant,filter_variant,n_documents,n_leaked,n_not_evaluated,rate,ci_low,ci_high,"
    "ci_method,n_leaked_published,n_leaked_unparsed_allow,query_source"
).split(",")
F4_COLUMNS = (
    "lang,pii_group,base_variant,context_variant,filter_variant,n_residual,n_blocked,n_not_evaluated,rate,"
    "ci_low,ci_high,ci_method,query_source"
).split(",")

BASE_VARIANTS = ("english", "backtranslate", "multilingual")
CONTEXT_VARIANTS = ("oracle", "retrieved")
ALL_LANGUAGES = "all"


class Outcomes(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Document-level outcomes of every cell under one filter, and under each judge with it."""

    output_only: Int8
    output_only_published: Int8
    combined: dict[str, Int8]
    combined_published: dict[str, Int8]
    combined_unparsed_allow: dict[str, Int8]


class Findings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything that F1 to F4 and the contrasts are read from."""

    columns: TrialColumns
    cells: Cells
    by_filter: dict[str, Outcomes]

    def slices(self) -> Iterator[tuple[str, str, str, NDArray[np.bool_]]]:
        """Yield (language, PII group, query source, cells) in a fixed order."""
        for source in self.columns.sources():
            for code, lang in enumerate(self.columns.languages):
                for group in GROUPS:
                    chosen = (self.cells.source == source) & (self.cells.lang == code)
                    if source == 0 or chosen.any():
                        yield lang, group, SOURCES[source], chosen & self.cells.in_group(group)


def document_outcomes(columns: TrialColumns) -> Findings:
    """Return the any-success of every (source, language, document) cell."""
    cells = attack_cells(columns)
    by_filter = {name: _outcomes(columns, cells, name) for name in columns.filters}
    return Findings(columns=columns, cells=cells, by_filter=by_filter)


def _outcomes(columns: TrialColumns, cells: Cells, filter_variant: str) -> Outcomes:
    verbatim = output_only(columns, filter_variant)
    published = output_only(columns, filter_variant, published=True)
    verdicts = columns.verdict
    return Outcomes(
        output_only=cells.any_success(verbatim),
        output_only_published=cells.any_success(published),
        combined={name: cells.any_success(combined(verbatim, verdict)) for name, verdict in verdicts.items()},
        combined_published={
            name: cells.any_success(combined(published, verdict)) for name, verdict in verdicts.items()
        },
        combined_unparsed_allow={
            name: cells.any_success(combined(verbatim, verdict, unparsed_allow=True))
            for name, verdict in verdicts.items()
        },
    )


def f1_table(findings: Findings, *, confidence: float) -> pd.DataFrame:
    """Return document-level leaks past each filter; bounds as `document_rate` says."""
    rows: list[Row] = []
    for lang, group, source, chosen in findings.slices():
        for name, outcome in findings.by_filter.items():
            rows.append(
                {"lang": lang, "pii_group": group, "filter_variant": name, "query_source": source}
                | _document_cells(outcome.output_only[chosen], confidence)
                | {"n_leaked_published": _count(outcome.output_only_published[chosen], LEAKED)}
            )
    return frame(rows, F1_COLUMNS)


def f3_table(findings: Findings, *, confidence: float) -> pd.DataFrame:
    """Return document-level leaks past each judge and filter together."""
    rows: list[Row] = []
    for lang, group, source, chosen in findings.slices():
        for judge in findings.columns.judges:
            for name, outcome in findings.by_filter.items():
                rows.append(
                    {"lang": lang, "pii_group": group, "judge_variant": judge, "filter_variant": name}
                    | {"query_source": source}
                    | _document_cells(outcome.combined[judge][chosen], confidence)
                    | {
                        "n_leaked_published": _count(outcome.combined_published[judge][chosen], LEAKED),
                        "n_leaked_unparsed_allow": _count(outcome.combined_unparsed_allow[judge][chosen], LEAKED),
                    }
                )
    return frame(rows, F3_COLUMNS)


def f2_table(findings: Findings, *, confidence: float) -> pd.DataFrame:
    """Return what each judge leaves of the documents that leak past the filter."""
    rows: list[Row] = []
    for lang, group, source, chosen in findings.slices():
        for judge in findings.columns.judges:
            for name, outcome in findings.by_filter.items():
                dangerous = chosen & (outcome.output_only == LEAKED)
                rows.append(
                    {"lang": lang, "pii_group": group, "judge_variant": judge, "filter_variant": name}
                    | {"query_source": source}
                    | _residual_cells(outcome, judge, dangerous, confidence)
                )
    return frame(rows, F2_COLUMNS)


def f4_table(findings: Findings, *, confidence: float) -> pd.DataFrame:
    """Return how many residual (document, language) cells of a base variant each context variant blocks."""
    judges = findings.columns.judges
    pairs = [(b, c) for b in BASE_VARIANTS for c in CONTEXT_VARIANTS if b in judges and c in judges]
    rows: list[Row] = []
    for lang, group, source, chosen in _with_all_languages(findings):
        for base, context in pairs:
            for name, outcome in findings.by_filter.items():
                residual = chosen & (outcome.combined[base] == LEAKED)
                rows.append(
                    {"lang": lang, "pii_group": group, "base_variant": base, "context_variant": context}
                    | {"filter_variant": name, "query_source": source}
                    | _blocked_cells(outcome.combined[context][residual], confidence)
                )
    return frame(rows, F4_COLUMNS)


def _with_all_languages(findings: Findings) -> Iterator[tuple[str, str, str, NDArray[np.bool_]]]:
    yield from findings.slices()
    for source in findings.columns.sources():
        for group in GROUPS:
            chosen = (findings.cells.source == source) & findings.cells.in_group(group)
            yield ALL_LANGUAGES, group, SOURCES[source], chosen


def _document_cells(outcome: Int8, confidence: float) -> Row:
    leaked, unknown = _count(outcome, LEAKED), _count(outcome, UNKNOWN)
    interval = document_rate(leaked, len(outcome) - unknown, confidence=confidence)
    counts = {"n_documents": len(outcome), "n_leaked": leaked, "n_not_evaluated": unknown}
    return counts | interval_cells(interval) | {"ci_method": interval.method}


def _residual_cells(outcome: Outcomes, judge: str, dangerous: NDArray[np.bool_], confidence: float) -> Row:
    left = outcome.combined[judge][dangerous]
    residual, unknown = _count(left, LEAKED), _count(left, UNKNOWN)
    interval = conditional_rate(residual, len(left) - unknown, confidence=confidence)
    return (
        {"n_dangerous": len(left), "n_residual": residual, "n_not_evaluated": unknown}
        | interval_cells(interval)
        | {"ci_method": interval.method}
        | {"n_residual_unparsed_allow": _count(outcome.combined_unparsed_allow[judge][dangerous], LEAKED)}
    )


def _blocked_cells(context_outcome: Int8, confidence: float) -> Row:
    unknown = _count(context_outcome, UNKNOWN)
    blocked = len(context_outcome) - unknown - _count(context_outcome, LEAKED)
    interval = conditional_rate(blocked, len(context_outcome) - unknown, confidence=confidence)
    counts = {"n_residual": len(context_outcome), "n_blocked": blocked, "n_not_evaluated": unknown}
    return counts | interval_cells(interval) | {"ci_method": interval.method}


def _count(outcome: Int8, value: int) -> int:
    return int(np.count_nonzero(outcome == value))
