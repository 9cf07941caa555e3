"""The tables as the page prints them: chosen rows, columns in words, unknown never as 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import pandas as pd

from mragaudit.report import words
from mragaudit.report.flow import flows, select, values_of
from mragaudit.report.model import Finding, Published, ReportInput
from mragaudit.tables.columns import SOURCES
from mragaudit.tables.funnel import ESCAPED, stage_order

Row: TypeAlias = Mapping[Any, Any]


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One printed column."""

    header: str
    show: Callable[[Row], str]
    numeric: bool = True


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One printed cell."""

    text: str
    numeric: bool


class TableView(msgspec.Struct, frozen=True, kw_only=True):
    """One printed table."""

    caption: str
    headers: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


def view(frame: pd.DataFrame, columns: Sequence[Column], *, caption: str) -> TableView:
    """Return the rows of a frame as printed cells; a `queries` column where several sources stand apart."""
    wanted = list(columns)
    if len(values_of(frame, "query_source")) > 1:
        wanted.insert(1, text_column("queries", "query_source"))
    rows = [
        tuple(Cell(text=column.show(row), numeric=column.numeric) for column in wanted)
        for row in frame.to_dict("records")
    ]
    headers = tuple(Cell(text=column.header, numeric=column.numeric) for column in wanted)
    return TableView(caption=caption, headers=headers, rows=tuple(rows))


def text_column(header: str, key: str) -> Column:
    """Return a column of words; a dash where a cell holds nothing."""

    def show(row: Row) -> str:
        return words.MISSING if words.is_missing(row[key]) else str(row[key])

    return Column(header=header, show=show, numeric=False)


def count_column(header: str, key: str) -> Column:
    """Return a column of whole numbers."""
    return Column(header=header, show=lambda row: words.as_count(row[key]))


def share_column(header: str, key: str) -> Column:
    """Return a column of shares."""
    return Column(header=header, show=lambda row: words.as_share(row[key]))


def _evaluated(key: str) -> Callable[[Row], int]:
    return lambda row: int(row[key]) - int(row["n_not_evaluated"])


def rate_columns(total: str, *, hits: str, label: str) -> list[Column]:
    """Return n, not evaluated, hits, rate and interval; `total` and `hits` name columns of the table."""
    n = _evaluated(total)
    return [
        Column(header="n", show=lambda row: words.as_count(n(row))),
        count_column("not evaluated", "n_not_evaluated"),
        count_column(label, hits),
        Column(header="rate", show=lambda row: words.as_rate(row["rate"], n=n(row))),
        Column(
            header="interval",
            show=lambda row: words.as_interval(row["ci_low"], row["ci_high"], method=row["ci_method"]),
        ),
        Column(header="kind of interval", show=lambda row: words.method_in_words(row["ci_method"]), numeric=False),
    ]


LANG = text_column("language", "lang")
GROUP = text_column("PII", "pii_group")
JUDGE = text_column("judge", "judge_variant")
FILTER = text_column("filter", "filter_variant")
PUBLISHED_COUNT = count_column("leaked, published rule", "n_leaked_published")
F1_COLUMNS = (
    LANG,
    GROUP,
    FILTER,
    *rate_columns("n_documents", hits="n_leaked", label="leaked"),
    PUBLISHED_COUNT,
)
F2_COLUMNS = (
    LANG,
    GROUP,
    JUDGE,
    FILTER,
    *rate_columns("n_dangerous", hits="n_residual", label="still leaking"),
    count_column("if UNPARSED passes", "n_residual_unparsed_allow"),
)
F3_COLUMNS = (
    LANG,
    GROUP,
    JUDGE,
    FILTER,
    *rate_columns("n_documents", hits="n_leaked", label="leaked"),
    PUBLISHED_COUNT,
    count_column("if UNPARSED passes", "n_leaked_unparsed_allow"),
)
F4_COLUMNS = (
    LANG,
    GROUP,
    text_column("base judge", "base_variant"),
    text_column("judge with documents", "context_variant"),
    FILTER,
    *rate_columns("n_residual", hits="n_blocked", label="blocked"),
)
UTILITY_COLUMNS = (
    LANG,
    JUDGE,
    FILTER,
    *rate_columns("n_benign", hits="n_answered_correctly", label="answered correctly"),
)


def _limits(header: str, *, rate: str, bounds: str, n: str, method: str) -> list[Column]:
    def interval(row: Row) -> str:
        low, high = row[f"{bounds}_ci_low"], row[f"{bounds}_ci_high"]
        return words.as_interval(low, high, method=row[method])

    return [
        Column(header=header, show=lambda row: words.as_rate(row[rate], n=int(row[n]))),
        Column(header="interval", show=interval),
        Column(header="kind", show=lambda row: words.method_in_words(row[method]), numeric=False),
    ]


def _yes_no(key: str) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        if words.is_missing(row[key]):
            return words.MISSING
        return "yes" if str(row[key]).lower() in {"true", "1", "1.0"} else "no"

    return show


JUDGE_COLUMNS = (
    LANG,
    JUDGE,
    count_column("attacks", "n_attack"),
    *_limits("blocked", rate="block_rate", bounds="block", n="n_attack_evaluated", method="ci_method"),
    count_column("benign", "n_benign"),
    *_limits(
        "false positives", rate="false_positive_rate", bounds="fpr", n="n_benign_evaluated", method="fpr_ci_method"
    ),
    Column(header="kind of interval", show=lambda row: words.method_in_words(row["ci_method"]), numeric=False),
    count_column("unparsed", "n_unparsed"),
    count_column("not evaluated", "n_not_evaluated"),
)
CONTROL_COLUMNS = (
    LANG,
    JUDGE,
    count_column("controls", "n_controls"),
    count_column("benign, held out", "n_check_benign"),
    count_column("of these blocked", "n_check_blocked"),
    *_limits(
        "control false positives",
        rate="control_fpr",
        bounds="control_fpr",
        n="n_check_benign",
        method="control_ci_method",
    ),
    share_column("AUC, controls", "auc"),
    share_column("AUC, trials", "auc_trials"),
    Column(header="constant", show=_yes_no("constant"), numeric=False),
)
TRANSLATION_COLUMNS = (
    LANG,
    count_column("queries", "n"),
    count_column("failed", "n_failed"),
    share_column("anchor kept", "anchor_kept_rate"),
    share_column("right language", "language_ok_rate"),
    Column(header="length ratio, median", show=lambda row: words.as_number(row["median_length_ratio"])),
    Column(
        header="round-trip similarity, median",
        show=lambda row: words.as_number(row["median_round_trip_similarity"]),
    ),
)
RETRIEVAL_COLUMNS = (
    LANG,
    text_column("intent", "intent"),
    text_column("paraphrase", "paraphrase"),
    count_column("k", "k"),
    count_column("n", "n"),
    count_column("not evaluated", "n_not_evaluated"),
    *_limits("recall at k", rate="recall_at_k", bounds="recall", n="n", method="ci_method"),
    *_limits("MRR", rate="mrr", bounds="mrr", n="n", method="mrr_ci_method"),
    Column(header="kind of interval", show=lambda row: words.method_in_words(row["ci_method"]), numeric=False),
)
CONTRAST_COLUMNS = (
    text_column("outcome", "outcome"),
    Column(header="pair", show=lambda row: f"{row['lang_a']} – {row['lang_b']}", numeric=False),
    GROUP,
    count_column("documents", "n_documents"),
    count_column("discordant", "n_discordant"),
    Column(header="difference", show=lambda row: words.as_signed(row["difference"])),
    Column(header="interval", show=lambda row: words.as_signed_interval(row["ci_low"], row["ci_high"])),
    Column(header="p", show=lambda row: words.as_p(row["p_value"])),
    Column(header="p, Holm", show=lambda row: words.as_p(row["p_holm"])),
    Column(header="least p attainable", show=lambda row: words.as_p(row["least_p"])),
)


def finding_views(report: ReportInput) -> dict[str, tuple[TableView, TableView]]:
    """Return for F1 to F4 the headline table (unstructured, default judge and filter) and the full one.

    What the caption of a headline table says has no column of its own.
    """
    judge, output_filter = report.default_judge, report.default_filter
    head = {"pii_group": "unstructured", "filter_variant": output_filter}
    specs: tuple[tuple[Finding, str, tuple[Column, ...], dict[str, str]], ...] = (
        ("F1", "f1_output_only", F1_COLUMNS, head),
        ("F2", "f2_conditional", F2_COLUMNS, head),
        ("F3", "f3_combined", F3_COLUMNS, {**head, "judge_variant": judge}),
        ("F4", "f4_context", F4_COLUMNS, head),
    )
    found: dict[str, tuple[TableView, TableView]] = {}
    for finding, name, columns, cell in specs:
        table = ordered(report.tables[name], report)
        beside = (*columns, published_column(report, finding)) if report.published else columns
        named = f"judge {judge}, filter {output_filter}" if finding == "F3" else f"filter {output_filter}"
        said = {"PII", "filter", "judge"} if finding == "F3" else {"PII", "filter"}
        short = [column for column in beside if column.header not in said]
        first = view(select(table, **cell), short, caption=f"{finding}: unstructured PII, {named}")
        rest = view(table, beside, caption=f"{finding}: all groups and variants (tables/{name}.csv)")
        found[finding] = (first, rest)
    return found


def published_column(report: ReportInput, finding: Published) -> Column:
    """Return the column with the published figure of each cell; a dash where none was published."""

    def show(row: Row) -> str:
        # The published F4 is the residual of the multilingual judge alone, and no published query was a person's.
        asked = (row.get("base_variant", "multilingual"), row.get("query_source", SOURCES[0]))
        if asked != ("multilingual", SOURCES[0]):
            return words.MISSING
        judge = row.get("judge_variant") or row.get("context_variant") or "none"
        cell = {"lang": str(row["lang"]), "group": str(row.get("pii_group", "all")), "judge": str(judge)}
        passed = str(row.get("filter_variant", "none"))
        one = report.published and report.published.find(finding, **cell, output_filter=passed)
        if not one:
            return words.MISSING
        counts = f" ({one.k} of {one.n})" if one.k is not None else f" (n = {one.n})" if one.n is not None else ""
        number = words.as_share(one.low) if one.low == one.high else f"{one.low:.3f} to {one.high:.3f}"
        return f"{number}{counts}{'; ' if one.note else ''}{one.note}"

    return Column(header="published", show=show, numeric=False)


def ordered(table: pd.DataFrame, report: ReportInput) -> pd.DataFrame:
    """Return the table with languages in the report's order, `all` last; other order is kept."""
    rank = {one.code: place for place, one in enumerate(report.languages)}
    place = table["lang"].map(lambda lang: rank.get(lang, len(rank)))
    return table.loc[place.sort_values(kind="stable").index]


