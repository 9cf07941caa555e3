"""A plain model of one user's windows, written from the definitions: lists of what happened, filtered by time.

A query forgets what lies further back than its window and then counts what is left. Nothing here knows of sorted
sets, running totals or scripts; times are whole microseconds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from mragaudit.monitor.keys import encode_document, encode_name, encode_query

DAY_US = 86_400_000_000
SECOND_US = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Lengths in microseconds, and bounds."""

    volume_us: int
    coverage_us: int
    sensitivity_us: int
    tracked_queries: int
    tracked_answers: int
    tracked_documents: int
    baseline_days: int
    sensitive_levels: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One query."""

    user: str
    query_id: str
    collection: str
    by_level: dict[str, tuple[str, ...]]
    time: int


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the store must count."""

    duplicate: bool
    queries: int
    distinct_documents: int
    own_documents: int
    returned: dict[str, int]
    distinct_sensitive_documents: int
    baseline: tuple[int, int, int]
    """Sensitive documents, documents, days."""


@dataclass
class _User:
    queries: dict[str, int] = field(default_factory=dict)
    answers: dict[str, tuple[int, dict[str, int]]] = field(default_factory=dict)
    seen: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    sensitive: dict[tuple[str, str], int] = field(default_factory=dict)
    own: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    returned_on: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    sensitive_on: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    alerted_on: set[int] = field(default_factory=set)
    baseline_of: tuple[int, tuple[int, int, int]] | None = None


class WindowModel:
    """The windows of several users."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._users: dict[str, _User] = defaultdict(_User)

    def add_own(self, user: str, collection: str, doc_ids: list[str]) -> None:
        """Note documents that a user added."""
        self._users[user].own[collection].update(doc_ids)

    def remove_own(self, user: str, collection: str, doc_ids: list[str]) -> None:
        """Note documents that a user took out again."""
        self._users[user].own[collection].difference_update(doc_ids)

    def alert(self, user: str, time: int) -> None:
        """Leave the day out of the user's baseline; a user without any answer has none."""
        one = self._users[user]
        if one.baseline_of is not None:
            one.alerted_on.add(time // DAY_US)

    def ask(self, asked: Asked) -> Expected:
        """Record a query and return what is to be counted."""
        one, windows = self._users[asked.user], self._windows
        self._forget(one, asked)
        baseline = self._baseline(one, asked.time)
        duplicate = asked.query_id in one.queries or asked.query_id in one.answers
        if not duplicate:
            self._record(one, asked)
        _keep_newest(one.queries, windows.tracked_queries, time=lambda v: v, name=encode_query)
        _keep_newest(one.answers, windows.tracked_answers, time=lambda v: v[0], name=encode_query)
        seen = one.seen[asked.collection]
        _keep_newest(seen, windows.tracked_documents, time=lambda v: v, name=encode_document)
        returned: dict[str, int] = defaultdict(int)
        for _, counts in one.answers.values():
            for level, count in counts.items():
                returned[level] += count
        return Expected(
            duplicate=duplicate,
            queries=len(one.queries),
            distinct_documents=len(seen),
            own_documents=len(one.own[asked.collection]),
            returned=dict(returned),
            distinct_sensitive_documents=len(one.sensitive),
            baseline=baseline,
        )

    def _forget(self, one: _User, asked: Asked) -> None:
        now, windows = asked.time, self._windows
        one.queries = {q: t for q, t in one.queries.items() if t >= now - windows.volume_us}
        one.answers = {q: a for q, a in one.answers.items() if a[0] >= now - windows.sensitivity_us}
        one.sensitive = {d: t for d, t in one.sensitive.items() if t >= now - windows.sensitivity_us}
        seen = one.seen[asked.collection]
        one.seen[asked.collection] = {d: t for d, t in seen.items() if t >= now - windows.coverage_us}

    def _record(self, one: _User, asked: Asked) -> None:
        own, seen = one.own[asked.collection], one.seen[asked.collection]
        counts: dict[str, int] = {}
        for level, doc_ids in asked.by_level.items():
            others = [doc_id for doc_id in doc_ids if doc_id not in own]
            if others:
                counts[level] = len(others)
            for doc_id in others:
                seen[doc_id] = max(asked.time, seen.get(doc_id, 0))
                if level in self._windows.sensitive_levels:
                    pair = (asked.collection, doc_id)
                    one.sensitive[pair] = max(asked.time, one.sensitive.get(pair, 0))
        one.queries[asked.query_id] = asked.time
        one.answers[asked.query_id] = (asked.time, counts)
        day = asked.time // DAY_US
        if counts:
            one.returned_on[day] += sum(counts.values())
            one.sensitive_on[day] += sum(n for level, n in counts.items() if level in self._windows.sensitive_levels)
        if any(level in self._windows.sensitive_levels for level in counts):
            _keep_newest(one.sensitive, self._windows.tracked_documents, time=lambda v: v, name=_sensitive_name)

    def _baseline(self, one: _User, now: int) -> tuple[int, int, int]:
        """Return sums over the days before the window without an alert, made at the first query of a day."""
        today = now // DAY_US
        if one.baseline_of is None or one.baseline_of[0] != today:
            before = (now - self._windows.sensitivity_us) // DAY_US
            earliest = before - self._windows.baseline_days
            for days in (one.returned_on, one.sensitive_on):
                for day in [day for day in days if day < earliest]:
                    del days[day]
            one.alerted_on = {day for day in one.alerted_on if day >= earliest}
            days = [day for day in one.returned_on if day < before and day not in one.alerted_on]
            sums = (sum(one.sensitive_on[day] for day in days), sum(one.returned_on[day] for day in days), len(days))
            one.baseline_of = (today, sums)
        return one.baseline_of[1]


def _sensitive_name(pair: tuple[str, str]) -> str:
    return f"{encode_name(pair[0])}/{encode_document(pair[1])}"


def _keep_newest(members, most, *, time, name) -> None:  # type: ignore[no-untyped-def]  # any dict
    """Drop the oldest beyond the bound; of equally old ones those whose stored name comes first."""
    oldest = sorted(members, key=lambda one: (time(members[one]), name(one).encode()))
    for one in oldest[: max(0, len(members) - most)]:
        del members[one]
