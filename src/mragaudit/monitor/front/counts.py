"""What a front did since it was made, beside what the monitor itself counts."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

BUCKETS_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(slots=True)
class Latency:
    """Seconds that recording took, in buckets."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    """Per bucket, not cumulative; the last holds what is longer than all bounds."""
    sum_seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        self.sum_seconds += seconds


@dataclass(slots=True)
class FrontCounts:
    """What a front did; `mragaudit.monitor.front.metrics` exports it."""

    refused: Counter[str] = field(default_factory=Counter)
    """places: the user had too many delayed requests; unidentified: nobody's request retrieved something."""
    delayed: int = 0
    """Requests held back, those whose client left included."""
    delayed_seconds: float = 0.0
    waiting: int = 0
    """Requests held back right now."""
    abandoned: int = 0
    """Requests whose client left while they were held back."""
    truncated: int = 0
    """Answers from which documents were cut."""
    proxied: Counter[str] = field(default_factory=Counter)
    """Requests through the proxy: recorded, unreported (no retrieval), unreadable, unidentified, failed (so answered
    by the upstream), unreachable, timeout, too_large, left."""
    latency: Latency = field(default_factory=Latency)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def recorded(self, seconds: float) -> None:
        """Count one query that took the monitor so long."""
        with self._lock:
            self.latency.add(seconds)

    def refuse(self, reason: str) -> None:
        """Count one refused request."""
        with self._lock:
            self.refused[reason] += 1

    def start_waiting(self) -> None:
        """Count a request that is now held back."""
        with self._lock:
            self.delayed += 1
            self.waiting += 1

    def end_waiting(self, seconds: float, *, abandoned: bool) -> None:
        """Count that a request is held back no more."""
        with self._lock:
            self.waiting -= 1
            self.delayed_seconds += seconds
            self.abandoned += abandoned

    def truncate(self) -> None:
        """Count one answer from which documents were cut."""
        with self._lock:
            self.truncated += 1

    def proxy(self, outcome: str) -> None:
        """Count one request through the reverse proxy."""
        with self._lock:
            self.proxied[outcome] += 1
