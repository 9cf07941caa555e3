"""Two runs side by side as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pandas as pd

from mragaudit.stages.compare import Comparison
from mragaudit.tables.comparison import DIFFERENCE, IN_A, IN_B, SIDE, differing

MAIN_COLUMNS: dict[str, str | None] = {
    "rate": "",
    "share": None,
    "recall_at_k": "recall_",
    "block_rate": "block_",
    "anchor_kept_rate": None,
    "difference": "",
    "n_first_stop": None,
}
"""What the terminal shows of a table, the first that it has, and the prefix of its interval's columns."""
DENOMINATORS = ("n_documents", "n_dangerous", "n_residual", "n_trials", "n_attack", "n_benign", "n")
HEADLINE_FILTER = "regex_ascii"
HEADLINE_JUDGE = "english"
HEADLINE_GROUPS = ("unstructured", "all")
PAIRED_SHOWN = (
    "outcome,lang,pii_group,query_source,n_documents,n_a,n_b,difference,ci_low,ci_high,ci_method,p_value,p_holm,"
    "n_not_evaluated"
).split(",")
MOST_ROWS = 12
MOST_CHARS = 60


def render_comparison(done: Comparison) -> str:
    """Return what differs, as text: settings, the paired headline, and of each table the rows that differ."""
    lines = [f"A: {done.a}", f"B: {done.b}", "every difference is B minus A", "", *_settings(done), ""]
    lines += [
        f"documents: {done.n_common} the same in both, {done.n_only_a} only in A, {done.n_only_b} only in B, "
        f"{done.n_changed} of one id with another content",
        "",
        *_paired(done),
    ]
    for name, table in done.tables.items():
        lines += ["", *_table(name, table)]
    if done.missing:
        lines += ["", f"not in both runs: {', '.join(done.missing)}"]
    return "\n".join(lines)


def render_json(done: Comparison) -> str:
    """Return everything as JSON; unknown is null."""
    whole: dict[str, Any] = {name: getattr(done, name) for name in Comparison.__struct_fields__}
    whole |= {"settings": msgspec.to_builtins(done.settings), "paired": _records(done.paired)}
    whole["tables"] = {name: _records(table) for name, table in done.tables.items()}
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table; pandas turns its own kinds of missing into null."""
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15))
    return rows


def _settings(done: Comparison) -> Iterator[str]:
    if not done.settings:
        yield "settings, models and versions are the same"
        return
    yield "settings, models and versions that differ:"
    for one in done.settings:
        yield f"  {one.key}: {_short(one.a)} | {_short(one.b)}"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}..."


def _paired(done: Comparison) -> Iterator[str]:
    """Yield the headline's filter and judge, or the first that both runs have."""
    table = done.paired
    output_filter = _headline(table["filter_variant"], HEADLINE_FILTER)
    judge = _headline(table["judge_variant"], HEADLINE_JUDGE)
    chosen = table["filter_variant"].isin(["", output_filter]) & table["judge_variant"].isin(["", judge])
    rows = table[chosen & table["pii_group"].isin(HEADLINE_GROUPS)]
    yield (
        f"paired over the common documents: filter {output_filter}, judge {judge}, {done.confidence:g} intervals, "
        f"{done.resamples} resamples, exact McNemar, Holm over languages ({len(rows)} of {len(table)} rows; "
        "--csv and --json have all)"
    )
    yield _text(rows[PAIRED_SHOWN])


def _headline(names: pd.Series[str], wanted: str) -> str:
    found = [name for name in names.unique() if name not in ("", "none")]
    return wanted if wanted in found else next(iter(found), "none")


def _table(name: str, table: pd.DataFrame) -> Iterator[str]:
    unlike = differing(table)
    counts = table[SIDE].value_counts()
    sides = ", ".join(f"{counts.get(side, 0)} {words}" for side, words in _SIDES.items())
    yield f"{name}: {sides}; {len(unlike)} rows differ"
    main = next((column for column in MAIN_COLUMNS if column + IN_A in table.columns), None)
    if unlike.empty or main is None:
        return
    # The largest differences first; rows that one side lacks or that differ in other columns alone come last.
    largest = unlike[main + DIFFERENCE].abs().astype(float).sort_values(ascending=False, kind="stable").index
    yield _text(_shown(unlike.loc[largest[:MOST_ROWS]], main))
    if len(unlike) > MOST_ROWS:
        yield f"... and {len(unlike) - MOST_ROWS} more"


def _shown(table: pd.DataFrame, main: str) -> pd.DataFrame:
    """Return what a row is about, the main figure on both sides with what belongs to it, and its difference."""
    values = [column for column in table.columns if column.endswith((IN_A, IN_B, DIFFERENCE))]
    rows = table.to_dict("records")
    sides = {name: [_figure(row, main, end=end) for row in rows] for name, end in (("A", IN_A), ("B", IN_B))}
    return table[[column for column in table.columns if column not in values]].assign(
        **sides, difference=table[main + DIFFERENCE], of=main
    )


def _figure(row: Mapping[Any, Any], main: str, *, end: str) -> str:
    """Return a figure with its interval, the interval's name, denominator and not-evaluated count."""
    cell = row[main + end]
    if pd.isna(cell):
        return "-"
    parts = [f"{cell:.4g}"]
    prefix = MAIN_COLUMNS[main]
    if prefix is not None:
        low, high, method = (row.get(name + end) for name in (f"{prefix}ci_low", f"{prefix}ci_high", "ci_method"))
        parts.append("" if pd.isna(low) else f"[{low:.4g}, {high:.4g}] {method}")
    n = next((row[name + end] for name in DENOMINATORS if name + end in row), None)
    lost = row.get(f"n_not_evaluated{end}")
    parts.append("" if n is None else f"n = {n}")
    parts.append("" if lost is None else f"({lost} not evaluated)")
    return " ".join(part for part in parts if part)


_SIDES = {"both": "rows in both", "a": "only in A", "b": "only in B"}


def _text(table: pd.DataFrame) -> str:
    return str(table.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.4g}"))
