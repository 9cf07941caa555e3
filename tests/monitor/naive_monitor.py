"""The usual naive implementation, one command a round trip, kept as what the tests have to tell ours from.

It follows the reference's description of the state word by word: members of time and user, a TTL refreshed by every
write, separate commands, a hash looked up by text, a plain weighted mean, the worker's clock, ids pasted into keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

SENSITIVE = ("confidential", "restricted")


class NaiveMonitor:
    """Volume, coverage and sensitivity of users, with every fault that the reference lists."""

    def __init__(self, client: Any, *, clock: Callable[[], float] = time.time, sizes: dict[str, int] | None = None):
        self.client = client
        self.clock = clock
        self.sizes = sizes or {}

    def record(self, *, user: str, collection: str, documents: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Record a query and return its counts, scores and the decision."""
        queries = self._volume(user)
        coverage = self._coverage(user, collection, [doc_id for doc_id, _ in documents])
        sensitivity = self._sensitivity(user, [level for _, level in documents])
        scores = (min(1.0, queries / 50), min(1.0, coverage / 0.8), min(1.0, sensitivity / 0.3))
        composite = sum(scores) / 3
        return {
            "queries": queries,
            "coverage": coverage,
            "sensitivity": sensitivity,
            "composite": composite,
            "throttled": composite > 0.5,
        }

    def _volume(self, user: str) -> int:
        key, now = f"query_volume:{user}", self.clock()
        self.client.zadd(key, {f"{now}:{user}": now})
        self.client.zremrangebyscore(key, 0, now - 3_600)
        self.client.expire(key, 3_660)
        return int(self.client.zcard(key))

    def _coverage(self, user: str, collection: str, doc_ids: Sequence[str]) -> float:
        key = f"coverage:{user}:{collection}"
        if doc_ids:
            self.client.sadd(key, *doc_ids)
        self.client.expire(key, 604_800)
        return float(self.client.scard(key)) / self.sizes.get(collection, 1_000)

    def _sensitivity(self, user: str, levels: Sequence[str]) -> float:
        key = f"sensitivity:{user}"
        for level in levels:
            self.client.hincrby(key, level, 1)
        self.client.expire(key, 86_400)
        counts = self.client.hgetall(key)
        total = sum(int(count) for count in counts.values())
        return sum(int(counts.get(level, 0)) for level in SENSITIVE) / total if total else 0.0
