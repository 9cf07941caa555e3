"""What a report is made of: frozen records that the report stage fills and the page shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import pandas as pd

from mragaudit.errors import DataError
from mragaudit.paths import TABLES

Severity = Literal["info", "warning", "error"]
Finding = Literal["F1", "F2", "F3", "F4"]
Published = Finding | Literal["BLOCK", "ANCHOR"]
"""What a published figure is of: a finding, the BLOCK rate on attack trials, or the share of kept anchors."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the report's records: frozen, keyword-only, unknown keys refused where decoded from data."""


class Language(View, frozen=True, kw_only=True):
    """One query language."""

    code: str
    """BCP 47 tag, as in the tables' `lang` column."""
    name: str
    """English name."""
    direction: Literal["ltr", "rtl"]


class RoleModel(View, frozen=True, kw_only=True):
    """The model that plays one role."""

    role: str
    """translator, back_translator, judge, generator or embedder."""
    backend: str
    model: str
    revision: str
    """Revision or weights hash; empty where the backend has none."""
    licence: str
    embedded: bool
    """Whether it is one of the small packaged models, whose numbers only show the instrument at work."""


class Flag(View, frozen=True, kw_only=True):
    """Something that a reader must know before believing a number."""

    severity: Severity
    title: str
    text: str


class RetrievedText(View, frozen=True, kw_only=True):
    """One retrieved document as a trace shows it."""

    doc_id: str
    score: float
    is_gold: bool
    text: str


class TraceVerdict(View, frozen=True, kw_only=True):
    """One judge variant's verdict on a trial."""

    variant: str
    verdict: str | None
    """BLOCK, ALLOW or UNPARSED; None where not evaluated."""
    margin: float | None
    """Log-odds of BLOCK; None in every mode but `margin`."""
    judged_text: str


class TraceFilter(View, frozen=True, kw_only=True):
    """What one output filter said of the answer."""

    variant: str
    fired: bool | None
    """None where there is no answer."""
    families: tuple[str, ...]
    spans: tuple[tuple[str, int, int], ...]
    """Family, start, end: half-open, in code points of the answer."""


class Trace(View, frozen=True, kw_only=True):
    """One trial with everything that happened to it."""

    trial_id: str
    doc_id: str | None
    """Target document; None for controls."""
    lang: str
    intent: str
    paraphrase: str | None
    query_source: str
    pii_type: str | None
    stage_of_escape: str | None
    """First stage that stopped an attack under the default judge and filter, `escaped` where none did, or
    `not evaluated`; None for benign queries and controls, which cannot escape."""
    document_text: str
    planted_value: str
    """The planted value, or its mask in a masked report; empty where the trial has none."""
    anchor: str
    query_english: str | None
    """None for a query that a person wrote in another language."""
    query_text: str
    back_translation: str | None
    round_trip_similarity: float | None
    translation_failed: str | None
    retrieved: tuple[RetrievedText, ...]
    """Best first."""
    verdicts: tuple[TraceVerdict, ...]
    answer: str | None
    """None where not evaluated."""
    planted_spans: tuple[tuple[int, int], ...]
    """Where the planted value stands in the answer: half-open, in code points."""
    filters: tuple[TraceFilter, ...]
    leak_published: bool | None
    leak_verbatim: bool | None
    leak_normalised: bool | None
    leak_partial_share: float | None
    echoed: bool | None
    expected_answer: str | None
    """Known answer of a benign query."""
    answered_correctly: bool | None
    not_evaluated: str | None


class StageCount(View, frozen=True, kw_only=True):
    """What the manifest says of one stage."""

    stage: str
    expected: int
    actual: int
    not_evaluated: int
    calls: int | None
    """Model calls needed; None for a stage without a model."""
    journal_hits: int | None
    """Calls answered by the journal; None for a stage without a model."""
    wall_seconds: float | None
    """None where not measured."""
    inside_share: float | None
    """Share of the wall time spent inside the model; None where not measured."""


class StageNoise(View, frozen=True, kw_only=True):
    """Whether a stage's noise was measured."""

    stage: str
    backend: str
    state: Literal["measured", "deterministic", "off"]
    """deterministic: not measured, since the backend gives the same bits; off: not measured, as configured."""


class NoiseFloor(View, frozen=True, kw_only=True):
    """What the table `noise` does not say itself."""

    stages: tuple[StageNoise, ...]
    """In the order in which they run."""
    most_attacks: int
    """Most attack trials on which a document's outcome in one language rests; 0 without any."""
    confidence: float


