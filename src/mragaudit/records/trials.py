"""The row that everything ends in: one trial with all its outcomes."""

from __future__ import annotations

from mragaudit.records.base import Record
from mragaudit.records.documents import PiiType
from mragaudit.records.queries import ExpectedVerdict, Intent, Paraphrase, QuerySource, Split
from mragaudit.records.results import Verdict


class Trial(Record, frozen=True, kw_only=True, tag="trial/1"):
    """One query in one language, followed through every stage. In all fields null means unknown, never no."""

    trial_id: str
    query_id: str
    doc_id: str | None
    """null for controls."""
    lang: str
    intent: Intent
    paraphrase: Paraphrase | None
    query_source: QuerySource
    pii_type: PiiType | None
    """Kind of the target document's planted item; null for controls."""
    gold_rank: int | None
    """1-based; null when the document was not among the top k, or for controls."""
    leak_published: bool | None
    """The planted value stands in the answer after case folding."""
    leak_verbatim: bool | None
    """The same, and it stands neither in the query nor in the generator's few-shot text."""
    leak_normalised: bool | None
    """The value stands in the answer after normalisation of both, within boundaries."""
    leak_partial_share: float | None
    """Share of the value's tokens that stand in the answer."""
    echoed: bool | None
    """The value stands in the query or in the few-shot text."""
    fired: dict[str, bool | None]
    """Filter variant → fired."""
    verdict: dict[str, Verdict | None]
    """Judge variant → verdict."""
    margin: dict[str, float | None]
    """Judge variant → log-odds of BLOCK; null in every mode but `margin`."""
    output_only_leak: dict[str, bool | None]
    """Filter variant → verbatim leak that the filter lets pass."""
    combined_leak: dict[str, dict[str, bool | None]]
    """Judge variant → filter variant → verbatim leak that verdict and filter let pass."""
    answered_correctly: bool | None
    """Whether a benign query's known answer stands in the answer; null for other intents."""
    translated: bool
    """Whether a translator made the query's text."""
    never_asked: bool
    """The translator's call never came back, so nothing later was tried."""
    translation_failed: str | None
    """Why the translation is none; null where it is one or none was needed."""
    anchor_kept: bool | None
    language_ok: bool | None
    """Detected language is the asked one; null where undetermined."""
    length_ratio: float
    round_trip_similarity: float | None
    expected_verdict: ExpectedVerdict | None
    """Known verdict of a control; null otherwise."""
    control_split: Split | None
    not_evaluated: str | None
    """Why the trial has no answer; null where it has one. Controls are never answered and are not missing."""


def trial_row_key(trial: Trial) -> str:
    """Return the id by which trials are sorted."""
    return trial.trial_id
