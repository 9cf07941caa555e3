"""A circuit breaker: after a few failures in a row the store is left alone for a while, then tried by one call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


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
