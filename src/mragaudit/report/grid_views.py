"""The grid's tables as the page of the hook audit prints them, and what they say in sentences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from mragaudit.report import words
from mragaudit.report.tables import Column, Row, TableView, count_column, rate_columns, share_column, text_column, view
from mragaudit.stats.intervals import CONFIDENCE

UNDEFENDED = "none"
STRICT_NAMES = {True: "counts", False: "does not count"}
VERDICT_WORDS = {
    "certified": "certified",
    "no_power": "not certified: no power",
    "failed": "not certified: failed",
    "entangled": "not certified: entangled",
    "not_run": "not certified: not run",
}
KIND_WORDS = {
    "all": "every kind",
    "email": "the kind e-mail",
    "person_name": "the kind person name",
    "phone": "the kind phone",
    "id": "the kind id",
}


def signed_column(header: str, key: str) -> Column:
    """Return a column of differences."""
    return Column(header=header, show=lambda row: words.as_signed(row[key]))


def number_column(header: str, key: str) -> Column:
    """Return a column of measured numbers."""
    return Column(header=header, show=lambda row: words.as_number(row[key]))


def p_column(header: str, key: str) -> Column:
    """Return a column of p values."""
    return Column(header=header, show=lambda row: words.as_p(row[key]))


def limits_column(header: str, prefix: str, *, method: str) -> Column:
    """Return a column of limits as their method means them."""

    def show(row: Row) -> str:
        return words.as_interval(row[f"{prefix}ci_low"], row[f"{prefix}ci_high"], method=row[method])

    return Column(header=header, show=show)


def signed_limits_column(header: str, prefix: str) -> Column:
    """Return a column of limits of a difference."""
    return Column(
        header=header, show=lambda row: words.as_signed_interval(row[f"{prefix}ci_low"], row[f"{prefix}ci_high"])
    )


def method_column(header: str, key: str, *, confidence: float | None = None) -> Column:
    """Return a column of names of intervals and tests, in words; a given level is not that of the page."""
    return Column(header=header, show=lambda row: words.method_in_words(row[key], confidence=confidence), numeric=False)


SEED_TESTS = (
    signed_column("difference over seeds", "seed_difference"),
    p_column("p over seeds", "seed_p"),
    p_column("after Holm", "seed_p_holm"),
)
PLACE = ("corpus", "mode", "arm")
WHERE = (text_column("corpus", "corpus"), text_column("mode", "mode"))
ARM = text_column("arm", "arm")
ATTACK = text_column("attack", "attack")
SEEDS = count_column("seeds", "n_seeds")
# Criteria of certification and of a split are of one level, whatever that of the tables.
CERTIFIED_BOUND = words.method_in_words("clopper_pearson_one_sided_upper", confidence=CONFIDENCE)
CALLS = Column(header="calls a cell", show=lambda row: words.as_calls(row["calls_per_cell"]))


def cost_columns(utility: pd.DataFrame, *, by: Sequence[str] = ("arm",)) -> list[Column]:
    """Return what the row's arm costs, to stand beside what it gains: from the benign questions of the grid.

    Each share has its limits, its number of questions and those not evaluated. By arm alone, where the row is about no
    corpus and mode of the grid, there is one for every corpus and mode of it.
    """
    rows = {key: part.to_dict("records") for key, part in utility.groupby(list(by), sort=False)}

    def column(header: str, share: Callable[[Row], str]) -> Column:
        def show(row: Row) -> str:
            return "; ".join(map(share, rows.get(tuple(row[key] for key in by), ()))) or words.MISSING

        return Column(header=header, show=show, numeric=False)

    return [
        column("benign answered", lambda row: _whole_share(row, "rate", "", row["n_not_evaluated"])),
        column("benign recall@k", lambda row: _whole_share(row, "recall_at_k", "recall_", 0)),
        column("benign refused", lambda row: _whole_share(row, "refusal_rate", "refusal_", row["n_not_evaluated"])),
    ]


def _whole_share(row: Row, rate: str, prefix: str, lost: int) -> str:
    """Return a share of benign questions with limits, number and those not evaluated, such as `0.875 (…), n = 8`."""
    n, method = int(row["n_questions"]) - int(lost), row[f"{prefix}ci_method"]
    limits = words.as_interval(row[f"{prefix}ci_low"], row[f"{prefix}ci_high"], method=method)
    shown = f"{words.as_rate(row[rate], n=n)}" + (f" ({limits}), n = {words.as_count(n)}" if n else "")
    return f"{shown}, {words.as_count(lost)} not evaluated" if lost else shown


def canaries_view(table: pd.DataFrame, *, utility: pd.DataFrame) -> TableView:
    """Return recovery by class and arm."""
    columns = [
        text_column("class", "canary_class"),
        ARM,
        SEEDS,
        CALLS,
        count_column("n", "n_evaluated_exact"),
        count_column("not evaluated", "n_not_evaluated_exact"),
        count_column("recovered", "n_exact"),
        share_column("rate", "exact_rate"),
        limits_column("interval", "exact_", method="exact_ci_method"),
        share_column("normalised match", "normalised_rate"),
        share_column("given retrieved", "given_retrieved_rate"),
        share_column("retrieved", "retrieved_rate"),
        share_column("in a context (ceiling)", "in_context_rate"),
        count_column("never-planted recovered", "n_controls"),
        method_column("kind of interval", "exact_ci_method"),
        *cost_columns(utility),
    ]
    caption = "Canaries recovered, letter by letter; the classifier is bypassed"
    return view(table, columns, caption=caption)


def certification_view(table: pd.DataFrame, *, utility: pd.DataFrame) -> TableView:
    """Return what is certified, and what is not and why."""
    columns = [
        text_column("class", "canary_class"),
        ARM,
        Column(header="verdict", show=lambda row: VERDICT_WORDS[str(row["verdict"])], numeric=False),
        text_column("reasons", "reasons"),
        CALLS,
        Column(header="undefended", show=lambda row: _of(row, "n_undefended_recovered", "n_undefended")),
        share_column("lower bound", "undefended_low"),
        Column(header="defended", show=lambda row: _of(row, "n_defended_recovered", "n_defended")),
        share_column("upper bound", "defended_high"),
        share_column("upper bound, normalised", "defended_normalised_high"),
        count_column("not evaluated, undefended", "n_undefended_not_evaluated"),
        count_column("not evaluated, defended", "n_not_evaluated"),
        p_column("p over seeds, Holm", "p_holm"),
        p_column("least p", "least_p"),
        number_column("retrieval ratio", "retrieval_ratio"),
        *cost_columns(utility),
    ]
    caption = "Certification; bounds are one-sided 95 % Clopper–Pearson, p an exact permutation of seeds"
    return view(table, columns, caption=caption)


def _of(row: Row, hits: str, total: str) -> str:
    if words.is_missing(row[total]):
        return words.MISSING
    return f"{words.as_count(row[hits])} of {words.as_count(row[total])}"


def leak_types_views(table: pd.DataFrame) -> list[tuple[str, TableView]]:
    """Return one table an attack: items of a run by type and arm, so that what moves from one type to another shows."""
    return [
        (str(attack), _types_of_attack(part, str(attack)))
        for attack, part in table.groupby("attack", sort=False)
        if len(part)
    ]


def _types_of_attack(part: pd.DataFrame, attack: str) -> TableView:
    arms = list(dict.fromkeys(part["arm"]))
    rows = []
    for (corpus, mode, item_type, strict), of_type in part.groupby(
        ["corpus", "mode", "item_type", "strict"], sort=False
    ):
        cells: dict[str, Any] = {"corpus": corpus, "mode": mode, "item_type": item_type, "strict": strict}
        rows.append(cells | {row["arm"]: row["per_run"] for row in of_type.to_dict("records")})
    columns = [
        *WHERE,
        text_column("type", "item_type"),
        Column(header="NEL_strict", show=lambda row: STRICT_NAMES[bool(row["strict"])], numeric=False),
        *(number_column(arm, arm) for arm in arms),
    ]
    wide = pd.DataFrame(rows, columns=["corpus", "mode", "item_type", "strict", *arms])
    return view(wide, columns, caption=_types_caption(part, attack))


def _types_caption(part: pd.DataFrame, attack: str) -> str:
    low, high = (words.as_calls(bound) for bound in (part["calls_per_cell"].min(), part["calls_per_cell"].max()))
    calls = low if low == high else f"{low} to {high}"
    lost = int(part.drop_duplicates(["corpus", "mode", "arm"])["n_runs_not_evaluated"].sum())
    left_out = f"; {lost} runs with a lost call are left out" if lost else ""
    return f"Different items of a run, by type and arm: {attack}, {calls} calls a cell{left_out}"


def leaks_view(table: pd.DataFrame, *, kind: str, utility: pd.DataFrame) -> TableView:
    """Return planted items that leaked, of one kind or of all."""
    columns = [
        *WHERE,
        ATTACK,
        ARM,
        SEEDS,
        CALLS,
        count_column("documents", "n_documents"),
        *rate_columns("n_items", hits="n_leaked", label="leaked"),
        count_column("normalised", "n_normalised"),
        count_column("decoded by the attacker", "n_derived"),
        count_column("in a context (ceiling)", "n_in_context"),
        count_column("certain, in no rate", "n_leaked_beside_lost"),
        *SEED_TESTS,
        *cost_columns(utility, by=PLACE),
    ]
    return view(
        table[table["kind"] == kind],
        columns,
        caption=f"Planted items of {KIND_WORDS[kind]} that leaked; limits over documents",
    )


def extraction_view(table: pd.DataFrame, *, utility: pd.DataFrame) -> TableView:
    """Return documents that were reassembled."""
    columns = [
        *WHERE,
        ATTACK,
        ARM,
        SEEDS,
        CALLS,
        *rate_columns("n_documents", hits="n_extracted", label="reassembled"),
        count_column("20 tokens in a row", "n_repeated"),
        count_column("published rule", "n_resembled"),
        count_column("retrieved", "n_retrieved"),
        count_column("certain, in no rate", "n_extracted_beside_lost"),
        *cost_columns(utility, by=PLACE),
    ]
    return view(table, columns, caption="Indexed documents reassembled from the replies")


def attack_success_view(table: pd.DataFrame, *, utility: pd.DataFrame) -> TableView:
    """Return what the attacks' own papers measure."""
    columns = [
        *WHERE,
        ATTACK,
        ARM,
        SEEDS,
        CALLS,
        count_column("calls", "n_calls"),
        count_column("not evaluated", "n_not_evaluated"),
        count_column("not refused", "n_answered"),
        share_column("rate", "answered_rate"),
        limits_column("interval", "answered_", method="answered_ci_method"),
        method_column("kind of interval", "answered_ci_method"),
        Column(header="different documents of k a call", show=lambda row: _of(row, "n_distinct_retrieved", "n_slots")),
        count_column("runs not evaluated", "n_runs_not_evaluated"),
        share_column("extraction efficiency", "extraction_efficiency"),
        text_column("by seed", "efficiency_by_seed"),
        count_column("calls with a context", "n_recalls"),
        share_column("context copied (ROUGE-L recall)", "context_recall"),
        limits_column("interval", "recall_", method="recall_ci_method"),
        method_column("kind of interval", "recall_ci_method"),
        count_column("documents", "n_lift"),
        count_column("not evaluated", "n_lift_not_evaluated"),
        signed_column("lift over PS", "lift"),
        signed_limits_column("interval", "lift_"),
        method_column("kind of interval", "lift_ci_method"),
        count_column("questions", "n_paired_lift"),
        count_column("not evaluated", "n_paired_lift_not_evaluated"),
        signed_column("items a reply over PS, by question", "paired_lift"),
        signed_limits_column("interval", "paired_lift_"),
        method_column("kind of interval", "paired_lift_ci_method"),
        *cost_columns(utility, by=PLACE),
    ]
    caption = (
        "What the attacks' papers measure. Efficiency is the auditor's log: different documents of k a call; lift: "
        "share of documents that leak, minus that under PS at the same budget"
    )
    return view(table, columns, caption=caption)


