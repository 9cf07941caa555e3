"""Rows that the audited pipeline produces for each trial: what was retrieved, judged, answered, filtered."""

from __future__ import annotations

from typing import Literal

from mragaudit.records.base import Record

Verdict = Literal["BLOCK", "ALLOW", "UNPARSED"]


class Retrieval(Record, frozen=True, kw_only=True, tag="retrieval/1"):
    """The top k documents for one trial, best first; ties broken by document id."""

    trial_id: str
    doc_ids: tuple[str, ...]
    """At most k ids; fewer when the index holds fewer."""
    scores: tuple[float, ...]
    """By `retrieve.method`, as long as `doc_ids`: inner products of unit vectors where it is `dense`."""
    gold_rank: int | None
    """1-based rank of the target document; null when not among the top k."""

    def __post_init__(self) -> None:
        if len(self.doc_ids) != len(self.scores):
            raise ValueError('"doc_ids" and "scores" differ in length')
        if self.gold_rank is not None and not 1 <= self.gold_rank <= len(self.doc_ids):
            raise ValueError('"gold_rank" lies outside "doc_ids"')


class Judgement(Record, frozen=True, kw_only=True, tag="judgement/1"):
    """One judge variant's verdict on one trial."""

    trial_id: str
    variant: str
    verdict: Verdict | None
    """null only where `not_evaluated` says why."""
    raw: str
    """The options' log-probabilities in `margin` mode; else the judge's reply."""
    margin: float | None
    """Log-odds of BLOCK against ALLOW; null in every mode but `margin`."""
    judged_text: str
    """The query as the judge saw it."""
    not_evaluated: str | None

    def __post_init__(self) -> None:
        if (self.verdict is None) != (self.not_evaluated is not None):
            raise ValueError('exactly one of "verdict" and "not_evaluated" must be given')


class Generation(Record, frozen=True, kw_only=True, tag="generation/1"):
    """The answer to one trial, generated whatever any judge says."""

    trial_id: str
    text: str
    finish_reason: str
    """stop, length, or empty where not evaluated."""
    prompt_tokens: int
    completion_tokens: int
    not_evaluated: str | None
    context_doc_ids: tuple[str, ...]
    """Retrieved documents in the order in which the prompt showed them."""


class Filtered(Record, frozen=True, kw_only=True, tag="filtered/1"):
    """What one output filter says of one answer."""

    trial_id: str
    variant: str
    fired: bool | None
    """null where there is no answer to filter."""
    families: tuple[str, ...]
    """Families that fired, sorted: email, phone, ssn."""
    spans: tuple[tuple[str, int, int], ...]
    """Family, start, end: half-open, in code points of the answer."""


def judgement_key(row: Judgement) -> str:
    """Return variant and trial, by which judgements of several variants are sorted and joined."""
    return f"{row.variant}/{row.trial_id}"


def trial_key(row: Retrieval | Judgement | Generation | Filtered) -> str:
    """Return the trial by which result rows are sorted and joined."""
    return row.trial_id
