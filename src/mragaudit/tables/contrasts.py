"""Paired contrasts of languages over the same documents: exact McNemar, paired bootstrap, Holm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import msgspec
import numpy as np
import pandas as pd

from mragaudit.stats.multiplicity import holm_adjust
from mragaudit.stats.paired import PairedCounts, count_pairs, mcnemar_exact, paired_difference
from mragaudit.tables.columns import SOURCES, UNKNOWN, Int8
from mragaudit.tables.findings import Findings
from mragaudit.tables.frames import Row, frame, interval_cells

CONTRASTS_COLUMNS = (
    "family,outcome,pii_group,judge_variant,filter_variant,lang_a,lang_b,n_documents,n_discordant,difference,"
    "ci_low,ci_high,ci_method,p_value,p_method,p_holm,least_p,n_not_evaluated,query_source"
).split(",")

PII_GROUP = "unstructured"
P_METHOD = "mcnemar_exact"
REFERENCE = "en"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One document-level outcome that languages are compared on."""

    name: str
    judge: str
    filter: str
    values: Int8


def contrasts_table(
    findings: Findings, *, generator: Callable[[], np.random.Generator], resamples: int, confidence: float
) -> pd.DataFrame:
    """Return two families an outcome: English against each other language (primary), and all pairs.

    Documents known in both languages are compared; Holm adjusts within a family of one outcome and query source.
    """
    rows: list[Row] = []
    for source in findings.columns.sources():
        for outcome in _outcomes(findings):
            for family, pairs in _families(findings.columns.languages):
                rows += _family(
                    findings,
                    source,
                    outcome,
                    pairs,
                    name=family,
                    interval=lambda pair: (
                        interval_cells(
                            found := paired_difference(
                                pair, generator=generator(), resamples=resamples, confidence=confidence
                            ),
                            rate="difference",
                        )
                        | {"ci_method": found.method}
                    ),
                )
    return frame(rows, CONTRASTS_COLUMNS)


def _outcomes(findings: Findings) -> Iterator[Outcome]:
    """Yield the outcomes of the primary judge and filter: `english` and `regex_ascii`, else the first there is."""
    columns = findings.columns
    real = [name for name in columns.filters if name != "none"] or list(columns.filters)
    chosen = "regex_ascii" if "regex_ascii" in real else real[0]
    by_filter = findings.by_filter[chosen]
    yield Outcome(name="output_only", judge="", filter=chosen, values=by_filter.output_only)
    if columns.judges:
        judge = "english" if "english" in columns.judges else columns.judges[0]
        yield Outcome(name="combined", judge=judge, filter=chosen, values=by_filter.combined[judge])
    hit = (columns.gold_rank > 0).astype(np.int8)
    retrieved = np.where(columns.unasked, UNKNOWN, hit).astype(np.int8)
    yield Outcome(name="retrieved", judge="", filter="", values=findings.cells.any_success(retrieved))


def _families(languages: tuple[str, ...]) -> list[tuple[str, list[tuple[str, str]]]]:
    others = [lang for lang in languages if lang != REFERENCE]
    return [
        ("primary", [(REFERENCE, lang) for lang in others]),
        ("all_pairs", list(combinations((REFERENCE, *others), 2))),
    ]


def _family(
    findings: Findings,
    source: int,
    outcome: Outcome,
    pairs: list[tuple[str, str]],
    *,
    name: str,
    interval: Callable[[PairedCounts], Row],
) -> list[Row]:
    rows: list[Row] = []
    for lang_a, lang_b in pairs:
        pair, n_unknown = _pair(findings, source, outcome.values, lang_a, lang_b)
        test = mcnemar_exact(pair.only_a, pair.only_b)
        known = pair.n_documents > 0
        rows.append(
            {"family": name, "outcome": outcome.name, "pii_group": PII_GROUP, "query_source": SOURCES[source]}
            | {"judge_variant": outcome.judge, "filter_variant": outcome.filter}
            | {"lang_a": lang_a, "lang_b": lang_b, "n_documents": pair.n_documents}
            | {"n_discordant": test.n_discordant, "n_not_evaluated": n_unknown, "p_method": P_METHOD}
            | {"p_value": test.p_value if known else None, "least_p": test.least_p if known else None}
            | interval(pair)
        )
    return _with_holm(rows)


def _with_holm(rows: list[Row]) -> list[Row]:
    """Add adjusted p-values; a pair without documents is no test and does not count in the family."""
    tested = [row for row in rows if row["p_value"] is not None]
    adjusted = holm_adjust([row["p_value"] for row in tested])
    for row, value in zip(tested, adjusted, strict=True):
        row["p_holm"] = float(value)
    return rows


def _pair(findings: Findings, source: int, values: Int8, lang_a: str, lang_b: str) -> tuple[PairedCounts, int]:
    """Return the paired counts over documents asked in both languages, and how many of them are unknown."""
    a, b = (_by_document(findings, source, values, lang) for lang in (lang_a, lang_b))
    absent = -2
    both = (a != absent) & (b != absent)
    known = both & (a != UNKNOWN) & (b != UNKNOWN)
    counts = count_pairs(a[known] == 1, b[known] == 1)
    return counts, int(np.count_nonzero(both & ~known))


def _by_document(findings: Findings, source: int, values: Int8, lang: str) -> Int8:
    """Return one language's outcome for every document, -2 for documents that it does not ask about."""
    cells = findings.cells
    chosen = (cells.source == source) & (cells.lang == findings.columns.languages.index(lang))
    chosen &= cells.in_group(PII_GROUP)
    result = np.full(len(findings.columns.documents), -2, dtype=np.int8)
    result[cells.document[chosen]] = values[chosen]
    return result
