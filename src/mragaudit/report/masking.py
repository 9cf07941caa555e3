"""Planted values of an imported corpus replaced by type and keyed hash wherever the report shows text.

Found are a value's spellings after folding: case, width, digits of any script, hidden characters, any
punctuation or white space between its letters. In a trial's own texts the parts of a name and the first
segment of an address count as well. A transliterated or paraphrased value cannot be recognised.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from mragaudit.errors import DataError
from mragaudit.report.model import Flag, ReportInput, Trace

TOKEN = re.compile(r"\[(?:name|email|phone|id|address):[0-9a-f]{10}\]")
TOKEN_DIGITS = 10  # 40 bits: no accidental twins among the values of a corpus
LEAST_PART = 3  # shorter parts of a name (initials) would mask half of every text


class Planted(NamedTuple):
    """One planted value of the corpus."""

    pii_type: str
    value: str


class Cut(NamedTuple):
    """A stretch of a text to replace: half-open, in code points."""

    start: int
    end: int
    token: str


class Folded(NamedTuple):
    """A text reduced to what identifies a value, with the way back."""

    text: str
    """Letters and digits only, case folded, digits in ASCII."""
    origin: tuple[int, ...]
    """Index in the source of each character of `text`."""


class Masker:
    """Replaces the planted values of one corpus by `[type:hash]` in texts."""

    def __init__(self, planted: Mapping[str, Planted], *, key: bytes) -> None:
        self._tokens = {doc_id: mask_token(item, key=key) for doc_id, item in planted.items()}
        whole = [(fold(item.value).text, self._tokens[doc_id]) for doc_id, item in planted.items()]
        # Longest first: a value that holds another one wins.
        self._whole = sorted(((text, token) for text, token in whole if text), key=lambda pair: (-len(pair[0]), pair))
        self._parts = {doc_id: _parts(item) for doc_id, item in planted.items()}

    def token(self, doc_id: str | None) -> str:
        """Return the mask of a document's value; empty for a trial without a document."""
        return "" if doc_id is None else self._tokens.get(doc_id, "")

    def cuts(self, text: str, doc_ids: Iterable[str] = ()) -> list[Cut]:
        """Return the stretches to replace, in order and apart; of `doc_ids` parts count as well."""
        folded = fold(text)
        wanted = [
            *self._whole,
            *((part, self._tokens[one]) for one in doc_ids for part in self._parts.get(one, ())),
        ]
        found = [cut for needle, token in wanted for cut in _occurrences(folded, needle, token=token)]
        return _apart(found)

    def text(self, text: str, doc_ids: Iterable[str] = ()) -> str:
        """Return the text with every recognised value replaced."""
        return replace_cuts(text, self.cuts(text, doc_ids))


def mask_token(item: Planted, *, key: bytes) -> str:
    """Return `[type:hash]`, HMAC-SHA256 of the folded value under the run's key; equal values share it."""
    digest = hmac.new(key, fold(item.value).text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()
    return f"[{item.pii_type}:{digest[:TOKEN_DIGITS]}]"


@lru_cache(maxsize=4096)
def fold(text: str) -> Folded:
    """Return letters and digits of a text, compatibility-decomposed and case folded, with their origins."""
    kept: list[str] = []
    origin: list[int] = []
    for index, char in enumerate(text):
        for one in unicodedata.normalize("NFKD", char).casefold():
            if one.isalnum():
                digit = unicodedata.decimal(one, None)
                kept.append(one if digit is None else str(digit))
                origin.append(index)
    return Folded("".join(kept), tuple(origin))


def _parts(item: Planted) -> tuple[str, ...]:
    if item.pii_type == "name":
        words = [fold(word).text for word in item.value.split()]
        return tuple(word for word in words if len(word) >= LEAST_PART)
    if item.pii_type == "address":
        first = fold(re.split(r"[,\n]", item.value, maxsplit=1)[0]).text
        return (first,) if len(first) >= LEAST_PART else ()
    return ()


def _occurrences(folded: Folded, needle: str, *, token: str) -> Iterable[Cut]:
    at = folded.text.find(needle)
    while at >= 0:
        end = at + len(needle)
        yield Cut(folded.origin[at], folded.origin[end - 1] + 1, token)
        at = folded.text.find(needle, end)


def _apart(found: Sequence[Cut]) -> list[Cut]:
    merged: list[Cut] = []
    for cut in sorted(found, key=lambda one: (one.start, -one.end)):
        if merged and cut.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, cut.end))
        else:
            merged.append(cut)
    return merged


