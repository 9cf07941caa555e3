"""One trial's whole way, as the report shows it."""

from __future__ import annotations

from mragaudit.leaks import score_leak
from mragaudit.records.documents import Document
from mragaudit.records.queries import Query
from mragaudit.records.results import Generation, Retrieval
from mragaudit.records.trials import Trial
from mragaudit.report.model import RetrievedText, Trace, TraceFilter, TraceVerdict
from mragaudit.stages.rows import Rows


def trace_of(trial: Trial, rows: Rows, *, stop: str) -> Trace:
    """Return a trial's trace; `stop` is where it stopped, which is shown for attacks alone."""
    query = rows.queries[trial.query_id]
    document = rows.documents.get(trial.doc_id) if trial.doc_id is not None else None
    generation = rows.generations.get(trial.trial_id)
    answer = generation.text if generation is not None and generation.not_evaluated is None else None
    back = rows.backtranslations.get(trial.trial_id)
    return Trace(
        trial_id=trial.trial_id,
        doc_id=trial.doc_id,
        lang=trial.lang,
        intent=trial.intent,
        paraphrase=trial.paraphrase,
        query_source=trial.query_source,
        pii_type=trial.pii_type,
        stage_of_escape=stop if trial.intent == "attack" else None,
        document_text=document.text if document is not None else query.context or "",
        planted_value=document.pii_value if document is not None else "",
        anchor=document.anchor if document is not None else "",
        query_english=query.text if query.lang == "en" else None,
        query_text=rows.translations[trial.trial_id].text,
        back_translation=back.text if back is not None else None,
        round_trip_similarity=trial.round_trip_similarity,
        translation_failed=trial.translation_failed,
        retrieved=_retrieved(rows.retrieval.get(trial.trial_id), trial.doc_id, rows),
        verdicts=_verdicts(trial, rows),
        answer=answer,
        planted_spans=_planted_spans(document, query, answer),
        filters=_filters(trial, rows),
        leak_published=trial.leak_published,
        leak_verbatim=trial.leak_verbatim,
        leak_normalised=trial.leak_normalised,
        leak_partial_share=trial.leak_partial_share,
        echoed=trial.echoed,
        expected_answer=query.expected_answer,
        answered_correctly=trial.answered_correctly,
        not_evaluated=_why_missing(generation, trial),
    )


def _why_missing(generation: Generation | None, trial: Trial) -> str | None:
    return trial.not_evaluated or (generation.not_evaluated if generation is not None else None)


def _retrieved(row: Retrieval | None, gold: str | None, rows: Rows) -> tuple[RetrievedText, ...]:
    if row is None:
        return ()
    return tuple(
        RetrievedText(doc_id=name, score=score, is_gold=name == gold, text=rows.documents[name].text)
        for name, score in zip(row.doc_ids, row.scores, strict=True)
    )


def _verdicts(trial: Trial, rows: Rows) -> tuple[TraceVerdict, ...]:
    found = [(name, judged[trial.trial_id]) for name, judged in rows.judgements.items()]
    return tuple(
        TraceVerdict(variant=name, verdict=row.verdict, margin=row.margin, judged_text=row.judged_text)
        for name, row in found
    )


def _filters(trial: Trial, rows: Rows) -> tuple[TraceFilter, ...]:
    found = [(name, hits.get(trial.trial_id)) for name, hits in rows.filtered.items()]
    return tuple(
        TraceFilter(variant=name, fired=row.fired, families=row.families, spans=row.spans)
        for name, row in found
        if row is not None
    )


def _planted_spans(document: Document | None, query: Query, answer: str | None) -> tuple[tuple[int, int], ...]:
    if document is None or answer is None:
        return ()
    score = score_leak(
        pii_type=document.pii_type,
        value=document.pii_value,
        answer=answer,
        query=query.text,
        few_shot_text="",
    )
    return score.spans
