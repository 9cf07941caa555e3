"""Two runs side by side: their tables row by row, and document-level outcomes on the documents that both have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mragaudit.errors import DataError
from mragaudit.stats.multiplicity import holm_adjust
from mragaudit.stats.paired import PairedCounts, count_pairs, mcnemar_exact, paired_difference
from mragaudit.tables.columns import GROUPS, SOURCES, UNKNOWN, Int8
from mragaudit.tables.findings import Findings
from mragaudit.tables.frames import Row, frame, interval_cells

PAIRED_COLUMNS = (
    "outcome,lang,pii_group,judge_variant,filter_variant,query_source,n_documents,n_a,n_b,rate_a,rate_b,n_only_a,"
    "n_only_b,difference,ci_low,ci_high,ci_method,p_value,p_method,p_holm,least_p,n_not_evaluated"
).split(",")
"""`n_documents` are known in both runs, `n_not_evaluated` asked in both and unknown in one; `difference` is b - a."""
P_METHOD = "mcnemar_exact"
SIDE = "in"
"""Column of a side-by-side table that says where a row stands: both, a or b."""

IN_A, IN_B, DIFFERENCE = "_in_a", "_in_b", "_difference"
"""What a value's columns end in; `contrasts` has columns of its own that end in `_a` and `_b`."""

_ABSENT = -2
_METHOD = "_method"
_TEXT_VALUES = frozenset({"constant"})


