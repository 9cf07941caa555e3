"""What the command line prints: states, rankings and alerts as text for a terminal.

Ids come from outside, so every control character in them is escaped before a terminal sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mragaudit.monitor.admin import Ranking
from mragaudit.monitor.states import CollectionState, SeenDocument, UserState
from mragaudit.monitor.wording import span
from mragaudit.records.monitoring import Alert, SignalReading

NOT_EVALUATED = "-"
COLUMNS = ("user", "risk", "volume", "coverage", "sensitivity", "collection", "last query", "state")
RIGHT = frozenset(COLUMNS[1:5])
ID_CHARS = 120


def printable(text: str, *, most: int = ID_CHARS) -> str:
    """Return text without control characters, which are written as escapes, cut to a length."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in cut)


def moment(time: float) -> str:
    """Return a time in UTC, to the second."""
    return datetime.fromtimestamp(time, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def share(value: float | None) -> str:
    """Return a number from 0 to 1 with two places, `-` where it is not known."""
    return NOT_EVALUATED if value is None else f"{value:.2f}"


def rough(seconds: float) -> str:
    """Return a length of time in its largest unit that is reached, without a fraction: 754 is `12 min`."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"


def ranking_view(ranking: Ranking, *, note: str = "") -> Group:
    """Return users by risk as a table; scores are shown, `-` where one is not evaluated, `!` where one alerts."""
    table = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=True)
    for state in ranking.users:
        table.add_row(*(Text(cell) for cell in _cells(state)), style="bold red" if state.throttled else None)
    return Group(Text("\n".join(_heading(ranking, note))), table)


def _heading(ranking: Ranking, note: str) -> Iterator[str]:
    """Yield what the table holds: how many of how many users."""
    shown = f"{len(ranking.users)} of {ranking.evaluated} users looked at, {ranking.remembered} remembered"
    yield f"tenant {printable(ranking.tenant)}: {shown}; limits of roles not applied"
    if note:
        yield note


def _cells(state: UserState) -> Iterator[str]:
    yield state.user_hash
    yield share(state.composite)
    for one in state.signals:
        yield share(one.score) + ("!" if one.alerting else "")
    yield NOT_EVALUATED if state.riskiest is None else printable(state.riskiest.collection, most=32)
    yield NOT_EVALUATED if state.last_query is None else f"{rough(state.time - state.last_query)} ago"
    yield _standing(state)


def _standing(state: UserState) -> str:
    if state.allowed is not None:
        return f"allowed for {rough(state.allowed.until - state.time)}"
    if state.throttled_since is not None:
        return f"throttled for {rough(state.time - state.throttled_since)}"
    return "throttled" if state.throttled else "passes"


def state_lines(state: UserState, *, documents: int) -> Iterator[str]:
    """Yield one user's state: standing, then each collection with its signals and newest documents."""
    yield f"user {state.user_hash}, {moment(state.time)}"
    if state.throttled_since is not None:
        yield f"throttled since {moment(state.throttled_since)} ({rough(state.time - state.throttled_since)})"
    else:
        yield f"a further query would be {'throttled' if state.throttled else 'served'}"
    if state.allowed is not None:
        yield f"on the allow-list until {moment(state.allowed.until)}: {printable(state.allowed.reason, most=200)}"
    yield f"composite risk {share(state.composite)}, throttled from {state.throttle_at:g}"
    yield from _alert_times(state)
    yield _baseline_line(state)
    if not state.collections:
        yield "no query inside the coverage window; for a user who should have some, check the id and --tenant"
        yield from _signal_lines(state.signals)
    for one in state.collections:
        yield from _collection_lines(one, state=state, documents=documents)


def _alert_times(state: UserState) -> Iterator[str]:
    for kind, time in sorted(state.alerts.items(), key=lambda one: -one[1]):
        yield f"alert {printable(kind)}: {moment(time)}"


def _baseline_line(state: UserState) -> str:
    baseline = state.baseline
    if not baseline.returned:
        return "baseline: no preceding days"
    part = baseline.sensitive / baseline.returned
    return (
        f"baseline: {baseline.sensitive} of {baseline.returned} returned documents sensitive ({part:.2f}), "
        f"{baseline.days} preceding days without an alert"
    )


def _collection_lines(one: CollectionState, *, state: UserState, documents: int) -> Iterator[str]:
    size = "size unknown" if one.size is None else f"{one.size.size} documents"
    yield ""
    yield (
        f"collection {printable(one.collection)} ({size}), last query {moment(one.last_query)}, "
        f"composite {share(one.composite)}"
    )
    yield from _signal_lines(one.signals)
    if documents:
        yield from _document_lines(one, state=state)


def _signal_lines(signals: tuple[SignalReading, ...]) -> Iterator[str]:
    for one in signals:
        mark = "ALERT" if one.alerting else ""
        window = span(one.window_seconds)
        yield f"  {one.signal:<12}{mark:<5}  score {share(one.score):>4}  {_reading(one)}, window {window}"


def _reading(one: SignalReading) -> str:
    cap = "" if one.cap is None else f"; {one.capped_count} distinct, cap {one.cap}"
    if one.not_evaluated is not None:
        return f"not evaluated: {one.not_evaluated}{cap}"
    if one.total is None:
        return f"{one.count}, alerts above {one.threshold:g}{cap}"
    return f"{one.count} of {one.total} ({share(one.value)}), alerts above {one.threshold:.2f}{cap}"


def _document_lines(one: CollectionState, *, state: UserState) -> Iterator[str]:
    shown = len(one.documents)
    kept = "" if one.documents_complete or shown else "; their ids are not kept (sketches) or were not asked for"
    yield f"  documents, newest first: {shown} of {one.distinct_documents}{kept}"
    for document in one.documents:
        yield f"    {_document(document, now=state.time)}"


def _document(document: SeenDocument, *, now: float) -> str:
    level = "  sensitive" if document.sensitive else ""
    return f"{moment(document.time)}  {rough(now - document.time):>6} ago  {printable(document.doc_id)}{level}"


def alert_line(alert: Alert) -> str:
    """Return an alert on one line."""
    user = printable(alert.user or alert.user_hash or "-")
    reasons = "; ".join(printable(reason, most=400) for reason in alert.reasons)
    return (
        f"{moment(alert.time)}  {alert.kind:<10}  user {user}  collection {printable(alert.collection) or '-'}  "
        f"{alert.action}  composite {share(alert.composite)}: {reasons}"
    )
