"""A bounded queue on a thread before a slow sink: an alert that cannot be sent at once never delays a query."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from dataclasses import dataclass
from typing import Protocol

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_random_exponential,
)

from mragaudit.errors import MragauditError
from mragaudit.records.monitoring import Alert

logger = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
LONGEST_ASKED_PAUSE_SECONDS = 300.0
"""A receiver may ask for a longer pause than the back-off's, but not stop the queue for a day."""
CLOSE_SECONDS = 5.0
COMPLAINT_SECONDS = 60.0


class UndeliveredError(MragauditError):
    """One attempt to send an alert failed; the text names no id and no secret."""

    def __init__(self, message: str, *, again: bool, after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.again = again
        """Whether another attempt could succeed."""
        self.after_seconds = after_seconds
        """How long the receiver asked to be left alone."""


class Delivery(Protocol):
    """A way to send one alert; `open`, `deliver` and `close` are called by the one thread of its queue."""

    name: str
    """What the log calls it."""

    def open(self) -> None:
        """Make what belongs to the thread."""

    def deliver(self, alert: Alert) -> None:
        """Make one attempt, in bounded time; raises UndeliveredError."""

    def close(self) -> None:
        """Give connections back."""


@dataclass(slots=True)
class QueueCounts:
    """What became of the alerts of one queue."""

    sent: int = 0
    failed: int = 0
    """Given up after all attempts, or refused for good."""
    dropped: int = 0
    """Came while the queue was full or closed, or were still waiting when it closed."""


class QueuedSink:
    """Sends alerts one after another on a thread that starts with the first.

    The thread is a daemon; at a normal end of the process what waits is still sent, for a bounded time. A forked
    process, which has no such thread, starts its own.
    """

    def __init__(
        self,
        delivery: Delivery,
        *,
        length: int,
        attempts: int,
        close_seconds: float = CLOSE_SECONDS,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        """Make a queue of `length` alerts; `first_pause_seconds` bounds the first pause, later ones double."""
        self.name = delivery.name
        self.counts = QueueCounts()
        self._delivery = delivery
        self._queue: queue.Queue[Alert | None] = queue.Queue(length)
        self._close_seconds = close_seconds
        self._closed = False
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._next_complaint = 0.0
        self._backoff = wait_random_exponential(multiplier=first_pause_seconds, max=LONGEST_PAUSE_SECONDS)
        self._retrying = Retrying(
            retry=retry_if_exception(_worth_another),
            stop=stop_after_attempt(attempts) | stop_when_event_set(self._stop),
            wait=self._pause,
            sleep=sleep_using_event(self._stop),
            reraise=True,
        )

    @property
    def waiting(self) -> int:
        """Alerts that are not sent yet, the one under way left out."""
        return self._queue.qsize()

    def send(self, alert: Alert) -> None:
        """Queue an alert, or drop and count it where the queue is full; returns at once."""
        with self._lock:
            taken = self._take(alert)
        if not taken:
            self._drop(1)

    def _take(self, alert: Alert) -> bool:
        """Queue an alert and see to it that there is a thread; return whether there was room."""
        if self._closed:
            return False
        try:
            self._queue.put_nowait(alert)
        except queue.Full:
            return False
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name=f"mragaudit-{self.name}", daemon=True)
            self._thread.start()
            atexit.register(self.close)
        return True

    def _drop(self, count: int) -> None:
        """Count dropped alerts; say so once a minute, since they come in floods."""
        with self._lock:
            self.counts.dropped += count
            due = time.monotonic() >= self._next_complaint
            if due:
                self._next_complaint = time.monotonic() + COMPLAINT_SECONDS
        if due:
            logger.error("%s: alerts dropped, %d so far; its queue was full or closed", self.name, self.counts.dropped)

    def _work(self) -> None:
        self._delivery.open()
        try:
            while (alert := self._queue.get()) is not None:
                if self._stop.is_set():
                    self._drop(1)
                else:
                    self._deliver(alert)
        finally:
            self._delivery.close()

    def _deliver(self, alert: Alert) -> None:
        try:
            self._retrying(self._delivery.deliver, alert)
        except UndeliveredError as error:
            self.counts.failed += 1
            logger.error("%s: alert %s was not sent: %s", self.name, alert.alert_id, error)
        except Exception:  # the thread has to outlive a fault of ours: later alerts still go out
            self.counts.failed += 1
            logger.exception("%s: alert %s was not sent", self.name, alert.alert_id)
        else:
            self.counts.sent += 1

    def _pause(self, state: RetryCallState) -> float:
        """Return seconds to the next attempt: back-off with full jitter, or longer where the receiver asked."""
        pause = self._backoff(state)
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.after_seconds if isinstance(error, UndeliveredError) else None
        return pause if asked is None else max(pause, min(asked, LONGEST_ASKED_PAUSE_SECONDS))

    def close(self) -> None:
        """Send what waits for a bounded time, count the rest as dropped, end the thread; again is no error."""
        with self._lock:
            closed, self._closed = self._closed, True
        thread = self._thread
        if closed or thread is None or not thread.is_alive():
            return
        atexit.unregister(self.close)
        deadline = time.monotonic() + self._close_seconds
        try:
            self._queue.put(None, timeout=self._close_seconds)
            thread.join(max(0.0, deadline - time.monotonic()))
        except queue.Full:
            pass
        if thread.is_alive():
            self._stop.set()
            self._give_up()

    def _give_up(self) -> None:
        """Count what still waits; the thread ends after the attempt under way."""
        left = 0
        while True:
            try:
                left += self._queue.get_nowait() is not None
            except queue.Empty:
                break
        if left:
            self._drop(left)
        self._queue.put_nowait(None)


def _worth_another(error: BaseException) -> bool:
    return isinstance(error, UndeliveredError) and error.again