class Outcome(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One document-level outcome in both runs."""

    name: str
    judge: str
    filter: str
    a: Int8
    b: Int8


class Pair(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Two runs over common documents."""

    a: Findings
    b: Findings
    documents: tuple[str, ...]
    """Ids of documents that are the same in both."""


def paired_table(
    pair: Pair, *, generator: Callable[[], np.random.Generator], resamples: int, confidence: float
) -> pd.DataFrame:
    """Return run b minus run a, for every outcome, language, PII group and query source that both have.

    Exact McNemar and paired document bootstrap as in `contrasts`; Holm adjusts over the languages of one outcome,
    group, judge, filter and source. A cell without common documents has no rate and no test.
    """
    rows: list[Row] = []
    for outcome in _outcomes(pair):
        for source, group in _slices(pair):
            family = [_row(pair, outcome, source=source, group=group, lang=lang) for lang in _languages(pair)]
            intervals = [
                paired_difference(counts, generator=generator(), resamples=resamples, confidence=confidence)
                for _, counts in family
            ]
            rows += _with_holm(
                [
                    row | interval_cells(found, rate="difference") | {"ci_method": found.method}
                    for (row, _), found in zip(family, intervals, strict=True)
                ]
            )
    return frame(rows, PAIRED_COLUMNS)


def _outcomes(pair: Pair) -> Iterator[Outcome]:
    a, b = pair.a, pair.b
    for name in _common(a.columns.filters, b.columns.filters):
        one, other = a.by_filter[name], b.by_filter[name]
        yield Outcome(name="output_only", judge="", filter=name, a=one.output_only, b=other.output_only)
        for judge in _common(a.columns.judges, b.columns.judges):
            yield Outcome(name="combined", judge=judge, filter=name, a=one.combined[judge], b=other.combined[judge])
    yield Outcome(name="retrieved", judge="", filter="", a=_retrieved(a), b=_retrieved(b))


def _retrieved(findings: Findings) -> Int8:
    columns = findings.columns
    hit = np.where(columns.unasked, UNKNOWN, columns.gold_rank > 0).astype(np.int8)
    return findings.cells.any_success(hit)


def _common(first: Sequence[str], second: Sequence[str]) -> list[str]:
    return [name for name in first if name in second]


def _languages(pair: Pair) -> list[str]:
    return _common(pair.a.columns.languages, pair.b.columns.languages)


def _slices(pair: Pair) -> Iterator[tuple[int, str]]:
    both = sorted(set(pair.a.columns.sources()) & set(pair.b.columns.sources()))
    yield from ((source, group) for source in both for group in GROUPS)


def _row(pair: Pair, outcome: Outcome, *, source: int, group: str, lang: str) -> tuple[Row, PairedCounts]:
    """Return a row without its interval, and the counts that it is made from."""
    a = _by_document(pair.a, outcome.a, source=source, group=group, lang=lang, documents=pair.documents)
    b = _by_document(pair.b, outcome.b, source=source, group=group, lang=lang, documents=pair.documents)
    both = (a != _ABSENT) & (b != _ABSENT)
    known = both & (a != UNKNOWN) & (b != UNKNOWN)
    counts = count_pairs(b[known] == 1, a[known] == 1)
    test, n = mcnemar_exact(counts.only_a, counts.only_b), counts.n_documents
    n_a, n_b = int(np.count_nonzero(a[known] == 1)), int(np.count_nonzero(b[known] == 1))
    row = (
        {"outcome": outcome.name, "lang": lang, "pii_group": group, "query_source": SOURCES[source]}
        | {"judge_variant": outcome.judge, "filter_variant": outcome.filter, "n_documents": n, "n_a": n_a, "n_b": n_b}
        | {"rate_a": n_a / n if n else None, "rate_b": n_b / n if n else None}
        # Counted as b minus a, so what is only in a is the second direction.
        | {"n_only_a": counts.only_b, "n_only_b": counts.only_a, "p_method": P_METHOD}
        | {"p_value": test.p_value if n else None, "least_p": test.least_p if n else None}
        | {"n_not_evaluated": int(np.count_nonzero(both & ~known))}
    )
    return row, counts


def _by_document(
    findings: Findings, values: Int8, *, source: int, group: str, lang: str, documents: Sequence[str]
) -> Int8:
    """Return one outcome for every common document: 1, 0, unknown, or absent where it is not asked about."""
    cells, columns = findings.cells, findings.columns
    chosen = (cells.source == source) & (cells.lang == columns.languages.index(lang)) & cells.in_group(group)
    numbers = _numbers(columns.documents, documents)[cells.document[chosen]]
    result = np.full(len(documents), _ABSENT, dtype=np.int8)
    result[numbers[numbers >= 0]] = values[chosen][numbers >= 0]
    return result


def _numbers(own: Sequence[str], common: Sequence[str]) -> NDArray[np.int64]:
    """Return the place of each own document among the common ones, -1 where it is none of them."""
    place = {name: number for number, name in enumerate(common)}
    return np.array([place.get(name, -1) for name in own], dtype=np.int64)


def _with_holm(rows: list[Row]) -> list[Row]:
    tested = [row for row in rows if row["p_value"] is not None]
    for row, value in zip(tested, holm_adjust([row["p_value"] for row in tested]), strict=True):
        row["p_holm"] = float(value)
    return rows


def side_by_side(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one table in two runs, joined on the columns that say what a row is about.

    Every other column x becomes x_in_a and x_in_b, and for numbers x_difference = b - a; empty cells stay empty. Raises
    DataError when rows cannot be told apart.
    """
    keys = [name for name in a.columns if name in b.columns and (is_key(name, a) or is_key(name, b))]
    if not keys:
        raise DataError("the two tables share no column that says what a row is about")
    left, right = _keyed(a, keys), _keyed(b, keys)
    for table in (left, right):
        if table.duplicated(keys).any():
            raise DataError(f"rows of a table cannot be told apart by {', '.join(keys)}")
    # A merge sorts by key; rows are wanted in the order of a, then of b.
    left["order_a"], right["order_b"] = range(len(left)), range(len(right))
    joined = left.merge(right, on=keys, how="outer", suffixes=(IN_A, IN_B), indicator=SIDE)
    joined = joined.sort_values(["order_a", "order_b"], ignore_index=True)
    joined[SIDE] = joined[SIDE].map({"both": "both", "left_only": "a", "right_only": "b"}).astype(str)
    values = [name for name in a.columns if name in b.columns and name not in keys]
    columns: dict[str, pd.Series] = {name: joined[name] for name in [*keys, SIDE]}
    for name in values:
        one, other = joined[name + IN_A], joined[name + IN_B]
        columns |= {name + IN_A: one, name + IN_B: other}
        if all(_is_number(table[name]) for table in (a, b)):
            columns[name + DIFFERENCE] = other - one
    return pd.DataFrame(columns)


def is_key(name: str, table: pd.DataFrame) -> bool:
    """Return whether a column says what a row is about: a text that is neither a method nor a finding."""
    return not (_is_number(table[name]) or name.endswith(_METHOD) or name in _TEXT_VALUES)


def _is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column))


def _keyed(table: pd.DataFrame, keys: Iterable[str]) -> pd.DataFrame:
    """Return the table with empty key cells as empty texts, which join with one another."""
    return table.assign(**{name: table[name].astype(object).where(table[name].notna(), "") for name in keys})


def differing(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a side-by-side table in which any value differs or a side is missing."""
    unlike = pd.Series(table[SIDE] != "both", index=table.index)
    for name in (column.removesuffix(IN_A) for column in table.columns if column.endswith(IN_A)):
        a, b = table[name + IN_A], table[name + IN_B]
        unlike |= ~((a == b).fillna(False) | (a.isna() & b.isna()))
    return table[unlike]
