"""What an administrator may ask and do: explain, clear, allow, rank.

Each task is a generator of script calls that gets their answers and returns a record; `run` drives it over a
synchronous monitor, `run_async` over an asyncio one. Users are named by id, or by their keyed hash (`hashed=True`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

import msgspec

from mragaudit.errors import ConfigError, DataError
from mragaudit.monitor.aio import AsyncExfiltrationMonitor
from mragaudit.monitor.calls import Call, Script, as_text, microseconds
from mragaudit.monitor.client import ExfiltrationMonitor
from mragaudit.monitor.keys import UserKeys, encode_name, size_key, tenant_key
from mragaudit.monitor.queries import DEFAULT_TENANT
from mragaudit.monitor.session import Session
from mragaudit.monitor.settings import MAX_RING, MonitorSettings
from mragaudit.monitor.sizes import DAY_SECONDS, SIZE, size_of
from mragaudit.monitor.states import AllowEntry, UserState, peek_call, read_peek, user_state
from mragaudit.monitor.windows import MICROSECONDS

T = TypeVar("T")
Steps = Generator[Sequence[Call], list[Any], T]
"""Yields calls, is sent their answers."""

MEMBERS = Script.read("members")
CLEAR = Script.read("clear")
ALLOW = Script.read("allow")

COLLECTIONS = 256
"""Collections of a user that the record script remembers."""
SCANNED_USERS = 1_000
SHOWN_DOCUMENTS = 20
MOST_DOCUMENTS = 10_000
LONGEST_ALLOW_SECONDS = 366 * 86_400
STATE_SECONDS = 604_800.0
MOST_REASON_CHARS = 200
HASH = re.compile(r"[A-Za-z0-9_-]{20}")


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Users of a tenant by composite risk, highest first."""

    tenant: str
    users: tuple[UserState, ...]
    evaluated: int
    """Users looked at: the most recently active ones."""
    remembered: int
    """Users of the tenant that the store remembers, `collective.tracked_users` at most."""


def run(monitor: ExfiltrationMonitor, steps: Steps[T]) -> T:
    """Return what a task returns; raises StoreError while the store is away."""
    try:
        calls = next(steps)
        while True:
            calls = steps.send([monitor.store.run(call) for call in calls])
    except StopIteration as done:
        result: T = done.value
        return result


async def run_async(monitor: AsyncExfiltrationMonitor, steps: Steps[T]) -> T:
    """Return what a task returns; raises StoreError while the store is away."""
    try:
        calls = next(steps)
        while True:
            calls = steps.send([await monitor.store.run(call) for call in calls])
    except StopIteration as done:
        result: T = done.value
        return result


def hash_of(monitor: ExfiltrationMonitor, user: str, *, tenant: str, hashed: bool) -> str:
    """Return a user's hash; raises DataError for text that is neither a hash nor a possible user id."""
    if hashed:
        return checked_hash(user)
    try:
        user.encode()
    except UnicodeEncodeError:
        raise DataError("the user id is no valid UTF-8; no query can have come from such a user") from None
    if not user:
        raise DataError("the user id is empty")
    return monitor.user_hash(user, tenant=tenant)


def checked_hash(text: str) -> str:
    """Return a user hash; raises DataError when it cannot be one."""
    if not HASH.fullmatch(text):
        raise DataError("that is no user hash: 20 letters, digits, hyphens or underscores, as in alerts and `top`")
    return text


def explain(
    monitor: ExfiltrationMonitor,
    user: str,
    *,
    tenant: str = DEFAULT_TENANT,
    hashed: bool = False,
    role: str | None = None,
    documents: int = SHOWN_DOCUMENTS,
    time: float | None = None,
) -> UserState:
    """Return which signals of a user say what, which documents were retrieved, since when the user is throttled.

    Nothing is counted or changed. `role` applies its limits, since the store does not know roles; `documents` are
    named at most a collection; `time` is for replays. Raises StoreError, and DataError for an impossible user.
    """
    name = hash_of(monitor, user, tenant=tenant, hashed=hashed)
    return run(monitor, explain_steps(monitor.session, name, role=role, documents=documents, time=time))


