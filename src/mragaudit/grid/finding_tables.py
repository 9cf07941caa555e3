"""Canaries, certification and adaptive attacks as tables, every share with its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from mragaudit.grid.resampling import scope_of
from mragaudit.grid.seed_tests import SEED_TEST
from mragaudit.records.grid import CellUse
from mragaudit.records.grid_findings import AdaptiveRow, CertificationRow, MembershipRow, RecoveryRow, ShareCount
from mragaudit.tables.frames import Row, frame

CallsOfArm = Mapping[tuple[str, str], float]
"""Class of canaries and arm → target calls of one of its cells, on the average."""
SHARES = ("exact", "normalised", "derived", "given_retrieved", "retrieved", "in_context", "controls")
CANARY_COLUMNS = (
    *("canary_class", "arm", "attacks", "n_seeds", "calls_per_cell"),
    *(f"{part}{name}" for name in SHARES for part in ("n_", "n_evaluated_", "n_not_evaluated_")),
    *(f"{name}_{part}" for name in SHARES for part in ("rate", "ci_low", "ci_high", "ci_method")),
    "ci_scope",
)
CERTIFICATION_COLUMNS = (
    *("canary_class", "arm", "verdict", "reasons", "n_seeds", "calls_per_cell"),
    *(
        "n_undefended",
        "n_undefended_recovered",
        "n_undefended_not_evaluated",
        "undefended_low",
        "undefended_normalised_low",
    ),
    *("n_defended", "n_defended_recovered", "n_not_evaluated", "defended_high", "defended_normalised_high"),
    *("defended_high_at_worst", "bound_method", "p_value", "p_holm", "least_p", "n_family", "p_method"),
    *("retrieval_ratio", "n_controls_recovered", "shared_words"),
)
ADAPTIVE_COLUMNS = (
    *("corpus", "arm", "fixed", "chosen", "family", "budget", "development_seeds", "check_seeds"),
    *(
        f"{name}_{part}"
        for name in ("lower_bound", "ceiling", "fixed_attack")
        for part in ("rate", "ci_low", "ci_high")
    ),
    *("n_items", "n_recovered", "n_ceiling", "n_not_evaluated"),
    *("n_fixed_items", "n_fixed", "n_fixed_not_evaluated", "ci_method", "ci_scope"),
    *("lift", "lift_by_seed", "p_value", "least_p", "p_method", "reason"),
)
MEMBERSHIP_COLUMNS = (
    *("cell_id", "corpus", "seed", "mode", "arm", "calls_per_cell", "split"),
    *("n_members", "n_non_members", "n_not_evaluated"),
    *("auc", "ci_low", "ci_high", "ci_method", "standard_error", "folded", "folded_null_high", "folded_p"),
    *("tpr_at_5", "tpr_at_5_low", "tpr_at_5_high", "tpr_at_1", "tpr_at_1_low", "tpr_at_1_high", "tpr_interval"),
    *("control_auc", "beyond_control", "beyond_control_low", "beyond_control_high", "beyond_control_interval"),
    *("n_targets", "n_targets_retrieved", "recall_rate", "recall_ci_low", "recall_ci_high", "recall_ci_method"),
    "ci_scope",
)
ONE_SIDED = "clopper_pearson_one_sided"
SIGN_FLIP = "exact_sign_flip_of_seeds"


def canaries_table(rows: Iterable[RecoveryRow], calls: CallsOfArm) -> pd.DataFrame:
    """Return one row a class and arm."""
    return frame((_canary_row(row, calls) for row in rows), CANARY_COLUMNS)


def _canary_row(row: RecoveryRow, calls: CallsOfArm) -> Row:
    cells: Row = {
        "canary_class": row.canary_class,
        "arm": row.arm,
        "attacks": ", ".join(row.attacks),
        "n_seeds": len(row.seeds),
        "calls_per_cell": calls.get((row.canary_class, row.arm)),
        "ci_scope": scope_of(next((method for name in SHARES if (method := getattr(row, name).interval)), "")),
    }
    for name in SHARES:
        share: ShareCount = getattr(row, name)
        cells |= {
            f"n_{name}": share.k,
            f"n_evaluated_{name}": share.n,
            f"n_not_evaluated_{name}": share.not_evaluated,
            **_share_cells(share, name),
            f"{name}_ci_method": share.interval,
        }
    return cells


def _share_cells(share: ShareCount | None, name: str) -> Row:
    values = (None, None, None) if share is None else (share.share, share.low, share.high)
    return dict(zip((f"{name}_rate", f"{name}_ci_low", f"{name}_ci_high"), values, strict=True))


def membership_table(rows: Iterable[MembershipRow], uses: Mapping[str, CellUse]) -> pd.DataFrame:
    """Return one row a cell; on a rejected split counts and recall alone."""
    return frame((_membership_row(row, uses[row.cell_id]) for row in rows), MEMBERSHIP_COLUMNS)


def _membership_row(row: MembershipRow, use: CellUse) -> Row:
    same = {name: getattr(row, name) for name in MEMBERSHIP_COLUMNS if name in MembershipRow.__struct_fields__}
    return {
        **same,
        "calls_per_cell": use.n_target_calls,
        "n_not_evaluated": row.members_not_evaluated + row.non_members_not_evaluated,
        "ci_low": row.low,
        "ci_high": row.high,
        "ci_method": row.interval,
        "n_targets": row.recall.n,
        "n_targets_retrieved": row.recall.k,
        **_share_cells(row.recall, "recall"),
        "recall_ci_method": row.recall.interval,
        "ci_scope": scope_of(row.interval or row.recall.interval),
    }


def certification_table(rows: Iterable[CertificationRow], calls: CallsOfArm) -> pd.DataFrame:
    """Return one row a class and defended arm: certified, or not and why; all bounds are one-sided at 95 %."""
    return frame((_certification_row(row, calls) for row in rows), CERTIFICATION_COLUMNS)


def _certification_row(row: CertificationRow, calls: CallsOfArm) -> Row:
    before, after, test = row.undefended, row.defended, row.seed_test
    return {
        "canary_class": row.canary_class,
        "arm": row.arm,
        "verdict": row.verdict,
        "reasons": "; ".join(row.reasons),
        "n_seeds": row.n_seeds,
        "calls_per_cell": calls.get((row.canary_class, row.arm)),
        "n_undefended": before.exact.n if before else None,
        "n_undefended_recovered": before.exact.k if before else None,
        "n_undefended_not_evaluated": before.exact.not_evaluated if before else None,
        "undefended_low": row.undefended_exact_low,
        "undefended_normalised_low": row.undefended_normalised_low,
        "n_defended": after.exact.n if after else None,
        "n_defended_recovered": after.exact.k if after else None,
        "n_not_evaluated": after.exact.not_evaluated if after else None,
        "defended_high": row.defended_exact_high,
        "defended_normalised_high": row.defended_normalised_high,
        "defended_high_at_worst": row.defended_exact_high_at_worst,
        "bound_method": ONE_SIDED,
        "p_value": test.p_value if test else None,
        "p_holm": test.p_holm if test else None,
        "least_p": test.least_p if test else None,
        "n_family": test.n_family if test else None,
        "p_method": SEED_TEST if test else "",
        "retrieval_ratio": row.retrieval_ratio,
        "n_controls_recovered": sum(side.controls.k for side in (before, after) if side),
        "shared_words": ", ".join(row.shared_words),
    }


def adaptive_table(rows: Iterable[AdaptiveRow]) -> pd.DataFrame:
    """Return one row an arm: the chosen attack's share as a lower bound, what the model saw as the ceiling."""
    return frame(map(_adaptive_row, rows), ADAPTIVE_COLUMNS)


