"""Trials as columns of small integers, so that a million of them fit and every table is a few array operations.

Outcomes are three-valued: 1 yes, 0 no, -1 unknown. Unknown is never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mragaudit.errors import DataError, did_you_mean
from mragaudit.records.base import Record
from mragaudit.records.documents import PII_TYPES, UNSTRUCTURED, PiiType
from mragaudit.records.queries import ExpectedVerdict, Intent, Paraphrase, QuerySource, Split
from mragaudit.records.results import Verdict
from mragaudit.records.trials import Trial

Int8 = NDArray[np.int8]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

INTENTS = ("attack", "benign", "control")
PARAPHRASES = ("direct", "summary", "icl")
SOURCES = ("template", "human", "control")
GROUPS = ("unstructured", "structured", "all")
NO_FILTER = "none"
NO_JUDGE = "none"

UNKNOWN = -1
ALLOW, BLOCK, UNPARSED = 0, 1, 2
VERDICT_CODES: dict[str | None, int] = {None: UNKNOWN, "ALLOW": ALLOW, "BLOCK": BLOCK, "UNPARSED": UNPARSED}
TRUTH_CODES: dict[bool | None, int] = {None: UNKNOWN, False: 0, True: 1}

# Trial field → code of each of its values.
FIELD_CODES: dict[str, Mapping[Any, int]] = {
    "intent": {name: code for code, name in enumerate(INTENTS)},
    "paraphrase": {None: UNKNOWN} | {name: code for code, name in enumerate(PARAPHRASES)},
    "query_source": {name: code for code, name in enumerate(SOURCES)},
    "pii_type": {None: UNKNOWN} | {name: int(name in UNSTRUCTURED) for name in PII_TYPES},
    "leak_verbatim": TRUTH_CODES,
    "leak_published": TRUTH_CODES,
    "answered_correctly": TRUTH_CODES,
    "anchor_kept": TRUTH_CODES,
    "language_ok": TRUTH_CODES,
    "expected_verdict": {None: UNKNOWN, "ALLOW": 0, "BLOCK": 1},
}
# Columns that are not named like the trial field that they are made from.
COLUMN_NAMES = {
    "query_source": "source",
    "pii_type": "unstructured",
    "leak_verbatim": "leak",
    "answered_correctly": "answered",
    "expected_verdict": "expected_block",
}

# Small, so that the collector meets few live rows: chunks of 20,000 take half as long again.
CHUNK_ROWS = 200


class TrialRow(Record, frozen=True, kw_only=True, tag="trial/1", forbid_unknown_fields=False):
    """What the tables read of a trial; the rest of its line is skipped, which halves the time of decoding.

    Fields as in `Trial`.
    """

    trial_id: str
    doc_id: str | None
    lang: str
    intent: Intent
    paraphrase: Paraphrase | None
    query_source: QuerySource
    pii_type: PiiType | None
    gold_rank: int | None
    leak_published: bool | None
    leak_verbatim: bool | None
    fired: dict[str, bool | None]
    verdict: dict[str, Verdict | None]
    margin: dict[str, float | None]
    answered_correctly: bool | None
    translated: bool
    never_asked: bool
    translation_failed: str | None
    anchor_kept: bool | None
    language_ok: bool | None
    length_ratio: float
    round_trip_similarity: float | None
    expected_verdict: ExpectedVerdict | None
    control_split: Split | None
    not_evaluated: str | None


class TrialColumns(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All trials of a run, one array entry a trial, shape `(n_trials,)` each."""

    languages: tuple[str, ...]
    documents: tuple[str, ...]
    """Document ids in sorted order; `document` indexes them."""
    judges: tuple[str, ...]
    filters: tuple[str, ...]
    """Filter variants, `none` first."""
    lang: Int8
    document: NDArray[np.int32]
    """-1 for controls."""
    intent: Int8
    paraphrase: Int8
    """-1 where the trial has none."""
    source: Int8
    unstructured: Int8
    """1 unstructured, 0 structured, -1 no planted item."""
    gold_rank: NDArray[np.int32]
    """0 when not among the top k."""
    leak: Int8
    """Verbatim."""
    leak_published: Int8
    fired: dict[str, Int8]
    """Filter variant → fired; `none` never fires."""
    verdict: dict[str, Int8]
    margin: dict[str, Floats]
    """NaN where there is none."""
    answered: Int8
    translated: Bools
    failed: Bools
    anchor_kept: Int8
    language_ok: Int8
    length_ratio: Floats
    similarity: Floats
    """NaN where there is none."""
    expected_block: Int8
    """1 for attack controls, 0 for benign ones, -1 for trials that are no controls."""
    check: Bools
    """Controls that do not choose the threshold."""
    missing: Bools
    """Trials that have no answer and should."""
    unasked: Bools
    """Trials whose query never came back from the translator: nothing later was tried."""

    def is_attack(self) -> Bools:
        """Return which trials are attacks."""
        return np.equal(self.intent, INTENTS.index("attack"))

    def is_benign(self) -> Bools:
        """Return which trials are benign questions."""
        return np.equal(self.intent, INTENTS.index("benign"))

    def sources(self) -> list[int]:
        """Return the codes of the query sources that attack or ask, in a fixed order."""
        asked = self.intent != INTENTS.index("control")
        return sorted({int(code) for code in np.unique(self.source[asked])})

    def in_group(self, group: str) -> Bools:
        """Return which trials belong to a PII group."""
        if group == "all":
            return np.not_equal(self.unstructured, UNKNOWN)
        return np.equal(self.unstructured, 1 if group == "unstructured" else 0)