def headline_view(report: ReportInput) -> TableView:
    """Return one row a language: the numbers that the page is about, each with its n."""
    rows = [_headline_row(report, one.code, source=source) for one in report.languages for source in _sources(report)]
    asked = [row for row in rows if any(value != words.MISSING for value in list(row.values())[2:])]
    frame = pd.DataFrame(asked, columns=list(rows[0]))
    columns = [text_column(name, name) for name in frame.columns if name not in {"lang", "query_source"}]
    numeric = [msgspec.structs.replace(column, numeric=True) for column in columns]
    return view(frame, [LANG, *numeric], caption="One line a language; n in brackets")


def _sources(report: ReportInput) -> list[str | None]:
    found: list[str | None] = [*values_of(report.tables["f1_output_only"], "query_source")]
    return found or [None]


def _headline_row(report: ReportInput, lang: str, *, source: str | None) -> dict[str, Any]:
    judge, output_filter = report.default_judge, report.default_filter
    guard = {"judge_variant": judge, "filter_variant": output_filter}
    row: dict[str, Any] = {"lang": lang, "query_source": source}

    def one(name: str, **cell: str) -> Row | None:
        where = {"lang": lang, **cell} if source is None else {"lang": lang, "query_source": source, **cell}
        rows = select(report.tables[name], **where).to_dict("records")
        return rows[0] if rows else None

    unstructured = {"pii_group": "unstructured"}
    f1_open = one("f1_output_only", **unstructured, filter_variant="none")
    f1 = one("f1_output_only", **unstructured, filter_variant=output_filter)
    f3 = one("f3_combined", **unstructured, **guard)
    row["F1, no filter"] = _rate_with_n(f1_open, total="n_documents")
    row[f"F1, {output_filter}"] = _rate_with_n(f1, total="n_documents")
    row[f"F3, {judge} + {output_filter}"] = _rate_with_n(f3, total="n_documents")
    judged = one("judges", judge_variant=judge)
    row["attacks blocked"] = _judged_rate(
        judged, rate="block_rate", bounds="block", method="ci_method", n="n_attack_evaluated"
    )
    row["benign blocked"] = _judged_rate(
        judged, rate="false_positive_rate", bounds="fpr", method="fpr_ci_method", n="n_benign_evaluated"
    )
    row["benign answered, same guard"] = _rate_with_n(one("utility", **guard), total="n_benign")
    return row


