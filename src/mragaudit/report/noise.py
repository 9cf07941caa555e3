"""The noise floor as the page prints it: flip rates, what was not measured, and which differences may be noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pandas as pd

from mragaudit.records.repeats import Flip, RepeatedStage
from mragaudit.report import words
from mragaudit.report.flow import select
from mragaudit.report.model import ReportInput, StageNoise
from mragaudit.report.tables import JUDGE, LANG, Column, Row, TableView, count_column, rate_columns, text_column, view
from mragaudit.stats.noise import most_by_chance
from mragaudit.tables.noise import ALL_LANGUAGES

FLIP_WORDS: dict[Flip, str] = {
    "text": "another text",
    "verdict": "another verdict",
    "leak_verbatim": "leak or no leak (attacks)",
    "answered_correctly": "right or wrong (benign)",
}
NOT_MEASURED = "not measured"
ENGLISH = "en"
LANGUAGE_WORDS = {ENGLISH: "English", "others": "each other language"}

REASONS = {
    "deterministic": "The backend {backend} is deterministic by construction: on one machine and build the same call "
    "gives the same bits, whatever was asked before or beside it.",
    "off": "noise.stages says so. How often the backend {backend} answers the same call otherwise is unknown, and "
    "unknown is not zero.",
}
LIMIT_COLUMNS = ("finding", "languages", "trials", "documents", "n", "difference")

Part = tuple[RepeatedStage, Flip]
"""What is compared of a stage."""


class NoiseView(msgspec.Struct, frozen=True, kw_only=True):
    """The section of the page."""

    measured: bool
    """Whether any stage repeated a call."""
    deterministic: bool
    """Whether no stage can be noisy, so that nothing had to be measured."""
    sentences: tuple[str, ...]
    """What was not measured, and why."""
    rates: TableView
    by_language: TableView
    limits: TableView


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one finding may be noise."""

    finding: str
    languages: str
    """`en`, or `others`."""
    parts: tuple[Part, ...]
    """What an attack trial's outcome can change by."""
    n_documents: int


def noise_view(report: ReportInput) -> NoiseView:
    """Return the section."""
    table = report.tables["noise"]
    stages = [one.stage for one in report.noise.stages if one.state == "measured"]
    shown = table[table["stage"].isin(stages)]
    overall = shown["lang"] == ALL_LANGUAGES
    columns = RATES if shown["max_margin_difference"].isna().all() else (*RATES, MARGINS)
    return NoiseView(
        measured=bool(stages),
        deterministic=all(one.state == "deterministic" for one in report.noise.stages),
        sentences=tuple(_sentences(report.noise.stages)),
        rates=view(shown[overall], [STAGE, *columns], caption="Calls made once more: how many came out otherwise"),
        by_language=view(shown[~overall], [STAGE, LANG, *columns], caption="The same, a language (tables/noise.csv)"),
        limits=_limits_view(report),
    )


def _show_margin(row: Row) -> str:
    shown = words.as_number(row["max_margin_difference"])
    return shown if shown == words.MISSING else f"{shown} (of {words.as_count(row['n_margins'])})"


STAGE = text_column("stage", "stage")
RATES: tuple[Column, ...] = (
    JUDGE,
    Column(header="what differs", show=lambda row: FLIP_WORDS[row["flip"]], numeric=False),
    *rate_columns("n_pairs", hits="n_flips", label="differ"),
)
MARGINS = Column(header="largest difference of margins, nats", show=_show_margin)