def read_columns(
    trials: Iterable[Trial | TrialRow], *, languages: Sequence[str], judges: Sequence[str], filters: Sequence[str]
) -> TrialColumns:
    """Return the columns of all trials, read in chunks so that the rows need not fit in memory.

    Raises DataError, naming the trial, for a language or variant that the config does not name, and for no trials.
    """
    reader = _Reader(languages, judges, (NO_FILTER, *(name for name in filters if name != NO_FILTER)))
    for chunk in _chunks(iter(trials)):
        reader.add(chunk)
    return reader.columns()


def _chunks(trials: Iterator[Trial | TrialRow]) -> Iterator[list[Trial | TrialRow]]:
    while chunk := list(islice(trials, CHUNK_ROWS)):
        yield chunk


class _Reader:
    """Collects chunks of columns."""

    def __init__(self, languages: Sequence[str], judges: Sequence[str], filters: Sequence[str]) -> None:
        self._languages = {name: code for code, name in enumerate(languages)}
        self._judges = tuple(judges)
        self._filters = tuple(filters)
        self._documents: dict[str | None, int] = {None: UNKNOWN}
        self._parts: dict[str, list[NDArray[Any]]] = {}

    def add(self, rows: list[Trial | TrialRow]) -> None:
        """Append one chunk."""
        names = rows[0].__struct_fields__
        fields = dict(zip(names, zip(*map(msgspec.structs.astuple, rows), strict=True), strict=True))
        self._check(rows, fields)
        self._put("document", self._document_numbers(fields["doc_id"]), np.int32)
        self._put("lang", map(self._languages.__getitem__, fields["lang"]), np.int8)
        for field, codes in FIELD_CODES.items():
            self._put(COLUMN_NAMES.get(field, field), map(codes.__getitem__, fields[field]), np.int8)
        self._add_guards(fields)
        self._add_quality(fields)

    def _document_numbers(self, names: tuple[str | None, ...]) -> Iterator[int]:
        known = self._documents
        return (known.setdefault(name, len(known) - 1) for name in names)

    def _add_guards(self, fields: Mapping[str, tuple[Any, ...]]) -> None:
        for name in self._filters:
            fired = repeat(0) if name == NO_FILTER else (TRUTH_CODES[row.get(name)] for row in fields["fired"])
            self._put(f"fired.{name}", islice(fired, len(fields["fired"])), np.int8)
        for name in self._judges:
            self._put(f"verdict.{name}", (VERDICT_CODES[row.get(name)] for row in fields["verdict"]), np.int8)
            self._put(f"margin.{name}", (row.get(name) for row in fields["margin"]), np.float64)

    def _add_quality(self, fields: Mapping[str, tuple[Any, ...]]) -> None:
        self._put("gold_rank", (rank or 0 for rank in fields["gold_rank"]), np.int32)
        self._put("translated", fields["translated"], np.bool_)
        self._put("unasked", fields["never_asked"], np.bool_)
        self._put("failed", (reason is not None for reason in fields["translation_failed"]), np.bool_)
        self._put("missing", (reason is not None for reason in fields["not_evaluated"]), np.bool_)
        self._put("check", (split == "check" for split in fields["control_split"]), np.bool_)
        self._put("length_ratio", fields["length_ratio"], np.float64)
        self._put("similarity", fields["round_trip_similarity"], np.float64)

    def columns(self) -> TrialColumns:
        """Return all chunks joined, documents renumbered in sorted order."""
        if not self._parts:
            raise DataError("there is no trial to make tables of; run `score` and the stages before it again")
        joined: dict[str, Any] = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        names, order = self._sorted_documents()
        joined["document"] = order[joined["document"]].astype(np.int32)
        guards: dict[str, Any] = {
            kind: {
                name.partition(".")[2]: joined.pop(name)
                for name in [key for key in joined if key.startswith(f"{kind}.")]
            }
            for kind in ("fired", "verdict", "margin")
        }
        return TrialColumns(
            languages=tuple(self._languages),
            documents=names,
            judges=self._judges,
            filters=self._filters,
            **guards,
            **joined,
        )

    def _sorted_documents(self) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Return sorted ids, and the map from provisional to sorted numbers; entry -1 stays -1."""
        names = sorted(name for name in self._documents if name is not None)
        order = np.full(len(names) + 1, UNKNOWN, dtype=np.int64)
        for position, name in enumerate(names):
            order[self._documents[name]] = position
        return tuple(names), order

    def _put(self, name: str, values: Iterable[Any], kind: type[np.generic]) -> None:
        """Append values to a column; None becomes NaN in a column of floats."""
        self._parts.setdefault(name, []).append(np.fromiter(values, dtype=kind))

    def _check(self, rows: list[Trial | TrialRow], fields: Mapping[str, tuple[Any, ...]]) -> None:
        found = (
            ("languages", set(fields["lang"]), self._languages),
            ("filter.variants", set().union(*fields["fired"]), self._filters),
            ("judge.variants", set().union(*fields["verdict"], *fields["margin"]), self._judges),
        )
        for key, names, allowed in found:
            for name in sorted(names.difference(allowed)):
                trial = next(row.trial_id for row in rows if name in {row.lang, *row.fired, *row.verdict, *row.margin})
                raise DataError(f'trial {trial}: "{name}" is not in the config\'s {key}; {did_you_mean(name, allowed)}')
