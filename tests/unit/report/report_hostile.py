"""Hostile text in every free-text field of a report."""

from __future__ import annotations

from functools import cache

import report_sample as sample

from mragaudit.report.model import (
    Flag,
    Provenance,
    ReportInput,
    RetrievedText,
    RoleModel,
    StageCount,
    Trace,
    TraceFilter,
    TraceVerdict,
)

MARKUP = '</script><img src=x onerror="window.__hit=1;alert(1)">'
HOSTILE = f"{MARKUP}{{{{7*7}}}}\u202eabc\u2028d\0e"
LONG_LINE = "x" * 1_000_000


def hostile_trace(text: str = HOSTILE) -> Trace:
    """Return a trace with the text in every field that can hold free text."""
    return sample.trace(
        0,
        lang="ar",
        trial_id=f"q00-{text}",
        doc_id=text,
        intent=text,
        paraphrase=text,
        query_source=text,
        stage_of_escape=text,
        document_text=LONG_LINE + text,
        planted_value=text,
        anchor=text,
        query_english=text,
        query_text=text,
        back_translation=text,
        translation_failed=text,
        retrieved=(RetrievedText(doc_id=text, score=0.5, is_gold=True, text=text),),
        verdicts=(TraceVerdict(variant=text, verdict=text, margin=None, judged_text=text),),
        answer=text,
        planted_spans=((2, 9),),
        filters=(TraceFilter(variant=text, fired=True, families=(text,), spans=((text, 0, 4),)),),
        expected_answer=text,
        not_evaluated=text,
    )


@cache
def hostile_report(text: str = HOSTILE) -> ReportInput:
    """Return a report with the text in every field that can hold free text."""
    model = RoleModel(role=text, backend=text, model=text, revision=text, licence=text, embedded=True)
    count = StageCount(
        stage=text,
        expected=1,
        actual=1,
        not_evaluated=0,
        calls=None,
        journal_hits=None,
        wall_seconds=None,
        inside_share=None,
    )
    return sample.cached_report(
        run=text,
        title=text,
        settings_summary=((text, text + LONG_LINE),),
        models=(model,),
        flags=(Flag(severity="error", title=text, text=text),),
        notes=(text,),
        provenance=Provenance(versions=((text, text),), stages=(count,)),
        generated_from=(text,),
        traces=(hostile_trace(text), sample.trace(1, lang="zh")),
    )