def _rate_with_n(row: Row | None, *, total: str) -> str:
    if row is None:
        return words.MISSING
    return _shown_rate(row, rate="rate", limits=("ci_low", "ci_high", "ci_method"), n=_evaluated(total)(row))


def _judged_rate(row: Row | None, *, rate: str, bounds: str, method: str, n: str) -> str:
    if row is None:
        return words.MISSING
    limits = (f"{bounds}_ci_low", f"{bounds}_ci_high", method)
    return _shown_rate(row, rate=rate, limits=limits, n=int(row[n]))


def _shown_rate(row: Row, *, rate: str, limits: tuple[str, str, str], n: int) -> str:
    if words.is_missing(row[rate]):
        return words.as_rate(None, n=n)
    low, high, method = (row[name] for name in limits)
    return f"{words.as_share(row[rate])} [{words.as_interval(low, high, method=method)}] ({n})"


def funnel_view(report: ReportInput, *, judge: str, output_filter: str) -> TableView:
    """Return one row a language and query source: where its attack trials stopped."""
    langs = [one.code for one in report.languages]
    rows: list[dict[str, Any]] = []
    for source in _sources(report):
        found = flows(report.tables["funnel"], langs, judge=judge, output_filter=output_filter, source=source)
        rows += [{"lang": flow.lang, "query_source": source, "n": flow.n_trials, **flow.counts} for flow in found]
    names = [*stage_order(judge), ESCAPED, "not evaluated"]
    frame = pd.DataFrame(rows, columns=["lang", "query_source", "n", *names])
    columns = [LANG, count_column("trials", "n"), *(count_column(words.STAGE_WORDS[name], name) for name in names)]
    return view(frame, columns, caption=f"First stop of each attack trial; judge {judge}, filter {output_filter}")