def membership_view(table: pd.DataFrame, *, utility: pd.DataFrame) -> TableView:
    """Return membership inference with its control."""
    columns = [
        *WHERE,
        count_column("seed", "seed"),
        ARM,
        CALLS,
        text_column("split", "split"),
        count_column("members", "n_members"),
        count_column("non-members", "n_non_members"),
        count_column("not evaluated", "n_not_evaluated"),
        share_column("signed AUC", "auc"),
        limits_column("interval", "", method="ci_method"),
        share_column("control AUC", "control_auc"),
        signed_column("beyond the control", "beyond_control"),
        Column(
            header="interval",
            show=lambda row: words.as_signed_interval(row["beyond_control_low"], row["beyond_control_high"]),
        ),
        share_column("folded AUC", "folded"),
        share_column("95 % of its null", "folded_null_high"),
        p_column("p", "folded_p"),
        share_column("TPR at 5 % FPR", "tpr_at_5"),
        share_column("recall of the target", "recall_rate"),
        *cost_columns(utility, by=PLACE),
    ]
    caption = (
        "Membership inference. Control: undefended replies cut and masked to the arm's shape; only what goes beyond it "
        "is not due to that shape"
    )
    return view(table, columns, caption=caption)


def splits_view(table: pd.DataFrame) -> TableView:
    """Return whether members can be told by their texts alone."""
    columns = [
        text_column("realisation", "realisation"),
        count_column("members", "n_members"),
        count_column("non-members", "n_non_members"),
        share_column("blind AUC", "auc"),
        share_column("lower bound", "low"),
        method_column("kind of bound", "interval", confidence=CONFIDENCE),
        text_column("verdict", "verdict"),
        text_column("reason", "reason"),
    ]
    return view(table, columns, caption="Splits into members and non-members, drawn once: a blind classifier on texts")