def explain_steps(
    session: Session,
    user_hash: str,
    *,
    role: str | None = None,
    documents: int = SHOWN_DOCUMENTS,
    time: float | None = None,
) -> Steps[UserState]:
    """Return the task of `explain`; raises DataError when more documents are asked for than one answer may hold."""
    if not 0 <= documents <= MOST_DOCUMENTS:
        raise DataError(f"documents is {documents}; it must lie between 0 and {MOST_DOCUMENTS:,}")
    keys = UserKeys(session.settings.store.prefix, user_hash)
    asked = yield from _collections(keys)
    names = [*asked] or [""]
    peeks = [
        peek_call(session.settings, keys, collection=one, cluster=session.cluster, documents=documents, time=time)
        for one in names
    ]
    sizes = [_size_call(session.settings, one) for one in names] if session.cluster else []
    replies = yield [*peeks, *sizes]
    known = [size_of(one, age_seconds=0.0) for one in replies[len(peeks) :]] or [None] * len(peeks)
    levels = session.settings.levels
    found = {
        name: read_peek(reply, levels=levels, size=size)
        for name, reply, size in zip(names, replies[: len(peeks)], known, strict=True)
    }
    return user_state(session.core, found, user_hash=user_hash, last_queries=asked, role=role)


def _collections(keys: UserKeys) -> Steps[dict[str, float]]:
    """Return the encoded collections that a user asked, newest first, with the time of the last query."""
    (reply,) = yield [Call(MEMBERS, [keys.key("colls")], [COLLECTIONS])]
    return _timed(reply[0])


def _timed(flat: Sequence[Any]) -> dict[str, float]:
    return {as_text(name): int(time) / MICROSECONDS for name, time in zip(flat[::2], flat[1::2], strict=True)}


def _size_call(settings: MonitorSettings, collection: str) -> Call:
    """Return the call that reads the size of a collection whose name is encoded already."""
    lifetime = microseconds(settings.limits.size_days * DAY_SECONDS)
    return Call(SIZE, [size_key(settings.store.prefix, collection)], [lifetime, ""])


def clear(
    monitor: ExfiltrationMonitor,
    user: str,
    *,
    tenant: str = DEFAULT_TENANT,
    hashed: bool = False,
    forget: bool = False,
) -> int:
    """Forget a user's windows, throttling and noted alerts; return how many keys of the store that were.

    The user starts anew. Baseline, allow-list entry and the list of documents that the user added stay, unless
    `forget` takes them as well: what a false alarm leaves untrue is gone, what stays true is kept. Raises StoreError.
    """
    name = hash_of(monitor, user, tenant=tenant, hashed=hashed)
    return run(monitor, clear_steps(monitor.session, name, forget=forget))


def clear_steps(session: Session, user_hash: str, *, forget: bool = False) -> Steps[int]:
    """Return the task of `clear`."""
    keys = UserKeys(session.settings.store.prefix, user_hash)
    asked = yield from _collections(keys)
    names = ["vol", "ret", "lev", "sens", "colls", "held", *(["base", "allow"] if forget else [])]
    gone = [keys.key(name) for name in names]
    for collection in asked:
        gone += _collection_keys(keys, collection, forget=forget)
    (count,) = yield [Call(CLEAR, [keys.key("state"), *gone], [int(forget)])]
    return int(count)


def _collection_keys(keys: UserKeys, collection: str, *, forget: bool) -> list[str]:
    """Return all keys of a user in one collection, whichever mode the settings had when they were written."""
    names = ["cov", "hll", *(["own"] if forget else [])]
    slots = [f"{collection}:{slot}" for slot in range(MAX_RING)]
    return [keys.of_collection(name, collection) for name in names] + [keys.of_collection("hll", one) for one in slots]