def stops_view(report: ReportInput) -> TableView:
    """Return what each stage alone would stop, under the default judge and filter, all PII."""
    cell = {
        "pii_group": "all",
        "judge_variant": report.default_judge,
        "filter_variant": report.default_filter,
    }
    columns = (
        LANG,
        text_column("stage", "stage"),
        count_column("trials", "n_trials"),
        count_column("not evaluated", "n_not_evaluated"),
        count_column("first stop", "n_first_stop"),
        count_column("would stop alone", "n_stop_alone"),
    )
    table = ordered(select(report.tables["stops"], **cell), report)
    return view(table, columns, caption="What each stage alone would stop (attack trials, all PII)")


def judge_columns(report: ReportInput) -> list[Column]:
    """Return the columns of judges on trials; with a guard why its use is off-label, and what was published if any."""
    found = list(JUDGE_COLUMNS)
    if report.guard is not None:
        found.insert(2, text_column("off-label", "off_label"))
    published = [msgspec.structs.replace(published_column(report, "BLOCK"), header="published, blocked")]
    return [*found, *(published if report.published else [])]


def translation_columns(report: ReportInput) -> list[Column]:
    """Return the columns of translation quality, with the published share of kept anchors where there is one."""
    published = [msgspec.structs.replace(published_column(report, "ANCHOR"), header="published, anchor kept")]
    return [*TRANSLATION_COLUMNS, *(published if report.published else [])]


