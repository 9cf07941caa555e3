"""Trials as columns of small integers, so that a million of them fit and every table is a few array operations.

Outcomes are three-valued: 1 yes, 0 no, -1 unknown. Unknown is never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mragaudit.errors import DataError, did_you_mean
from mragaudit.records.documents import UNSTRUCTURED
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

CHUNK_ROWS = 20_000


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
    trials: Iterable[Trial], *, languages: Sequence[str], judges: Sequence[str], filters: Sequence[str]
) -> TrialColumns:
    """Return the columns of all trials, read in chunks so that the rows need not fit in memory.

    Raises DataError, naming the trial, for a language or variant that the config does not name.
    """
    reader = _Reader(languages, judges, (NO_FILTER, *(name for name in filters if name != NO_FILTER)))
    for chunk in _chunks(iter(trials)):
        reader.add(chunk)
    return reader.columns()


def _chunks(trials: Iterator[Trial]) -> Iterator[list[Trial]]:
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

    def add(self, rows: list[Trial]) -> None:
        """Append one chunk."""
        self._check(rows)
        self._put("document", [self._document(row.doc_id) for row in rows], np.int32)
        self._put("lang", [self._languages[row.lang] for row in rows], np.int8)
        self._put("intent", [INTENTS.index(row.intent) for row in rows], np.int8)
        self._put("paraphrase", [_position(PARAPHRASES, row.paraphrase) for row in rows], np.int8)
        self._put("source", [SOURCES.index(row.query_source) for row in rows], np.int8)
        self._put("unstructured", [_unstructured(row) for row in rows], np.int8)
        self._put("gold_rank", [row.gold_rank or 0 for row in rows], np.int32)
        self._put("leak", [TRUTH_CODES[row.leak_verbatim] for row in rows], np.int8)
        self._put("leak_published", [TRUTH_CODES[row.leak_published] for row in rows], np.int8)
        self._add_guards(rows)
        self._add_quality(rows)

    def _add_guards(self, rows: list[Trial]) -> None:
        for name in self._filters:
            fired = [0 if name == NO_FILTER else TRUTH_CODES[row.fired.get(name)] for row in rows]
            self._put(f"fired.{name}", fired, np.int8)
        for name in self._judges:
            self._put(f"verdict.{name}", [VERDICT_CODES[row.verdict.get(name)] for row in rows], np.int8)
            margins = [np.nan if (value := row.margin.get(name)) is None else value for row in rows]
            self._put(f"margin.{name}", margins, np.float64)

    def _add_quality(self, rows: list[Trial]) -> None:
        self._put("answered", [TRUTH_CODES[row.answered_correctly] for row in rows], np.int8)
        self._put("translated", [row.translated for row in rows], np.bool_)
        self._put("failed", [row.translation_failed is not None for row in rows], np.bool_)
        self._put("anchor_kept", [TRUTH_CODES[row.anchor_kept] for row in rows], np.int8)
        self._put("language_ok", [TRUTH_CODES[row.language_ok] for row in rows], np.int8)
        self._put("length_ratio", [row.length_ratio for row in rows], np.float64)
        similarity = [np.nan if (v := row.round_trip_similarity) is None else v for row in rows]
        self._put("similarity", similarity, np.float64)
        self._put("expected_block", [_expected(row) for row in rows], np.int8)
        self._put("check", [row.control_split == "check" for row in rows], np.bool_)
        self._put("missing", [row.not_evaluated is not None for row in rows], np.bool_)
        self._put("unasked", [row.never_asked for row in rows], np.bool_)

    def columns(self) -> TrialColumns:
        """Return all chunks joined, documents renumbered in sorted order."""
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

    def _document(self, name: str | None) -> int:
        return self._documents.setdefault(name, len(self._documents) - 1)

    def _put(self, name: str, values: list[Any], kind: type[np.generic]) -> None:
        self._parts.setdefault(name, []).append(np.array(values, dtype=kind))

    def _check(self, rows: list[Trial]) -> None:
        for row in rows:
            if row.lang not in self._languages:
                hint = did_you_mean(row.lang, self._languages)
                raise DataError(f'trial {row.trial_id}: "{row.lang}" is not among the languages; {hint}')


def _position(names: tuple[str, ...], name: str | None) -> int:
    return UNKNOWN if name is None else names.index(name)


def _unstructured(row: Trial) -> int:
    return UNKNOWN if row.pii_type is None else int(row.pii_type in UNSTRUCTURED)


def _expected(row: Trial) -> int:
    return UNKNOWN if row.expected_verdict is None else int(row.expected_verdict == "BLOCK")
