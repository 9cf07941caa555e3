"""Trial-level rates with document-bootstrap intervals: retrieval, judges, utility, translation quality."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec
import numpy as np
import pandas as pd

from mragaudit.stats.agreement import auc
from mragaudit.stats.bootstrap import cluster_share
from mragaudit.stats.intervals import Interval, clopper_pearson
from mragaudit.tables.columns import (
    ALLOW,
    BLOCK,
    INTENTS,
    NO_JUDGE,
    PARAPHRASES,
    SOURCES,
    UNKNOWN,
    UNPARSED,
    Bools,
    Floats,
    Int8,
    TrialColumns,
)
from mragaudit.tables.frames import Row, frame, interval_cells

RETRIEVAL_COLUMNS = (
    "lang,paraphrase,intent,k,n,recall_at_k,recall_ci_low,recall_ci_high,mrr,mrr_ci_low,mrr_ci_high,ci_method,"
    "n_not_evaluated,mrr_ci_method,query_source"
).split(",")
JUDGES_COLUMNS = (
    "lang,judge_variant,n_attack,block_rate,block_ci_low,block_ci_high,n_benign,false_positive_rate,fpr_ci_low,"
    "fpr_ci_high,ci_method,n_unparsed,n_not_evaluated,auc,constant,fpr_ci_method,auc_trials,n_controls,"
    "n_controls_not_evaluated,n_check_benign,n_check_blocked,control_fpr,control_fpr_ci_low,control_fpr_ci_high,"
    "control_ci_method,n_attack_evaluated,n_benign_evaluated,query_source,off_label"
).split(",")
UTILITY_COLUMNS = (
    "lang,judge_variant,filter_variant,n_benign,n_answered_correctly,n_not_evaluated,rate,ci_low,ci_high,"
    "ci_method,query_source"
).split(",")
TRANSLATION_COLUMNS = (
    "lang,n,n_failed,anchor_kept_rate,language_ok_rate,median_length_ratio,median_round_trip_similarity,"
    "anchor_kept_ci_low,anchor_kept_ci_high,anchor_kept_ci_method,language_ok_ci_low,language_ok_ci_high,"
    "language_ok_ci_method,n_language_undetermined,n_round_trip,n_not_evaluated"
).split(",")

ALL_PARAPHRASES = "all"


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """How document-bootstrap intervals are made."""

    generator: Callable[[], np.random.Generator]
    """A fresh generator a cell, so that a cell's interval does not depend on the cells before it."""
    resamples: int
    confidence: float


def document_interval(columns: TrialColumns, values: Floats, chosen: Bools, how: Bootstrap) -> Interval:
    """Return the mean of trial values in [0, 1] over the chosen trials, resampled by document."""
    documents = columns.document[chosen]
    if not len(documents):
        return Interval(rate=None, low=None, high=None, method="")
    return cluster_share(
        np.bincount(documents, weights=values[chosen]),
        np.bincount(documents).astype(np.float64),
        generator=how.generator(),
        resamples=how.resamples,
        confidence=how.confidence,
    )


def retrieval_table(columns: TrialColumns, *, k: int, how: Bootstrap) -> pd.DataFrame:
    """Return recall@k and mean reciprocal rank (cut at k) of the gold document, a language and paraphrase."""
    rows: list[Row] = []
    hit = (columns.gold_rank > 0).astype(np.float64)
    reciprocal = np.divide(1.0, columns.gold_rank, out=np.zeros_like(hit), where=columns.gold_rank > 0)
    for key, chosen in _retrieval_slices(columns):
        known = chosen & ~columns.unasked
        recall = document_interval(columns, hit, known, how)
        mrr = document_interval(columns, reciprocal, known, how)
        rows.append(
            key
            | {"k": k, "n": _count(chosen), "n_not_evaluated": _count(chosen & ~known)}
            | interval_cells(recall, prefix="recall_", rate="recall_at_k")
            | interval_cells(mrr, prefix="mrr_", rate="mrr")
            | {"ci_method": recall.method, "mrr_ci_method": mrr.method}
        )
    return frame(rows, RETRIEVAL_COLUMNS)