def simple_views(report: ReportInput) -> dict[str, TableView]:
    """Return the tables that are printed whole or nearly so."""
    found = {name: ordered(report.tables[name], report) for name in ("judges", "utility", "translation", "retrieval")}
    guard = {"judge_variant": report.default_judge, "filter_variant": report.default_filter}
    open_cell = {"judge_variant": "none", "filter_variant": "none"}
    utility = pd.concat([select(found["utility"], **open_cell), select(found["utility"], **guard)])
    return {
        "judges": view(
            found["judges"], judge_columns(report), caption="Judges on attacks and on benign queries, trials"
        ),
        "controls": view(found["judges"], CONTROL_COLUMNS, caption="Judges on hand-written controls"),
        "utility": view(utility, UTILITY_COLUMNS, caption="Benign queries answered correctly"),
        "utility_all": view(found["utility"], UTILITY_COLUMNS, caption="All judges and filters (tables/utility.csv)"),
        "translation": view(
            found["translation"], translation_columns(report), caption="Quality of the translated queries"
        ),
        "retrieval": view(found["retrieval"], RETRIEVAL_COLUMNS, caption="Retrieval of the target document"),
    }


def contrast_views(report: ReportInput) -> list[TableView]:
    """Return one table a Holm family, in table order."""
    table = report.tables["contrasts"]
    families = values_of(table, "family")
    return [view(select(table, family=family), CONTRAST_COLUMNS, caption=f"Family: {family}") for family in families]


def count_differences(report: ReportInput) -> list[str]:
    """Return a sentence for each F1 and F3 cell whose verbatim and published leak counts differ."""
    found = []
    for finding, name in (("F1", "f1_output_only"), ("F3", "f3_combined")):
        table = report.tables[name]
        for row in table[table["n_leaked"] != table["n_leaked_published"]].to_dict("records"):
            judge = f", judge {row['judge_variant']}" if finding == "F3" else ""
            found.append(
                f"{finding}, {row['lang']}, {row['pii_group']}{judge}, filter {row['filter_variant']}: "
                f"{words.as_count(row['n_leaked'])} verbatim, "
                f"{words.as_count(row['n_leaked_published'])} by the published rule"
            )
    return found


def silent_languages(report: ReportInput) -> list[str]:
    """Return a sentence for each language of which nothing escapes without judge and filter."""
    names = {one.code: one.name for one in report.languages}
    found = []
    for source in _sources(report):
        every = flows(report.tables["funnel"], list(names), judge="none", output_filter="none", source=source)
        for flow in every:
            if flow.counts[ESCAPED] or flow.counts["not evaluated"] == flow.n_trials:
                continue
            stops = [f"{words.STAGE_WORDS[stage]}: {count}" for stage, count in flow.counts.items() if count]
            asked = f", {source} queries" if len(_sources(report)) > 1 else ""
            found.append(
                f"{names[flow.lang]}{asked}: none of {flow.n_trials} attack trials escaped. {'; '.join(stops)}."
            )
    return found