def allow(
    monitor: ExfiltrationMonitor,
    user: str,
    *,
    seconds: float,
    reason: str,
    tenant: str = DEFAULT_TENANT,
    hashed: bool = False,
    time: float | None = None,
) -> AllowEntry:
    """Let a user pass, whatever the signals say, until the time is over; return the entry.

    Throttling ends at once; windows go on counting, and decide again after the end. A second entry replaces the
    first. Raises DataError for a length or reason that cannot be, StoreError.
    """
    name = hash_of(monitor, user, tenant=tenant, hashed=hashed)
    return run(monitor, allow_steps(monitor.session, name, seconds=seconds, reason=reason, time=time))


def allow_steps(
    session: Session, user_hash: str, *, seconds: float, reason: str, time: float | None = None
) -> Steps[AllowEntry]:
    """Return the task of `allow`."""
    if not (math.isfinite(seconds) and 1 <= seconds <= LONGEST_ALLOW_SECONDS):
        raise DataError(f"an allow-list entry of {seconds:g} s is not possible; from 1 s to 366 days")
    text = reason.strip()
    if not text.isprintable() or not 1 <= len(text) <= MOST_REASON_CHARS:
        raise DataError(f"the reason must be one line of 1 to {MOST_REASON_CHARS} characters; it is shown by explain")
    (reply,) = yield [_allow_call(session.settings, user_hash, seconds=seconds, reason=text, time=time)]
    since, until = (int(one) / MICROSECONDS for one in reply)
    return AllowEntry(since=since, until=until, reason=text)


def disallow(monitor: ExfiltrationMonitor, user: str, *, tenant: str = DEFAULT_TENANT, hashed: bool = False) -> bool:
    """Take a user off the allow-list; return whether there was an entry. Raises StoreError."""
    name = hash_of(monitor, user, tenant=tenant, hashed=hashed)
    return run(monitor, disallow_steps(monitor.session, name))


def disallow_steps(session: Session, user_hash: str) -> Steps[bool]:
    """Return the task of `disallow`."""
    (reply,) = yield [_allow_call(session.settings, user_hash, seconds=0.0, reason="", time=None)]
    return bool(reply[1])


def _allow_call(settings: MonitorSettings, user_hash: str, *, seconds: float, reason: str, time: float | None) -> Call:
    keys = UserKeys(settings.store.prefix, user_hash)
    now = "" if time is None else microseconds(time)
    lifetime = microseconds(max(STATE_SECONDS, settings.coverage.window_seconds))
    return Call(ALLOW, [keys.key("state"), keys.key("allow")], [now, microseconds(seconds), reason, lifetime])


def top(
    monitor: ExfiltrationMonitor,
    n: int,
    *,
    tenant: str = DEFAULT_TENANT,
    scanned: int = SCANNED_USERS,
    time: float | None = None,
) -> Ranking:
    """Return the `n` users of a tenant with the highest composite among the `scanned` most recently active.

    Nothing is counted or changed. Limits of roles are not applied: the store does not know roles. Raises StoreError,
    and ConfigError where `collective.enabled` is false, since active users are listed with the collective windows.
    """
    return run(monitor, top_steps(monitor.session, n, tenant=tenant, scanned=scanned, time=time))


def top_steps(
    session: Session,
    n: int,
    *,
    tenant: str = DEFAULT_TENANT,
    scanned: int = SCANNED_USERS,
    time: float | None = None,
) -> Steps[Ranking]:
    """Return the task of `top`."""
    settings = session.settings
    if not settings.collective.enabled:
        raise ConfigError("collective.enabled is false, so the store lists no active users; explain USER still works")
    if n < 1 or scanned < 1:
        raise DataError(f"{min(n, scanned)} users cannot be ranked; it must be at least 1")
    active_key = tenant_key(settings.store.prefix, tenant=encode_name(tenant), name="active")
    (reply,) = yield [Call(MEMBERS, [active_key], [scanned])]
    states = []
    for one in _timed(reply[0]):
        states.append((yield from explain_steps(session, one, documents=0, time=time)))
    ranked = sorted(states, key=_rank, reverse=True)
    return Ranking(tenant=tenant, users=tuple(ranked[:n]), evaluated=len(states), remembered=int(reply[1]))


def _rank(state: UserState) -> tuple[float, bool, float]:
    composite = -1.0 if state.composite is None else state.composite
    return composite, state.throttled, state.last_query or 0.0
