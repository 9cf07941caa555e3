"""The trials as JSON for the page's script: every text once, escaped for a script block."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from mragaudit.report.model import Language, Trace
from mragaudit.report.words import SHOWN_CHARS, STAGE_WORDS

# Everything that HTML, JavaScript or an encoder could take for more than text.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


class TextTable:
    """Texts by number, each stored once; a longer one is cut and keeps its full length beside."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self.texts: list[str | list[str | int]] = []

    def put(self, text: str | None) -> int | None:
        """Return the number of a text, or None for None."""
        if text is None:
            return None
        if text not in self._number:
            self._number[text] = len(self.texts)
            cut = len(text) > SHOWN_CHARS
            self.texts.append([text[:SHOWN_CHARS], len(text)] if cut else text)
        return self._number[text]


def trial_json(traces: Sequence[Trace], languages: Sequence[Language]) -> str:
    """Return the JSON text for the page: languages, stage names, texts, one object a trial in trial order.

    `<`, `>`, `&`, U+2028, U+2029 and lone surrogates are written as escapes, so that the text is safe inside
    `<script type="application/json">`. Spans are half-open code points of the whole answer.
    """
    table = TextTable()
    rows = [_row(trace, table) for trace in sorted(traces, key=lambda one: one.trial_id)]
    content = {
        "languages": {one.code: [one.name, one.direction] for one in languages},
        "stages": STAGE_WORDS,
        "texts": table.texts,
        "trials": rows,
    }
    return escape_json(json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def escape_json(text: str) -> str:
    r"""Return JSON text with the characters that a script block cannot hold written as `\\uXXXX`."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _row(trace: Trace, table: TextTable) -> dict[str, Any]:
    return {
        "id": trace.trial_id,
        "doc": trace.doc_id,
        "lang": trace.lang,
        "intent": trace.intent,
        "para": trace.paraphrase,
        "source": trace.query_source,
        "pii": trace.pii_type,
        "stage": trace.stage_of_escape,
        "value": table.put(trace.planted_value),
        "anchor": table.put(trace.anchor),
        "document": table.put(trace.document_text),
        "english": table.put(trace.query_english),
        "query": table.put(trace.query_text),
        "back": table.put(trace.back_translation),
        "similarity": trace.round_trip_similarity,
        "failed": trace.translation_failed,
        "retrieved": [[one.doc_id, one.score, one.is_gold, table.put(one.text)] for one in trace.retrieved],
        "verdicts": [[one.variant, one.verdict, one.margin, table.put(one.judged_text)] for one in trace.verdicts],
        "answer": table.put(trace.answer),
        "spans": trace.planted_spans,
        "filters": [[one.variant, one.fired, one.families, one.spans] for one in trace.filters],
        "leaks": [trace.leak_published, trace.leak_verbatim, trace.leak_normalised, trace.echoed],
        "partial": trace.leak_partial_share,
        "expected": table.put(trace.expected_answer),
        "correct": trace.answered_correctly,
        "missing": trace.not_evaluated,
    }
