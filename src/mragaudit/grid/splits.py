"""Members and non-members of membership inference: drawn once, and checked by a classifier that is blind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mragaudit.errors import ConfigError, DataError
from mragaudit.grid.blind import MIN_A_SIDE, PERMUTATIONS, blind_auc
from mragaudit.records.grid import GridDocument, Split, SplitCheck

# A split is rejected where the estimate is above the first and the bound above the second number.
REJECT_ABOVE = 0.6
CHANCE = 0.5
INTERVAL = "permutation_one_sided_lower"


def draw_candidates(
    documents: Sequence[GridDocument], *, n_members: int, n_non_members: int, rng: np.random.Generator
) -> tuple[GridDocument, ...]:
    """Return so many indexed and so many held-out documents, drawn without replacement, sorted by id.

    Raises ConfigError when a realisation has fewer.
    """
    chosen: list[GridDocument] = []
    wanted: tuple[tuple[Split, int], ...] = (("indexed", n_members), ("held_out", n_non_members))
    for split, size in wanted:
        side = sorted((row for row in documents if row.split == split), key=lambda row: row.doc_id)
        if len(side) < size:
            raise ConfigError(f"{size} {split} candidates are asked for and the realisation has {len(side)}")
        chosen += [side[int(i)] for i in rng.permutation(len(side))[:size]]
    return tuple(sorted(chosen, key=lambda row: row.doc_id))


def check_split(
    candidates: Sequence[GridDocument], *, generator: np.random.Generator, permutations: int = PERMUTATIONS
) -> SplitCheck:
    """Return whether indexed and held-out candidates of one realisation can be told apart by text alone.

    Rejected where the blind AUC is above 0.6 and its one-sided 95 % lower bound above 0.5: then the split leaks by
    itself, and an attack on it shows nothing. Fewer than four documents on a side are not checked, which is no
    acceptance.
    Raises DataError for candidates of several realisations.
    """
    names = {row.realisation for row in candidates}
    if len(names) != 1:
        raise DataError(f"a split belongs to one realisation; got {sorted(names)}")
    # Sorted, so that the verdict does not depend on the order in which candidates are given.
    rows = sorted(candidates, key=lambda row: row.doc_id)
    is_member = np.array([row.split == "indexed" for row in rows])
    n_members, n_others = int(is_member.sum()), int((~is_member).sum())
    if min(n_members, n_others) < MIN_A_SIDE:
        return _unchecked(names.pop(), n_members=n_members, n_non_members=n_others)
    blind = blind_auc([row.text for row in rows], is_member, generator=generator, permutations=permutations)
    rejected = blind.auc > REJECT_ABOVE and blind.low > CHANCE
    return SplitCheck(
        realisation=names.pop(),
        n_members=n_members,
        n_non_members=n_others,
        n_folds=blind.n_folds,
        auc=blind.auc,
        low=blind.low,
        interval=INTERVAL,
        verdict="rejected" if rejected else "accepted",
        reason=f"texts alone tell members from non-members: blind AUC {blind.auc:.3f}, lower bound {blind.low:.3f}"
        if rejected
        else None,
    )


def _unchecked(realisation: str, *, n_members: int, n_non_members: int) -> SplitCheck:
    return SplitCheck(
        realisation=realisation,
        n_members=n_members,
        n_non_members=n_non_members,
        n_folds=0,
        auc=None,
        low=None,
        interval="",
        verdict="not_checked",
        reason=f"a side has fewer than {MIN_A_SIDE} documents",
    )
