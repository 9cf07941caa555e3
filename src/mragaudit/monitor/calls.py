"""The store's scripts: what goes in for one query, and what their answers mean.

Nothing here talks to a server; the synchronous and the asyncio client send what this module builds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from mragaudit.monitor.keys import UserKeys, encode_document, encode_name, encode_query, size_key, tenant_key
from mragaudit.monitor.queries import Query
from mragaudit.monitor.risk import Change
from mragaudit.monitor.settings import DAY_SECONDS, MonitorSettings
from mragaudit.monitor.windows import MICROSECONDS, CollectiveCounts, Throttled, WindowCounts
from mragaudit.records.monitoring import CollectionSize

MARGIN_SECONDS = 60.0
"""Keys live a little longer than their window, so that rounding never takes what a window still holds."""
COLLECTIVE_FRESH_SECONDS = 10.0
"""Oldest count of the collective signal."""
DAYS_A_WEEK = 7
CACHED_USERS = 4_096
Text = str | bytes


@dataclass(frozen=True, slots=True)
class Script:
    """A server-side script and the hash by which it is called."""

    text: str
    sha: str

    @classmethod
    def read(cls, name: str, *, config: str = "") -> Script:
        """Return a packaged script, `config` set before its text."""
        text = config + files("mragaudit.monitor").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


MARK = Script.read("mark")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a script."""

    script: Script
    keys: Sequence[str]
    args: Sequence[str | int]

    @property
    def arguments(self) -> list[str | int]:
        """Return what follows the script's hash: number of keys, keys, arguments."""
        return [len(self.keys), *self.keys, *self.args]


def microseconds(seconds: float) -> int:
    """Return whole microseconds."""
    return round(seconds * MICROSECONDS)


def ring_lifetime(window_seconds: float, *, sub_window_seconds: float) -> float:
    """Return how long a sketch lives from its first entry, as the script sets it: as long as any of it may count."""
    return window_seconds + 2 * sub_window_seconds + MARGIN_SECONDS


class RecordCalls:
    """Builds the calls that record a query; on a cluster the collective part is a call of its own."""

    def __init__(self, settings: MonitorSettings, *, cluster: bool) -> None:
        self._settings = settings
        self._cluster = cluster
        self._ring = settings.coverage.ring if settings.coverage.mode == "hyperloglog" else 0
        self._script = Script.read("record", config=_script_config(settings, ring=self._ring))
        self._keys_of_user = lru_cache(maxsize=CACHED_USERS)(self._user_keys)
        self._keys_of_tenant = lru_cache(maxsize=CACHED_USERS)(self._collective_keys)

    def calls(self, query: Query, user: str) -> list[Call]:
        """Return the calls for a query by the user with this hash: one, or on a cluster two for two nodes."""
        collection = encode_name(query.collection)
        keys = self._keys_of_user(user, collection)
        args = self._arguments(query, collection, user)
        if not self._settings.collective.enabled:
            return [self._call(query, keys, len(keys), args)]
        together = self._keys_of_tenant(encode_name(query.tenant), collection)
        if self._cluster:
            return [self._call(query, keys, len(keys), args), self._call(query, together, 0, args)]
        return [self._call(query, keys + together, len(keys), args)]

    def _call(self, query: Query, keys: Sequence[str], user_keys: int, args: list[str | int]) -> Call:
        now = "" if query.time is None else microseconds(query.time)
        return Call(self._script, keys, [now, user_keys, *args])

    def _arguments(self, query: Query, collection: str, user: str) -> list[str | int]:
        args: list[str | int] = [encode_query(query.query_id), collection, user]
        for level, ids in query.by_level.items():
            args += (level, len(ids), *map(encode_document, ids))
        return args

    def _user_keys(self, user: str, collection: str) -> tuple[str, ...]:
        keys = UserKeys(self._settings.store.prefix, user)
        named = [keys.key(name) for name in ("vol", "ret", "lev", "sens", "base", "state", "colls")]
        coverage = "hll" if self._ring else "cov"
        per_collection = [keys.of_collection("own", collection), keys.of_collection(coverage, collection)]
        slots = [keys.of_collection(coverage, f"{collection}:{slot}") for slot in range(self._ring)]
        size = [] if self._cluster else [size_key(self._settings.store.prefix, collection)]
        return (*named, *per_collection, *slots, *size)

    def _collective_keys(self, tenant: str, collection: str) -> tuple[str, ...]:
        prefix = self._settings.store.prefix
        seen = f"seen:{collection}"
        slots = [f"{seen}:{slot}" for slot in range(self._settings.collective.ring)]
        return tuple(tenant_key(prefix, tenant=tenant, name=name) for name in ("active", seen, *slots))


