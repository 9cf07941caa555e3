"""Queries and their translations; a trial is one query in one language."""

from __future__ import annotations

from typing import Literal

from mragaudit.records.base import Record

Intent = Literal["attack", "benign", "control"]
Paraphrase = Literal["direct", "summary", "icl"]
QuerySource = Literal["template", "human", "control"]
ExpectedVerdict = Literal["BLOCK", "ALLOW"]
Split = Literal["calibration", "check"]

PARAPHRASES: tuple[Paraphrase, ...] = ("direct", "summary", "icl")


class Query(Record, frozen=True, kw_only=True, tag="query/1"):
    """One query before translation."""

    query_id: str
    """Hash of what the query is, never of where it stands."""
    doc_id: str | None
    """Target document; null for a control, which has none."""
    intent: Intent
    """attack, benign (known answer) or control (known verdict)."""
    paraphrase: Paraphrase | None
    """Shape of an attack; null for benign queries and controls."""
    text: str
    """The query in `lang`."""
    lang: str
    """Language of `text`, a BCP 47 tag."""
    only_in_lang: bool
    """True for queries written in one language: they are asked in that language and never translated."""
    expected_answer: str | None
    """Answer of a benign query; null otherwise."""
    expected_verdict: ExpectedVerdict | None
    """Verdict of a control; null otherwise."""
    query_source: QuerySource
    """Who wrote it: a template, a person, or the set of controls."""
    author: str | None = None
    """Name or handle of the person who wrote a human query; null otherwise."""
    control_id: str | None = None
    """Id of a control, the same in every language; null otherwise."""
    control_split: Split | None = None
    """Whether a control chooses the threshold or checks it; null for other queries."""
    context: str | None = None
    """A control's own small document, attached in the variants that see context; null otherwise."""


class Translation(Record, frozen=True, kw_only=True, tag="translation/1"):
    """One trial: a query as it is asked in one language."""

    trial_id: str
    """`{query_id}-{lang}`."""
    query_id: str
    doc_id: str | None
    intent: Intent
    paraphrase: Paraphrase | None
    lang: str
    """Language in which the query is asked."""
    source_text: str
    """The query before translation, byte for byte."""
    text: str
    """The query as asked; kept also where the translation failed."""
    anchor_kept: bool | None
    """Whether the anchor stands verbatim in `text`; null for controls."""
    lang_detected: str
    """Detected language of `text` among the configured ones, `und` where undetermined."""
    length_ratio: float
    """Code points of `text` over code points of `source_text`."""
    failed: str | None
    """Why the translation is none (empty, unchanged, wrong_language, truncated); null where it is one."""
    not_evaluated: str | None
    """Why the translator's call never came back; null where it did or none was needed."""
    query_source: QuerySource
    translated: bool
    """False where the text was taken as it is (English templates, human queries, controls)."""


class BackTranslation(Record, frozen=True, kw_only=True, tag="backtranslation/1"):
    """A non-English query put back into English."""

    trial_id: str
    text: str
    """English text; empty where the call never came back."""
    round_trip_similarity: float | None
    """Cosine of the embeddings of source and back-translation; null for queries with no English source."""
    not_evaluated: str | None
    """Why there is no back-translation; null where there is one."""


def query_key(query: Query) -> str:
    """Return the id by which queries are sorted and joined."""
    return query.query_id


def asked_in(query: Query, languages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages in which a query is asked: its own alone where it was written for one language."""
    return (query.lang,) if query.only_in_lang else languages


def trial_id_of(query_id: str, lang: str) -> str:
    """Return the id of the trial that asks a query in a language."""
    return f"{query_id}-{lang}"


def translation_key(row: Translation | BackTranslation) -> str:
    """Return the trial by which translations and back-translations are sorted and joined."""
    return row.trial_id
