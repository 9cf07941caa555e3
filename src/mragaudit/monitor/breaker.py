"""A circuit breaker: after a few failures in a row the store is left alone for a while, then tried by one call.

On a cluster every stretch of slots has one of its own, so that a node that is away takes only its own users along.
"""

from __future__ import annotations

import binascii
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mragaudit.errors import StoreError

SLOTS = 16_384
STRETCHES = 64


class LeftAloneError(StoreError):
    """The store was not asked, after repeated failures."""


class BusyError(StoreError):
    """No connection was free in time: too many calls at once, which says nothing of the store."""


@dataclass(kw_only=True, slots=True)
class CircuitBreaker:
    """Closed (calls go through), open (they do not), half open (one may try)."""

    failures: int
    """Failures in a row that open it."""
    open_seconds: float
    clock: Callable[[], float] = time.monotonic
    _in_a_row: int = 0
    _opened: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def allows(self) -> bool:
        """Return whether a call may go through now; after the pause one caller at a time gets True."""
        if self._opened is None:
            return True
        with self._lock:
            if self._opened is None:
                return True
            if self.clock() - self._opened < self.open_seconds:
                return False
            self._opened = self.clock()  # the others wait while this one tries
            return True

    def succeeded(self) -> None:
        """Note a call that came back."""
        if self._in_a_row:
            with self._lock:
                self._in_a_row, self._opened = 0, None

    def failed(self) -> None:
        """Note a call that did not."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row >= self.failures:
                self._opened = self.clock()

    @property
    def is_open(self) -> bool:
        """Whether the store is being left alone."""
        return self._opened is not None


class Breakers:
    """The breakers of a store: one, or on a cluster one a stretch of slots."""

    def __init__(self, *, failures: int, open_seconds: float, cluster: bool) -> None:
        count = STRETCHES if cluster else 1
        self._all = tuple(CircuitBreaker(failures=failures, open_seconds=open_seconds) for _ in range(count))

    def of(self, key: str) -> CircuitBreaker:
        """Return the breaker that a key's call answers to."""
        return self._all[slot_of(key) * len(self._all) // SLOTS if len(self._all) > 1 else 0]

    @contextmanager
    def guarded(self, key: str) -> Iterator[None]:
        """Note how a call went; raises LeftAloneError instead of making one that may not go through."""
        breaker = self.of(key)
        if not breaker.allows():
            raise LeftAloneError("left alone after repeated failures")
        try:
            yield
        except BusyError:
            raise
        except StoreError:
            breaker.failed()
            raise
        breaker.succeeded()

    @property
    def is_open(self) -> bool:
        """Whether the store, or a part of it, is being left alone."""
        return any(one.is_open for one in self._all)


def slot_of(key: str) -> int:
    """Return a key's slot by the Redis Cluster specification: CRC16 (XMODEM) of its hash tag, modulo 16384."""
    _, opened, rest = key.partition("{")
    tag, closed, _ = rest.partition("}")
    hashed = tag if opened and closed and tag else key
    return binascii.crc_hqx(hashed.encode(), 0) % SLOTS