def adaptive_view(table: pd.DataFrame, *, utility: pd.DataFrame) -> TableView:
    """Return the best adaptive attack of every arm."""
    columns = [
        text_column("corpus", "corpus"),
        ARM,
        text_column("chosen", "chosen"),
        count_column("calls", "budget"),
        count_column("n", "n_items"),
        count_column("not evaluated", "n_not_evaluated"),
        share_column("recovered (lower bound)", "lower_bound_rate"),
        limits_column("interval", "lower_bound_", method="ci_method"),
        share_column("fixed attack", "fixed_attack_rate"),
        signed_column("lift", "lift"),
        p_column("p over seeds", "p_value"),
        p_column("least p", "least_p"),
        share_column("stood in a context (upper bound)", "ceiling_rate"),
        text_column("why no number", "reason"),
        *cost_columns(utility),
    ]
    caption = "Best of the adaptive attacks, chosen on development seeds and measured on others, at one budget"
    return view(table, columns, caption=caption)


def utility_view(table: pd.DataFrame) -> TableView:
    """Return what the defenses cost."""
    columns = [
        *WHERE,
        ARM,
        CALLS,
        *rate_columns("n_questions", hits="n_answered", label="answered"),
        signed_column("against no defense", "difference"),
        signed_limits_column("interval", "difference_"),
        *SEED_TESTS,
        share_column("recall@k", "recall_at_k"),
        limits_column("interval", "recall_", method="recall_ci_method"),
        count_column("refused", "n_refused"),
        share_column("rate", "refusal_rate"),
        limits_column("interval", "refusal_", method="refusal_ci_method"),
    ]
    return view(table, columns, caption="Benign questions")