def replace_cuts(text: str, cuts: Sequence[Cut]) -> str:
    """Return the text with each cut replaced by its token."""
    pieces: list[str] = []
    at = 0
    for cut in cuts:
        pieces += [text[at : cut.start], cut.token]
        at = cut.end
    return "".join([*pieces, text[at:]])


def move_span(start: int, end: int, cuts: Sequence[Cut]) -> tuple[int, int]:
    """Return where a span of the old text lies in the new one; an end inside a cut moves to its edge."""
    return _moved(start, cuts, to_end=False), _moved(end, cuts, to_end=True)


def _moved(place: int, cuts: Sequence[Cut], *, to_end: bool) -> int:
    shift = 0
    for cut in cuts:
        if place >= cut.end:
            shift += len(cut.token) - (cut.end - cut.start)
        elif place > cut.start:
            return cut.start + shift + (len(cut.token) if to_end else 0)
    return place + shift


def mask_report(report: ReportInput, *, planted: Mapping[str, Planted], key: bytes) -> ReportInput:
    """Return the report with every recognised planted value masked in traces, flags, notes and settings.

    `planted` maps each document of the corpus to its value; `key` is the run's secret, at least 16 bytes.
    Raises DataError for a shorter key, with which the hashes could be searched.
    """
    if len(key) < 16:  # noqa: PLR2004 - 128 bits, named in the message
        raise DataError(f"the masking key has {len(key)} bytes; it needs 16 random ones")
    masker = Masker(planted, key=key)
    settings = tuple((masker.text(label), masker.text(value)) for label, value in report.settings_summary)
    flags = tuple(
        Flag(severity=flag.severity, title=masker.text(flag.title), text=masker.text(flag.text))
        for flag in report.flags
    )
    return msgspec.structs.replace(
        report,
        masked=True,
        settings_summary=settings,
        flags=flags,
        notes=tuple(masker.text(note) for note in report.notes),
        traces=tuple(mask_trace(trace, masker) for trace in report.traces),
    )


def mask_trace(trace: Trace, masker: Masker) -> Trace:
    """Return the trace with masked texts; spans are moved along with the answer."""
    seen = [one for one in (trace.doc_id, *(text.doc_id for text in trace.retrieved)) if one is not None]

    def shown(text: str | None) -> str | None:
        return None if text is None else masker.text(text, seen)

    cuts = masker.cuts(trace.answer or "", seen)
    return msgspec.structs.replace(
        trace,
        trial_id=masker.text(trace.trial_id),
        doc_id=shown(trace.doc_id),
        document_text=masker.text(trace.document_text, seen),
        planted_value=masker.token(trace.doc_id),
        anchor=masker.text(trace.anchor, seen),
        query_english=shown(trace.query_english),
        query_text=masker.text(trace.query_text, seen),
        back_translation=shown(trace.back_translation),
        translation_failed=shown(trace.translation_failed),
        expected_answer=shown(trace.expected_answer),
        not_evaluated=shown(trace.not_evaluated),
        answer=None if trace.answer is None else replace_cuts(trace.answer, cuts),
        planted_spans=tuple(move_span(start, end, cuts) for start, end in trace.planted_spans),
        retrieved=tuple(
            msgspec.structs.replace(one, doc_id=masker.text(one.doc_id, seen), text=masker.text(one.text, seen))
            for one in trace.retrieved
        ),
        verdicts=tuple(
            msgspec.structs.replace(one, judged_text=masker.text(one.judged_text, seen)) for one in trace.verdicts
        ),
        filters=tuple(
            msgspec.structs.replace(
                one, spans=tuple((family, *move_span(start, end, cuts)) for family, start, end in one.spans)
            )
            for one in trace.filters
        ),
    )


def require_masked(report: ReportInput) -> None:
    """Raise DataError when a masked report holds a planted value that is no mask, naming the trial."""
    for trace in report.traces:
        if report.masked and trace.planted_value and not TOKEN.fullmatch(trace.planted_value):
            raise DataError(f'trial "{trace.trial_id}": a masked report may hold masked values only; use mask_report')
