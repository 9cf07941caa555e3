"""What the grid shows: recovery of canaries, what may be certified of a defense, and adaptive attacks."""

from __future__ import annotations

from typing import Literal

from mragaudit.records.base import Record
from mragaudit.records.grid import ItemKind

Verdict = Literal["certified", "no_power", "failed", "entangled", "not_run"]


class ShareCount(Record, frozen=True, kw_only=True, tag="share_count/1"):
    """A share with its limits; a denominator of 0 leaves all three null."""

    k: int
    n: int
    """Evaluated ones."""
    not_evaluated: int
    share: float | None
    low: float | None
    high: float | None
    interval: str
    """How the limits were made; they hold within these realisations, canaries taken as independent."""


class RecoveryRow(Record, frozen=True, kw_only=True, tag="recovery_row/1"):
    """Canaries of one class recovered under one arm, over all seeds."""

    canary_class: ItemKind
    arm: str
    attacks: tuple[str, ...]
    """Mode and attack of the cells; a canary counts as recovered when one of them recovers it."""
    seeds: tuple[int, ...]
    exact: ShareCount
    normalised: ShareCount
    derived: ShareCount
    """Recovered in a text that the attacker made of a reply."""
    given_retrieved: ShareCount
    """Exact, of those whose document was retrieved at least once."""
    retrieved: ShareCount
    in_context: ShareCount
    """The ceiling: stood in a context that the model saw."""
    controls: ShareCount
    """Never-planted canaries recovered, in any of the three ways."""


class SeedTest(Record, frozen=True, kw_only=True, tag="seed_test/1"):
    """Exact permutation test of seeds without against seeds with the defense."""

    p_value: float
    p_holm: float
    """Holm's correction over the classes tested under this arm."""
    least_p: float
    """Least p that so many seeds can give."""
    n_family: int
    """Classes in the correction."""


class CertificationRow(Record, frozen=True, kw_only=True, tag="certification_row/1"):
    """Whether a defense may be said to keep canaries of one class from being recovered."""

    canary_class: ItemKind
    arm: str
    verdict: Verdict
    reasons: tuple[str, ...]
    """Every criterion that is not met, the decisive one first; empty where certified."""
    n_seeds: int
    undefended: RecoveryRow | None = None
    defended: RecoveryRow | None = None
    undefended_exact_low: float | None = None
    """One-sided 95 % Clopper-Pearson lower bound of the share recovered without the defense."""
    undefended_normalised_low: float | None = None
    defended_exact_high: float | None = None
    """One-sided 95 % Clopper-Pearson upper bound of the share recovered under the defense."""
    defended_normalised_high: float | None = None
    defended_exact_high_at_worst: float | None = None
    """The same if every canary that was not evaluated had been recovered; no criterion."""
    seed_test: SeedTest | None = None
    retrieval_ratio: float | None = None
    """Share of canary documents retrieved under the defense, divided by the share without it."""
    shared_words: tuple[str, ...]
    """Words of the scorer's lexicon or of the defense's vocabulary that occur in canaries."""


class MembershipRow(Record, frozen=True, kw_only=True, tag="membership_row/1"):
    """Membership inference in one cell; a rejected split has no number, and its check says why."""

    cell_id: str
    corpus: str
    seed: int
    mode: str
    arm: str
    split: Literal["accepted", "rejected", "not_checked"]
    n_members: int
    """With a score, as the next."""
    n_non_members: int
    members_not_evaluated: int
    non_members_not_evaluated: int
    auc: float | None = None
    """Signed: below one half the score works the wrong way, which protects nobody."""
    low: float | None = None
    high: float | None = None
    interval: str = ""
    """Over documents of this realisation; other seeds are other realisations."""
    standard_error: float | None = None
    """Of Hanley and McNeil."""
    folded: float | None = None
    """max(AUC, 1 - AUC), never without the two that follow."""
    folded_null_high: float | None = None
    """95 % quantile of the folded AUC where labels are dealt anew."""
    folded_p: float | None = None
    tpr_at_5: float | None = None
    """True positive rate at 5 % false alarms; null with fewer than 20 non-members."""
    tpr_at_5_low: float | None = None
    tpr_at_5_high: float | None = None
    tpr_at_1: float | None = None
    """At 1 %; null with fewer than 100 non-members."""
    tpr_at_1_low: float | None = None
    tpr_at_1_high: float | None = None
    tpr_interval: str = ""
    control_auc: float | None = None
    """Nuisance control: of undefended replies cut and masked to the shape of this arm's."""
    beyond_control: float | None = None
    """AUC less control AUC on documents with both: what shortening and masking do not explain."""
    beyond_control_low: float | None = None
    beyond_control_high: float | None = None
    beyond_control_interval: str = ""
    recall: ShareCount
    """Members whose document a call about them retrieved."""


class AdaptiveRow(Record, frozen=True, kw_only=True, tag="adaptive_row/1"):
    """The best attack of a family under one arm, chosen on development seeds and measured on others."""

    corpus: str
    arm: str
    family: tuple[str, ...]
    fixed: str
    """Attack that the family is compared with."""
    chosen: str | None = None
    """Best on the development seeds; null where none could be chosen."""
    budget: int
    """Target calls of every cell that is compared."""
    development_seeds: tuple[int, ...]
    test_seeds: tuple[int, ...]
    lower_bound: ShareCount | None = None
    """Share that the chosen attack recovers on the test seeds: stronger attacks may exist."""
    upper_bound: ShareCount | None = None
    """Share that stood in a context which the model saw in the same cells."""
    fixed_share: ShareCount | None = None
    lift: float | None = None
    """Mean over test seeds of the chosen attack's share less the fixed attack's."""
    lift_by_seed: tuple[float, ...] = ()
    p_value: float | None = None
    """Exact one-sided sign-flip over test seeds; null with fewer than two."""
    least_p: float | None = None
    reason: str | None = None
    """Why there is no number."""


def recovery_key(row: RecoveryRow | CertificationRow) -> str:
    """Return class and arm."""
    return f"{row.canary_class}/{row.arm}"


def membership_key(row: MembershipRow) -> str:
    """Return the cell."""
    return row.cell_id


def adaptive_key(row: AdaptiveRow) -> str:
    """Return corpus and arm."""
    return f"{row.corpus}/{row.arm}"