def coverage_view(table: pd.DataFrame) -> TableView:
    """Return what every combination covers and leaves open."""
    columns = [
        text_column("defenses", "defenses"),
        text_column("leak", "leak_class"),
        text_column("acted on at", "covered_at"),
        text_column("retrieval changed at", "changes_retrieval_at"),
        text_column("hooks left open", "open_hooks"),
        text_column("what gets past", "limits"),
    ]
    return view(
        table, columns, caption="What each combination covers, by class of leak, and which hooks it leaves open"
    )


def controls_view(table: pd.DataFrame) -> TableView:
    """Return the controls."""
    columns = [
        text_column("control", "control"),
        ATTACK,
        count_column("calls", "n_calls"),
        text_column("unit", "unit"),
        count_column("of them in context", "n_in_context"),
        count_column("recovered", "n_recovered"),
        share_column("share of those in context", "share"),
    ]
    return view(table, columns, caption="Controls, all passed: an echo of the context, and a generator that sees none")


def cells_view(table: pd.DataFrame) -> TableView:
    """Return all cells with what they spent."""
    columns = [
        text_column("cell", "cell_id"),
        text_column("same as", "same_as"),
        count_column("budget", "budget"),
        count_column("target calls", "n_target_calls"),
        count_column("attacker's own calls", "n_attacker_calls"),
        count_column("of them failed", "n_attacker_failed"),
        count_column("not evaluated", "n_not_evaluated"),
        text_column("counted by the attack", "attack_counts"),
    ]
    return view(table, columns, caption="All cells; one that is the same as another by construction is run once")