def _sentences(stages: Sequence[StageNoise]) -> Iterator[str]:
    """Yield one sentence for all stages of one backend that were not measured for one reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in stages:
        if one.state != "measured":
            groups.setdefault((one.state, one.backend), []).append(one.stage)
    for (state, backend), names in groups.items():
        yield f"{', '.join(names)}: not measured. {REASONS[state].format(backend=backend)}"


def _limits_view(report: ReportInput) -> TableView:
    rows = [_limit_row(report, limit) for limit in _limits(report)]
    frame = pd.DataFrame(rows, columns=list(LIMIT_COLUMNS))
    frame["n"] = frame["n"].astype("Int64")
    columns = [
        text_column("finding", "finding"),
        text_column("languages", "languages"),
        text_column("attack trials that may change sides", "trials"),
        text_column("documents that may, at most", "documents"),
        count_column("of documents", "n"),
        text_column("difference of rates that may be noise", "difference"),
    ]
    return view(frame, columns, caption="Two runs of this config, every model asked anew: what noise alone may change")


def _limits(report: ReportInput) -> Iterator[Limit]:
    """Yield the headline's cells; what precedes a trial's outcome adds up (union bound)."""
    judge = report.default_judge
    answer: tuple[Part, ...] = (("generate", "leak_verbatim"),)
    translated: tuple[Part, ...] = (("translate", "text"),)
    returned: tuple[Part, ...] = (("backtranslate", "text"),) if judge == "backtranslate" else ()
    verdict: tuple[Part, ...] = (("judge", "verdict"),)
    judged = not select(report.tables["f3_combined"], judge_variant=judge).empty
    for languages, before, back in ((ENGLISH, (), ()), ("others", translated, returned)):
        n = _documents(report, languages)
        if n is None:
            continue
        yield Limit(finding="F1", languages=languages, parts=(*before, *answer), n_documents=n)
        if judged:
            parts = (*before, *back, *answer, *verdict)
            yield Limit(finding=f"F3, judge {judge}", languages=languages, parts=parts, n_documents=n)


def _documents(report: ReportInput, languages: str) -> int | None:
    """Return the most evaluated documents of the headline's cells in these languages, None where there is no cell."""
    head = {"pii_group": "unstructured", "filter_variant": report.default_filter}
    table = select(report.tables["f1_output_only"], **head)
    table = table[(table["lang"] == ENGLISH) == (languages == ENGLISH)]
    return int((table["n_documents"] - table["n_not_evaluated"]).max()) if len(table) else None


def _limit_row(report: ReportInput, limit: Limit) -> dict[str, object]:
    share = _share(report, limit.parts)
    head = {"finding": limit.finding, "languages": LANGUAGE_WORDS[limit.languages], "n": limit.n_documents}
    if share is None:
        return head | dict.fromkeys(("trials", "documents", "difference"), NOT_MEASURED)
    by_document = min(1.0, report.noise.most_attacks * share)
    most = most_by_chance(limit.n_documents, by_document, confidence=report.noise.confidence)
    difference = words.as_share(most / limit.n_documents) if limit.n_documents else NOT_MEASURED
    trials = "none" if share == 0 else f"≤ {words.as_share(share)}"
    return head | {"trials": trials, "documents": words.as_count(most), "difference": difference}


def _share(report: ReportInput, parts: Sequence[Part]) -> float | None:
    """Return the sum of the parts' upper limits, at most 1; None where one of them is unknown."""
    limits = [_upper_limit(report, part) for part in parts]
    known = [one for one in limits if one is not None]
    return min(1.0, sum(known)) if len(known) == len(limits) else None


def _upper_limit(report: ReportInput, part: Part) -> float | None:
    """Return the upper limit of a flip rate over all languages, None where it is unknown.

    It is 0 for a deterministic backend, and where a stage that repeats calls was asked nothing that it could repeat.
    """
    stage, flip = part
    state = next(one.state for one in report.noise.stages if one.stage == stage)
    if state != "measured":
        return 0.0 if state == "deterministic" else None
    cell = {"stage": stage, "lang": ALL_LANGUAGES, "flip": flip}
    if stage == "judge":
        cell["judge_variant"] = report.default_judge
    (row,) = select(report.tables["noise"], **cell).to_dict("records")
    if row["n_pairs"] == 0:
        return 0.0
    return None if words.is_missing(row["ci_high"]) else float(row["ci_high"])