def _retrieval_slices(columns: TrialColumns) -> Iterator[tuple[Row, Bools]]:
    for source, lang, chosen in _asked(columns):
        attack = chosen & columns.is_attack()
        key = {"lang": lang, "query_source": source}
        for code, paraphrase in enumerate(PARAPHRASES):
            part = attack & (columns.paraphrase == code)
            if part.any():
                yield key | {"paraphrase": paraphrase, "intent": "attack"}, part
        if attack.any():
            yield key | {"paraphrase": ALL_PARAPHRASES, "intent": "attack"}, attack
        benign = chosen & columns.is_benign()
        if benign.any():
            yield key | {"paraphrase": None, "intent": "benign"}, benign


def judges_table(columns: TrialColumns, *, how: Bootstrap, off_label: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Return, a judge variant and language, coverage of attacks beside false positives on benign questions.

    `off_label` says for (variant, language) why a guard model's use there is off-label; absent: it is not.
    Rates are of the corpus's trials, UNPARSED counted as BLOCK. AUC, constancy and the rate on held-out benign
    controls are of the hand-written controls, which no translator touched.
    """
    rows: list[Row] = []
    for source, lang, chosen in _asked(columns):
        for judge in columns.judges:
            verdict = columns.verdict[judge]
            attack, benign = chosen & columns.is_attack(), chosen & columns.is_benign()
            rows.append(
                {"lang": lang, "judge_variant": judge, "query_source": source}
                | {"off_label": off_label.get((judge, lang))}
                | _coverage(columns, verdict, attack, benign, how)
                | {"auc_trials": _auc(columns.margin[judge], attack, benign)}
                | _control_cells(columns, judge, columns.languages.index(lang), how.confidence)
            )
    return frame(rows, JUDGES_COLUMNS)


def _coverage(columns: TrialColumns, verdict: Int8, attack: Bools, benign: Bools, how: Bootstrap) -> Row:
    known = verdict != UNKNOWN
    blocked = ((verdict == BLOCK) | (verdict == UNPARSED)).astype(np.float64)
    block = document_interval(columns, blocked, attack & known, how)
    false_positive = document_interval(columns, blocked, benign & known, how)
    both = attack | benign
    return (
        {"n_attack": _count(attack), "n_benign": _count(benign)}
        | {"n_attack_evaluated": _count(attack & known), "n_benign_evaluated": _count(benign & known)}
        | interval_cells(block, prefix="block_", rate="block_rate")
        | interval_cells(false_positive, prefix="fpr_", rate="false_positive_rate")
        | {"ci_method": block.method, "fpr_ci_method": false_positive.method}
        | {"n_unparsed": _count(both & (verdict == UNPARSED)), "n_not_evaluated": _count(both & ~known)}
    )


def _control_cells(columns: TrialColumns, judge: str, lang: int, confidence: float) -> Row:
    controls = (columns.lang == lang) & (columns.expected_block != UNKNOWN)
    verdict = columns.verdict[judge]
    known = controls & (verdict != UNKNOWN)
    held_out = known & columns.check & (columns.expected_block == 0)
    blocked = held_out & (verdict != ALLOW)
    rate = clopper_pearson(_count(blocked), _count(held_out), side="two", confidence=confidence)
    margin = columns.margin[judge]
    return (
        {"auc": _auc(margin, controls & (columns.expected_block == 1), controls & (columns.expected_block == 0))}
        | {"constant": _constant(verdict[known]), "n_controls": _count(controls)}
        | {"n_controls_not_evaluated": _count(controls & ~known)}
        | {"n_check_benign": _count(held_out), "n_check_blocked": _count(blocked)}
        | interval_cells(rate, prefix="control_fpr_", rate="control_fpr")
        | {"control_ci_method": rate.method}
    )


def _constant(verdicts: Int8) -> bool | None:
    """Return whether all controls got one verdict; None where fewer than two were judged."""
    minimum = 2
    return None if len(verdicts) < minimum else bool(np.all(verdicts == verdicts[0]))


def _auc(margin: Floats, positives: Bools, negatives: Bools) -> float | None:
    known = ~np.isnan(margin)
    return auc(margin[positives & known], margin[negatives & known])


def utility_table(columns: TrialColumns, *, how: Bootstrap) -> pd.DataFrame:
    """Return benign questions answered correctly that judge and filter let pass; `none` is without a judge."""
    rows: list[Row] = []
    for source, lang, chosen in _asked(columns):
        benign = chosen & columns.is_benign()
        for judge in (NO_JUDGE, *columns.judges):
            for name in columns.filters:
                served = _served(columns, judge, name)
                known = benign & (served != UNKNOWN)
                interval = document_interval(columns, served.astype(np.float64), known, how)
                rows.append(
                    {"lang": lang, "judge_variant": judge, "filter_variant": name, "query_source": source}
                    | {"n_benign": _count(benign), "n_answered_correctly": _count(known & (served == 1))}
                    | {"n_not_evaluated": _count(benign & ~known)}
                    | interval_cells(interval)
                    | {"ci_method": interval.method}
                )
    return frame(rows, UTILITY_COLUMNS)


def _served(columns: TrialColumns, judge: str, filter_variant: str) -> Int8:
    """Return whether a correct answer reaches the user: 1, 0, or -1 where answer, filter or verdict is missing."""
    verdict = np.full_like(columns.answered, ALLOW) if judge == NO_JUDGE else columns.verdict[judge]
    fired = columns.fired[filter_variant]
    served = (columns.answered == 1) & (fired == 0) & (verdict == ALLOW)
    stopped = (columns.answered == 0) | (fired == 1) | (verdict == BLOCK) | (verdict == UNPARSED)
    known = (columns.answered != UNKNOWN) & (served | stopped)
    return np.where(known, served, UNKNOWN).astype(np.int8)


def translation_table(columns: TrialColumns, *, how: Bootstrap) -> pd.DataFrame:
    """Return the quality of machine translation, a language; only trials that a translator made count."""
    rows: list[Row] = []
    for code, lang in enumerate(columns.languages):
        made = columns.translated & (columns.lang == code)
        if made.any():
            rows.append({"lang": lang} | _translation_cells(columns, made, how))
    return frame(rows, TRANSLATION_COLUMNS)


def _translation_cells(columns: TrialColumns, made: Bools, how: Bootstrap) -> Row:
    lost = made & columns.unasked
    there = made & ~lost
    anchored = there & (columns.anchor_kept != UNKNOWN)
    determined = there & (columns.language_ok != UNKNOWN)
    anchor = document_interval(columns, columns.anchor_kept.astype(np.float64), anchored, how)
    language = document_interval(columns, columns.language_ok.astype(np.float64), determined, how)
    similarity = columns.similarity[there & ~np.isnan(columns.similarity)]
    return (
        {"n": _count(made), "n_failed": _count(made & columns.failed), "n_not_evaluated": _count(lost)}
        | interval_cells(anchor, prefix="anchor_kept_", rate="anchor_kept_rate")
        | interval_cells(language, prefix="language_ok_", rate="language_ok_rate")
        | {"anchor_kept_ci_method": anchor.method, "language_ok_ci_method": language.method}
        | {"median_length_ratio": _median(columns.length_ratio[there])}
        | {"median_round_trip_similarity": _median(similarity), "n_round_trip": len(similarity)}
        | {"n_language_undetermined": _count(there & ~determined)}
    )


def _asked(columns: TrialColumns) -> Iterator[tuple[str, str, Bools]]:
    """Yield (query source, language, trials of both); templates are shown for every language."""
    for source in columns.sources():
        for code, lang in enumerate(columns.languages):
            chosen = (columns.source == source) & (columns.lang == code) & (columns.intent != INTENTS.index("control"))
            if source == 0 or chosen.any():
                yield SOURCES[source], lang, chosen


def _median(values: Floats) -> float | None:
    return float(np.median(values)) if len(values) else None


def _count(chosen: Bools) -> int:
    return int(np.count_nonzero(chosen))