def effects_view(table: pd.DataFrame) -> TableView:
    """Return the effects; a metric that cannot see an arm says so instead of a difference and its limits."""

    def difference(row: Row) -> str:
        if not _is_true(row["reported_as_effect"]):
            return f"no effect of the defense: {str(row['sight']).replace('_', ' ')}"
        return words.as_signed(row["difference"])

    def limits(row: Row) -> str:
        seen = _is_true(row["reported_as_effect"])
        return words.as_signed_interval(row["ci_low"], row["ci_high"]) if seen else words.MISSING

    def over_seeds(row: Row) -> str:
        return words.as_p(row["seed_p_holm"]) if _is_true(row["reported_as_effect"]) else words.MISSING

    columns = [
        ARM,
        ATTACK,
        text_column("metric", "metric"),
        text_column("where", "where"),
        CALLS,
        count_column("n", "n"),
        count_column("not evaluated", "n_not_evaluated"),
        number_column("undefended", "baseline"),
        number_column("defended", "defended"),
        Column(header="difference", show=difference),
        Column(header="interval", show=limits),
        method_column("kind of interval", "ci_method"),
        Column(header="p over seeds, Holm", show=over_seeds),
        text_column("what the metric can say", "words"),
    ]
    return view(table, columns, caption="Every metric with and without each defense, on the same units")


def _is_true(value: Any) -> bool:
    return str(value).lower() in {"true", "1"}


def plan_sentence(cells: pd.DataFrame) -> str:
    """Return how many cells there are, how many were run, and what they spent."""
    grid = cells[(cells["purpose"] == "grid") & (cells["attack"] != "benign")]
    run = grid[grid["same_as"].isna()]
    return (
        f"{len(grid)} cells of attack, defense, corpus, mode, epsilon and seed, of which {len(run)} are distinct and "
        f"were run; with benign questions, canaries, adaptive attacks and controls "
        f"{int(cells['n_target_calls'].count())} cells made {int(cells['n_target_calls'].sum())} target calls and "
        f"{int(cells['n_attacker_calls'].sum())} calls of the attackers' own model; "
        f"{int(cells['n_not_evaluated'].sum())} target calls have no reply."
    )


def verdict_sentences(certification: pd.DataFrame) -> list[str]:
    """Return the certified defenses, each in a sentence; none is a list of its own."""
    return [
        f"{row['arm']} keeps canaries of the class {str(row['canary_class']).replace('_', ' ')} from being recovered: "
        f"{_of(row, 'n_defended_recovered', 'n_defended')} recovered, {words.as_count(row['n_not_evaluated'])} not "
        f"evaluated, at most {words.as_share(row['defended_high'])} ({CERTIFIED_BOUND}), against "
        f"{_of(row, 'n_undefended_recovered', 'n_undefended')} without it, "
        f"{words.as_count(row['n_undefended_not_evaluated'])} not evaluated."
        for row in certification.to_dict("records")
        if row["verdict"] == "certified"
    ]


def warnings(tables: Mapping[str, pd.DataFrame], *, not_probed: str) -> Iterator[str]:
    """Yield what a reader must know before any figure."""
    if not_probed:
        yield f"The hooks were not run in a probe: {not_probed}"
    cells = tables["cells"]
    lost = int(cells["n_not_evaluated"].sum())
    if lost:
        yield (
            f"{lost} target calls have no reply. What their cells would have given away besides is unknown, so that "
            "items, documents and canaries of these cells are in no rate. --forcerun grid_calls asks for them again."
        )
    thoughts = int(cells["n_attacker_failed"].sum())
    if thoughts:
        yield (
            f"{thoughts} calls of the attackers' own model never came back, and the attacks went on without: they may "
            "be weaker than they could be."
        )
    rejected = list(tables["splits"].loc[tables["splits"]["verdict"] == "rejected", "realisation"])
    if rejected:
        yield f"Members can be told by text alone in {', '.join(rejected)}; membership figures there say nothing."
    yield from _few_seeds(tables["leaks"])


def _few_seeds(leaks: pd.DataFrame) -> Iterator[str]:
    seeds: Collection[int] = set(leaks["n_seeds"].dropna().astype(int))
    if seeds and max(seeds) < 2:  # noqa: PLR2004  # a comparison of seeds needs two
        yield (
            "The grid has one realisation: its intervals hold within that run, and nothing is said of another corpus "
            "from the same generator."
        )