def _script_config(settings: MonitorSettings, *, ring: int) -> str:
    """Return the settings as the Lua table that the script reads; level names are checked words."""
    collective = settings.collective
    numbers = {
        "volume_window": microseconds(settings.volume.window_seconds),
        "volume_most": settings.volume.tracked_queries,
        "coverage_window": microseconds(settings.coverage.window_seconds),
        "coverage_most": settings.coverage.tracked_documents,
        "returned_window": microseconds(settings.sensitivity.window_seconds),
        "returned_most": settings.sensitivity.tracked_queries,
        "ring": ring,
        "sub_window": microseconds(settings.coverage.sub_window_seconds),
        "baseline_days": settings.sensitivity.baseline.weeks * DAYS_A_WEEK,
        "own_lifetime": microseconds(settings.limits.own_days * DAY_SECONDS),
        "size_lifetime": microseconds(settings.limits.size_days * DAY_SECONDS),
        "margin": microseconds(MARGIN_SECONDS),
        "collective_window": microseconds(collective.window_seconds),
        "collective_sub_window": microseconds(collective.sub_window_seconds),
        "collective_most": collective.tracked_users,
        "collective_fresh": microseconds(COLLECTIVE_FRESH_SECONDS),
    }
    fields = [f"{name} = {value}" for name, value in numbers.items()]
    fields.append("level_fields = {" + ", ".join(f"'l:{level}'" for level in settings.levels) + "}")
    sensitive = [level for level in settings.levels if level in settings.sensitive_levels]
    fields.append("sensitive = {" + ", ".join(f"['{level}'] = true" for level in sensitive) + "}")
    return "local CONFIG = { " + ", ".join(fields) + " }\n"


def read_counts(replies: Sequence[Any], *, levels: Sequence[str], size: CollectionSize | None = None) -> WindowCounts:
    """Return what the record calls of one query counted; `size` is used where the script read none.

    The first answer is the user's; that of a second, collective call is None where its node was away.
    """
    user = replies[0][1]
    together = next((reply[2] for reply in replies if reply is not None and reply[2]), None)
    duplicate, queries, distinct, own, sensitive, *baseline, held, version, totals, state = user
    read_size = CollectionSize(size=held, version=version, age_seconds=0.0) if held >= 0 else size
    return WindowCounts(
        time=int(replies[0][0]) / MICROSECONDS,
        duplicate=duplicate == 1,
        queries=queries,
        distinct_documents=distinct,
        own_documents=own,
        returned={level: n for level, total in zip(levels, totals, strict=True) if (n := int(total or 0))},
        distinct_sensitive_documents=sensitive,
        baseline_sensitive=baseline[0],
        baseline_returned=baseline[1],
        baseline_days=baseline[2],
        size=read_size,
        state=read_state(state),
        collective=None
        if together is None
        else CollectiveCounts(distinct_documents=together[0], alerted=int(together[1]) / MICROSECONDS),
    )


def read_state(flat: Sequence[Text] | Mapping[Text, Text]) -> Throttled:
    """Return a state hash as a script or a client gives it, its text as str or as bytes."""
    if not flat:
        return Throttled()
    pairs = flat.items() if isinstance(flat, Mapping) else zip(flat[::2], flat[1::2], strict=True)
    fields = {as_text(name): int(value) / MICROSECONDS for name, value in pairs}
    return Throttled(
        since=fields.get("since", 0.0),
        last_over=fields.get("over", 0.0),
        allowed_until=fields.get("allow", 0.0),
        alerted={name[2:]: time for name, time in fields.items() if name.startswith("a:")},
    )


def as_text(value: Text) -> str:
    """Return text whichever way the client decodes: a lookup by str among bytes would find nothing, in silence."""
    return value.decode() if isinstance(value, bytes) else value


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A change of state to be noted, and alerts to be claimed, after a decision."""

    change: Change
    flag_day: bool
    """Leave the running day out of the user's baseline."""
    claims: Mapping[str, float]
    """Alert kind → seconds during which it is not sent again."""
    time: float
    lifetime_seconds: float


def mark_call(mark: Mark, *, state: str, baseline: str | None) -> Call:
    """Return the call that notes a mark under the key `state`."""
    claims = [part for kind, seconds in mark.claims.items() for part in (kind, microseconds(seconds))]
    keys = [state, baseline] if mark.flag_day and baseline else [state]
    return Call(MARK, keys, [microseconds(mark.time), microseconds(mark.lifetime_seconds), mark.change, *claims])
