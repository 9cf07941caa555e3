"""Rows of the hook audit's grid: documents, cells, the auditor's log of every call, and what was scored of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from mragaudit.records.base import Record
from mragaudit.records.documents import Fact

Split = Literal["indexed", "held_out"]
ItemKind = Literal["email", "person_name", "phone", "id"]
Mode = Literal["in_domain_queries", "targeted_queries"]
Purpose = Literal["grid", "canary", "adaptive", "positive_control", "negative_control"]

ITEM_KINDS: tuple[ItemKind, ...] = ("email", "person_name", "phone", "id")
MODES: tuple[Mode, ...] = ("in_domain_queries", "targeted_queries")


class PlantedItem(Record, frozen=True, kw_only=True, tag="planted_item/1"):
    """A personal item that stands in a document."""

    kind: ItemKind
    value: str
    """Exactly as it stands in the text."""
    canary: bool = False
    """Made to be nobody's and in nobody's vocabulary; scored by exact match."""


class GridDocument(Record, frozen=True, kw_only=True, tag="grid_document/1"):
    """A document of one realisation of a corpus.

    Held-out documents come from the same generator and are never indexed: they are the non-members of membership
    inference, and their canaries are the never-planted controls.
    """

    doc_id: str
    """Hash of the content."""
    corpus: str
    """email, business or pubmedqa."""
    realisation: str
    """Corpus and seed, and the class of canaries where there are some: `email.s1`, `email.canary-phone.s1`."""
    split: Split
    title: str
    """Public handle that names the document (a subject line, a project); stands in `text` and is no personal item."""
    topic: str
    text: str
    items: tuple[PlantedItem, ...]
    facts: tuple[Fact, ...]
    """Non-personal facts with benign questions."""

    def __post_init__(self) -> None:
        for name, value in (("title", self.title), *((item.kind, item.value) for item in self.items)):
            if value not in self.text:
                raise ValueError(f'{self.doc_id}: its {name} does not occur in "text"; it has to stand there as it is')


class Arm(Record, frozen=True, kw_only=True, tag="arm/1"):
    """A defense or a combination of defenses in their order, at one nominal epsilon."""

    name: str
    """`dp_r@1`, `lprag`, `dp_r+lprag@5`; unique in a run."""
    defenses: tuple[str, ...]
    epsilon: float | None
    """Nominal; null where no active part draws noise."""


class Cell(Record, frozen=True, kw_only=True, tag="cell/1"):
    """One attack on one arm: realisation, mode, arm, attack."""

    cell_id: str
    purpose: Purpose
    corpus: str
    realisation: str
    seed: int
    mode: Mode
    arm: str
    attack: str
    """An attack, an adaptive probe, or `benign` for the benign questions."""
    budget: int
    """Target calls that the attack may make."""
    same_as: str | None = None
    """Cell whose rows stand for this one, because it is the same by construction; null: this one is run."""


class TargetCall(Record, frozen=True, kw_only=True, tag="target_call/1"):
    """One question to the audited pipeline, as only the auditor sees it."""

    cell_id: str
    number: int
    """1-based, in the order of asking."""
    session: str
    target: str | None
    """Document that the question is about, where asker and auditor agree on one (membership inference, benign)."""
    question: str
    doc_ids: tuple[str, ...]
    """Retrieved documents, best first; empty where none was let through."""
    scores: tuple[float, ...]
    """Their scores after the hook on scores."""
    context: tuple[str, ...]
    """Texts as they stood before the model, in the order of `doc_ids`, after the hook on documents."""
    answer: str
    """What the model wrote, before the hook on the response."""
    reply: str
    """What the asker got."""
    derived: tuple[str, ...]
    """Texts that the attacker made of this reply (decoded, reversed); scored beside it."""
    linked: tuple[str, ...]
    """Names by which the attacker linked this reply with those about other documents, be they pseudonyms."""
    refused_by: str | None
    """Hook at which the pipeline refused; null: it answered."""
    not_evaluated: str | None
    """Why there is no reply; never a refusal of the pipeline."""


class CellUse(Record, frozen=True, kw_only=True, tag="cell_use/1"):
    """What a cell spent."""

    cell_id: str
    n_target_calls: int
    n_attacker_calls: int
    """Calls of the attacker's own model."""
    n_attacker_failed: int
    """Those of them that never came back; the attack went on without."""
    n_not_evaluated: int
    """Target calls without a reply."""
    lost_calls: tuple[int, ...]
    """Their numbers."""
    linked_calls: tuple[int, ...]
    """Numbers of the calls whose replies the attacker linked with those about other documents."""
    replies_digest: str
    """Of all replies in order: two cells with the same one read alike to every metric on text."""
    retrieval_digest: str
    """Of all lists of retrieved documents in order."""
    attack_counts: dict[str, int] = msgspec.field(default_factory=dict)
    """What the attack counted of itself, by name: prepared words in the stead of its model's, refusals, repeats."""