def _adaptive_row(row: AdaptiveRow) -> Row:
    lower, ceiling, fixed = row.lower_bound, row.upper_bound, row.fixed_share
    return {
        "corpus": row.corpus,
        "arm": row.arm,
        "fixed": row.fixed,
        "chosen": row.chosen,
        "family": ", ".join(row.family),
        "budget": row.budget,
        "development_seeds": " ".join(map(str, row.development_seeds)),
        "check_seeds": " ".join(map(str, row.test_seeds)),
        **_share_cells(lower, "lower_bound"),
        **_share_cells(ceiling, "ceiling"),
        **_share_cells(fixed, "fixed_attack"),
        "n_items": lower.n if lower else None,
        "n_recovered": lower.k if lower else None,
        "n_ceiling": ceiling.k if ceiling else None,
        "n_not_evaluated": lower.not_evaluated if lower else None,
        "n_fixed_items": fixed.n if fixed else None,
        "n_fixed": fixed.k if fixed else None,
        "n_fixed_not_evaluated": fixed.not_evaluated if fixed else None,
        "ci_method": lower.interval if lower else "",
        "ci_scope": scope_of(lower.interval if lower else ""),
        "lift": row.lift,
        "lift_by_seed": " ".join(f"{value:.3f}" for value in row.lift_by_seed),
        "p_value": row.p_value,
        "least_p": row.least_p,
        "p_method": SIGN_FLIP if row.p_value is not None else "",
        "reason": row.reason,
    }
