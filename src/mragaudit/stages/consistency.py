"""Whether the rows of all stages can belong together: each function yields one line for every row that cannot.

Stages without a model are made again by `mragaudit verify`; here is what can be known of the others from their
neighbours alone. No line holds a text or a planted value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.errors import GateError, MragauditError
from mragaudit.judges.margins import Threshold, choose_threshold, margin_of
from mragaudit.judges.parser import Verdict
from mragaudit.protocols import OptionScores
from mragaudit.records.queries import Query, Translation, trial_id_of
from mragaudit.records.repeats import REPEATED_STAGES, RepeatedStage
from mragaudit.records.results import Generation, Judgement, Retrieval
from mragaudit.stages.gates import require_same_ids
from mragaudit.stages.judging import WITH_CONTEXT, reader_of
from mragaudit.stages.repeats import draw_trials, repeats_calls
from mragaudit.stages.rows import Inputs, Rows, check_rows
from mragaudit.stages.translate import list_tasks

_SCORES = re.compile(r"log p\(BLOCK\) (-?[\d.]+|-inf), log p\(ALLOW\) (-?[\d.]+|-inf)")
ROUNDING = 2e-6
"""Three numbers of six decimals, each rounded on its own."""


def missing_rows(rows: Rows, inputs: Inputs, *, settings: Settings) -> Iterator[str]:
    """Yield what the gates of the stages say of lost, doubled or invented trials, down from the queries."""
    corpus = settings.corpus
    if corpus.source == "synthetic" and corpus.n_documents != len(rows.documents):
        yield f"corpus: the config asks for {corpus.n_documents} documents, here are {len(rows.documents)}"
    anchors = {name: document.anchor for name, document in rows.documents.items()}
    orphans = [query for query in rows.queries.values() if query.doc_id is not None and query.doc_id not in anchors]
    for query in orphans:
        yield f"queries: query {query.query_id} is about document {query.doc_id}, which is missing"
    known = [query for query in rows.queries.values() if query not in orphans]
    tasks = list_tasks(known, anchors, languages=settings.languages)
    expected = [trial_id_of(task.query.query_id, task.lang) for task in tasks]
    try:
        require_same_ids(expected=expected, actual=rows.translations, where=str(inputs.translations[0].parent))
        check_rows(rows, inputs)
    except GateError as error:
        # What to do about it is for the author of a run, not for its reader.
        yield str(error).partition("; run the stage")[0]
    yield from _missing_repeats(rows, inputs, settings=settings)


def _missing_repeats(rows: Rows, inputs: Inputs, *, settings: Settings) -> Iterator[str]:
    """Yield stages whose repeated trials are not those that seed and config draw."""
    again = rows.repeats
    found: dict[RepeatedStage, Iterable[str]] = {
        "translate": again.translate,
        "backtranslate": again.backtranslate,
        "generate": again.generate,
    }
    expected = {stage: _drawn(stage, rows, settings=settings) for stage in REPEATED_STAGES}
    for stage, names in found.items():
        yield from _other_trials(expected[stage], names, where=inputs.repeats[stage])
    for variant in settings.judge.variants:
        judged = [row.trial_id for row in again.judge.values() if row.variant == variant]
        yield from _other_trials(expected["judge"], judged, where=inputs.repeats["judge"])


def _drawn(stage: RepeatedStage, rows: Rows, *, settings: Settings) -> frozenset[str]:
    if not repeats_calls(stage, settings):
        return frozenset()
    return draw_trials(stage, list(rows.queries.values()), settings=settings)


def _other_trials(expected: Iterable[str], found: Iterable[str], *, where: Sequence[Path]) -> Iterator[str]:
    try:
        require_same_ids(expected=expected, actual=found, where=str(where[0].parent))
    except GateError as error:
        yield str(error).partition("; run the stage")[0]


def contradictions(rows: Rows, thresholds: Mapping[str, Threshold], *, settings: Settings) -> Iterator[str]:
    """Yield every row that contradicts a row of an earlier stage; the rows are complete."""
    for trial in rows.translations.values():
        yield from _named(f"translations: trial {trial.trial_id}", _of_translation(trial, rows))
    for row in rows.retrieval.values():
        yield from _named(f"retrieval: trial {row.trial_id}", _of_retrieval(row, rows, settings=settings))
    for answer in rows.generations.values():
        yield from _named(f"generations: trial {answer.trial_id}", _of_answer(answer, rows, settings=settings))
    try:
        read = reader_of(settings)
    except MragauditError as error:
        yield f"judgements: the guard that gave the replies cannot be read: {error}"
        return
    for variant, judged in rows.judgements.items():
        threshold = thresholds.get(variant)
        for verdict in judged.values():
            where = f"judgements/{variant}: trial {verdict.trial_id}"
            yield from _named(where, _of_verdict(verdict, rows, variant=variant))
            yield from _named(where, _of_decision(verdict, threshold, settings=settings, read=read))
    yield from _of_repeats(rows, thresholds, settings=settings, read=read)
    yield from _of_thresholds(rows, thresholds, settings=settings)


def _of_repeats(
    rows: Rows, thresholds: Mapping[str, Threshold], *, settings: Settings, read: Callable[[str], Verdict]
) -> Iterator[str]:
    """Yield what is wrong with the rows of repeated calls, which follow from the same rows as the first ones."""
    again = rows.repeats
    for trial in again.translate.values():
        where = f"repeats/translate: trial {trial.trial_id}"
        yield from _named(where, _of_translation(trial, rows))
        yield from _named(where, _of_repeated_translation(trial, rows.translations[trial.trial_id]))
    for answer in again.generate.values():
        yield from _named(f"repeats/generate: trial {answer.trial_id}", _of_answer(answer, rows, settings=settings))
    for row in again.judge.values():
        where = f"repeats/judge: variant {row.variant}, trial {row.trial_id}"
        yield from _named(where, _of_verdict(row, rows, variant=row.variant))
        yield from _named(where, _of_decision(row, thresholds.get(row.variant), settings=settings, read=read))


def _of_repeated_translation(again: Translation, first: Translation) -> Iterator[str]:
    if (again.lang, again.translated) != (first.lang, first.translated):
        yield "its language, or whether it is translated, is not that of the first call"
    if again.text == first.text and (again.lang_detected, again.failed) != (first.lang_detected, first.failed):
        yield "its text is that of the first call, and what is said of it is not"


def _named(where: str, faults: Iterator[str]) -> Iterator[str]:
    return (f"{where}: {fault}" for fault in faults)


def _of_translation(row: Translation, rows: Rows) -> Iterator[str]:
    query = rows.queries[row.query_id]
    if row.source_text != query.text:
        yield "its source is not the text of its query"
    same = (row.doc_id, row.intent, row.paraphrase, row.query_source)
    if same != (query.doc_id, query.intent, query.paraphrase, query.query_source):
        yield "document, intent, paraphrase or source differ from its query's"
    if not row.translated and row.text != query.text:
        yield "it is no translation and its text is not its query's"
    if row.length_ratio != round(len(row.text) / max(1, len(query.text)), 4):
        yield "its length ratio is not that of its text"
    if row.anchor_kept is not None and row.anchor_kept != (rows.documents[str(row.doc_id)].anchor in row.text):
        yield "whether its anchor is kept is not what its text shows"


def _of_retrieval(row: Retrieval, rows: Rows, *, settings: Settings) -> Iterator[str]:
    trial = rows.translations[row.trial_id]
    if trial.not_evaluated is not None:
        if row.doc_ids:
            yield "documents stand here for a query that was never asked"
        return
    rank = row.doc_ids.index(trial.doc_id) + 1 if trial.doc_id in row.doc_ids else None
    if row.gold_rank != rank:
        yield f"its gold rank is {row.gold_rank}, its documents say {rank}"
    if len(set(row.doc_ids)) != min(settings.retrieve.k, len(rows.documents)):
        yield f"it has not k = {settings.retrieve.k} different documents"
    if unknown := sorted(set(row.doc_ids) - rows.documents.keys()):
        yield f"document {unknown[0]} is not in the corpus"
    best_first = sorted(zip(row.scores, row.doc_ids, strict=True), key=lambda pair: (-pair[0], pair[1]))
    if [name for _, name in best_first] != list(row.doc_ids):
        yield "its documents do not stand in the order of their scores"


def _of_answer(row: Generation, rows: Rows, *, settings: Settings) -> Iterator[str]:
    if row.not_evaluated is not None:
        if row.text or row.context_doc_ids:
            yield "it is not evaluated and has an answer or a context"
        return
    retrieved = rows.retrieval[row.trial_id].doc_ids
    shown = retrieved if settings.generate.context_order == "best_first" else tuple(reversed(retrieved))
    if row.context_doc_ids != shown:
        yield "its context is not what was retrieved for it"


def _of_verdict(row: Judgement, rows: Rows, *, variant: str) -> Iterator[str]:
    """Yield whether the judge saw the text that its variant shows."""
    trial = rows.translations[row.trial_id]
    back = rows.backtranslations.get(row.trial_id) if variant == "backtranslate" else None
    shown = back.text if back is not None else trial.text
    if row.variant != variant:
        yield f"its variant is {row.variant}"
    if trial.not_evaluated is None and row.judged_text != shown:
        source = "back-translation" if back is not None else "translation"
        yield f"the text that was judged is not the {source}'s"


def _of_decision(
    row: Judgement, threshold: Threshold | None, *, settings: Settings, read: Callable[[str], Verdict]
) -> Iterator[str]:
    """Yield whether a verdict is what its reply, margin and threshold make of it."""
    if row.verdict is None:
        return
    if settings.judge.mode == "parse" and row.verdict != read(row.raw):
        yield "its verdict is not what its reply says"
    if settings.judge.mode == "choice" and row.verdict != row.raw:
        yield f'its verdict is {row.verdict}, and it was held to the reply "{row.raw}"'
    if settings.judge.mode != "margin":
        return
    if threshold is None or threshold.threshold is None or row.margin is None:
        yield "its verdict has no margin or no threshold"
        return
    if (row.verdict == "BLOCK") != (row.margin > threshold.threshold):
        yield f"verdict {row.verdict}, but margin {row.margin:g} and threshold {threshold.threshold:g}"
    logged = _logged_margin(row.raw, default=row.margin)
    if logged is None or abs(row.margin - logged) > ROUNDING:
        yield "its margin is not the difference of its log-probabilities"


def _logged_margin(raw: str, *, default: float) -> float | None:
    """Return the margin of the logged log-probabilities, `default` where one has no bound, None for another reply."""
    found = _SCORES.fullmatch(raw)
    if found is None:
        return None
    if "-inf" in found.groups():
        return default
    return margin_of(OptionScores(logprobs=(float(found[1]), float(found[2])), prompt_tokens=0))


def _of_thresholds(rows: Rows, thresholds: Mapping[str, Threshold], *, settings: Settings) -> Iterator[str]:
    """Yield thresholds that the calibration controls do not give.

    Of the variants with documents only `oracle` judges a control exactly as `calibrate` did: `retrieved` cuts it.
    """
    if settings.judge.mode != "margin":
        return
    trials = [trial_id_of(query.query_id, "en") for query in rows.queries.values() if _chooses(query)]
    for variant, judged in rows.judgements.items():
        if variant in WITH_CONTEXT - {"oracle"}:
            continue
        margins = [row.margin for trial in trials if (row := judged[trial]).margin is not None]
        again = _threshold(margins, thresholds.get(variant), n_controls=len(trials), settings=settings)
        if again is not None:
            yield f"judgements/thresholds.json: {variant}: {again}"


def _chooses(query: Query) -> bool:
    return (query.lang, query.control_split, query.expected_verdict) == ("en", "calibration", "ALLOW")


def _threshold(margins: Sequence[float], found: Threshold | None, *, n_controls: int, settings: Settings) -> str | None:
    """Return what is wrong with a threshold, None where nothing is.

    Where a call was lost, `calibrate` and `judge` may have lost different ones, and nothing can be said.
    """
    if found is None:
        return "there is no threshold"
    if found.n_not_evaluated or len(margins) < n_controls:
        return None
    rate = settings.judge.false_positive_rate
    if found == choose_threshold(margins, variant=found.variant, rate=rate, n_not_evaluated=0):
        return None
    return f"threshold {found.threshold} is not what its {n_controls} calibration controls give"