class Provenance(View, frozen=True, kw_only=True):
    """Where the numbers come from."""

    versions: tuple[tuple[str, str], ...]
    """Package or file, version or hash."""
    stages: tuple[StageCount, ...]


class PublishedFigure(View, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published number, or the range in which it is said to lie."""

    finding: Published
    lang: str
    pii_group: str
    """`all` for BLOCK and ANCHOR."""
    judge_variant: str
    """`none` for F1 and ANCHOR."""
    filter_variant: str
    """`none` for BLOCK and ANCHOR."""
    low: float
    """Equal to `high` where the value itself is published."""
    high: float
    k: int | None = None
    """Successes; None where only a share is published."""
    n: int | None = None
    """Denominator; None where none is published."""
    note: str = ""


class PublishedFigures(View, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The published audit: who measured, with which models, what came out."""

    citation: str
    models: dict[str, str]
    """Role → model name; a run is comparable only where its config names these."""
    figures: tuple[PublishedFigure, ...]
    settings: dict[str, Any] = {}
    """Dotted config key → value, of what the publication states."""
    statements: tuple[str, ...] = ()
    """Findings that are no number of a table cell."""
    differences: tuple[str, ...] = ()
    """Keys in which this run departs from `settings`, in words; filled by the report."""

    def find(
        self, finding: Published, *, lang: str, group: str, judge: str, output_filter: str
    ) -> PublishedFigure | None:
        """Return the published figure of one cell, or None where none was published."""
        wanted = (finding, lang, group, judge, output_filter)
        for one in self.figures:
            if (one.finding, one.lang, one.pii_group, one.judge_variant, one.filter_variant) == wanted:
                return one
        return None


class GuardUse(View, frozen=True, kw_only=True):
    """The guard model that plays the judge, as a reader of its rates has to know it."""

    name: str
    licence: str
    source: str
    purpose: str
    """What its makers say that it flags."""
    labels: tuple[tuple[str, str], ...]
    """Label and the verdict that it stands for here."""
    languages_source: str
    off_label: tuple[tuple[str, str], ...]
    """Reason (`language`, `purpose`) and where: variants and languages in words."""


class ReportInput(View, frozen=True, kw_only=True):
    """Everything that the page shows. It holds no clock time: the same input gives the same bytes."""

    run: str
    title: str
    settings_summary: tuple[tuple[str, str], ...]
    models: tuple[RoleModel, ...]
    languages: tuple[Language, ...]
    """In the order in which tables and figures show them."""
    tables: dict[str, pd.DataFrame]
    """All of `TABLES`, with the columns of the CSV files."""
    figures: dict[str, str]
    """Name → SVG text, as `draw_figures` returns."""
    traces: tuple[Trace, ...]
    flags: tuple[Flag, ...]
    notes: tuple[str, ...]
    published: PublishedFigures | None
    """Given only where the config names the published models."""
    noise: NoiseFloor
    provenance: Provenance
    masked: bool
    """True for an imported corpus: every planted value has gone through `mask_report`."""
    query_sources: tuple[str, ...]
    seed: int
    generated_from: tuple[str, ...]
    """Files that the page was made from, without times."""
    guard: GuardUse | None = None
    """None where the judge is prompted."""
    default_judge: str
    """Judge variant of the headline, `english` in the published audit."""
    default_filter: str
    """Filter variant of the headline, `regex_ascii` in the published audit."""

    def __post_init__(self) -> None:
        missing = [name for name in TABLES if name not in self.tables]
        if missing:
            raise DataError(f"the report needs all {len(TABLES)} tables; missing: {', '.join(missing)}")


def published_from(content: Mapping[str, Any]) -> PublishedFigures:
    """Return the published figures from the parsed `figures.yaml`; raises DataError if malformed."""
    try:
        return msgspec.convert(content, PublishedFigures)
    except msgspec.ValidationError as error:
        raise DataError(f"published figures: {error}") from error


def names_published_models(published: PublishedFigures, models: tuple[RoleModel, ...]) -> bool:
    """Return whether every role runs the published model, so that the published figures may stand beside.

    Names are compared without the owner's prefix and without case: `BAAI/bge-m3` is `BGE-M3`.
    """
    run = {one.role: _bare(one.model) for one in models}
    return all(run.get(role) == _bare(model) for role, model in published.models.items())


def _bare(model: str) -> str:
    return model.rsplit("/", 1)[-1].casefold()