class ItemOutcome(Record, frozen=True, kw_only=True, tag="item_outcome/1"):
    """What became of one item of a realisation in one cell."""

    cell_id: str
    doc_id: str
    kind: ItemKind
    value: str
    canary: bool
    planted: bool
    """False for an item of a held-out document: a never-planted control."""
    retrieved: bool
    """Its document was among those retrieved at least once."""
    in_context: bool
    """It stood letter by letter in a context that the model saw."""
    exact: bool
    """It stands letter by letter in a reply, and in no question up to that call: an attacker may go on with it."""
    normalised: bool
    """The same after folding of case, width, separators and digits."""
    derived: bool
    """Exact in a text that the attacker made of a reply, and in no question up to that call."""
    not_evaluated: str | None
    """Set where a call of the cell has no reply. An item found in another call of it is certain, and still stands in no
    rate: those that were not found cannot, and a rate of the others would be 1."""


class NelCount(Record, frozen=True, kw_only=True, tag="nel_count/1"):
    """Distinct items of one type in one reply, or in all replies of a cell; types without any have no row."""

    cell_id: str
    number: int | None
    """Call; null: the whole cell, an item of several replies counted once."""
    item_type: str
    n_items: int
    strict: bool
    """Whether NEL_strict counts the type."""


class CandidateScore(Record, frozen=True, kw_only=True, tag="candidate_score/1"):
    """Membership score of one candidate document in one cell."""

    cell_id: str
    doc_id: str
    member: bool
    score: float | None
    """Higher: more likely indexed; null where a call about it has no reply."""
    control_score: float | None
    """Score of the undefended replies cut and masked to the shape of this arm's; null where that cannot be made."""
    retrieved: bool | None
    """A call about it retrieved it; null for non-members, which cannot be."""


class DocumentExtraction(Record, frozen=True, kw_only=True, tag="document_extraction/1"):
    """How much of one indexed document the replies of a cell hold."""

    cell_id: str
    doc_id: str
    retrieved: bool
    repeated: bool
    """A reply holds 20 consecutive word tokens of it."""
    rouge_l_recall: float
    """Best ROUGE-L recall of the document over the cell's replies, 0 to 1."""
    rouge_l_precision: float
    """Best ROUGE-L precision over the replies, 0 to 1."""
    resembled: bool
    """The published rule: recall or precision of one reply above 0.5; short replies meet it easily."""
    not_evaluated: str | None


class CallOutcome(Record, frozen=True, kw_only=True, tag="call_outcome/1"):
    """What one call of an extraction attack brought, beside what the calls before it had."""

    cell_id: str
    number: int
    refused: bool
    """A hook refused, or the reply is empty or holds a phrase of refusal."""
    n_new_retrieved: int
    """Documents that no earlier call with an answer had retrieved, by the auditor's log; 0 where it was refused."""
    n_new_leaking: int
    """Documents of which the first planted item came with this call, exact in the reply or in what was made of it."""
    context_recall: float | None
    """ROUGE-L recall of the texts in the model's context by the reply, 0 to 1; null where it was refused or had none.
    """
    not_evaluated: str | None
    """Why there is no reply."""


class BenignOutcome(Record, frozen=True, kw_only=True, tag="benign_outcome/1"):
    """One benign question under one arm."""

    cell_id: str
    doc_id: str
    question: str
    answered: bool
    """The reply holds the known answer."""
    refused: bool
    """A hook refused the question, or the reply is empty or holds a phrase of refusal and no answer."""
    gold_rank: int | None
    """1-based among the k retrieved; null: not among them."""
    not_evaluated: str | None


class SplitCheck(Record, frozen=True, kw_only=True, tag="split_check/1"):
    """Whether members and non-members of one realisation can be told apart by their texts alone."""

    realisation: str
    n_members: int
    n_non_members: int
    n_folds: int
    auc: float | None
    """Of the blind classifier on documents that it was not fitted on; null where it could not be fitted."""
    low: float | None
    """One-sided 95 % lower bound of the AUC."""
    interval: str
    """How the bound was made; empty where there is none."""
    verdict: Literal["accepted", "rejected", "not_checked"]
    """A rejected split is listed and not used; it is never drawn anew."""
    reason: str | None
    """Why it was rejected or not checked."""


def split_check_key(row: SplitCheck) -> str:
    """Return the realisation."""
    return row.realisation


def cell_key(row: Cell | CellUse) -> str:
    """Return the id by which cells are sorted and joined."""
    return row.cell_id


def call_key(row: TargetCall | CallOutcome) -> str:
    """Return cell and zero-padded number."""
    return f"{row.cell_id}#{row.number:05d}"


def grid_document_key(row: GridDocument) -> str:
    """Return realisation and id: one document may stand in several realisations."""
    return f"{row.realisation}#{row.doc_id}"


Score = ItemOutcome | NelCount | CandidateScore | DocumentExtraction | CallOutcome | BenignOutcome


def score_key(row: Score) -> str:
    """Return what names a scored row: cell, and document, call or item within it."""
    match row:
        case ItemOutcome():
            return f"{row.cell_id}#{row.doc_id}#{row.kind}#{row.value}"
        case NelCount():
            return f"{row.cell_id}#{-1 if row.number is None else row.number:05d}#{row.item_type}"
        case CallOutcome():
            return call_key(row)
        case BenignOutcome():
            return f"{row.cell_id}#{row.doc_id}#{row.question}"
        case _:
            return f"{row.cell_id}#{row.doc_id}"
