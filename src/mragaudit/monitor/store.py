"""The synchronous way to the store: scripts by hash, one error for everything that can go wrong."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from mragaudit.errors import StoreError
from mragaudit.monitor.breaker import Breakers, BusyError
from mragaudit.monitor.calls import Call
from mragaudit.monitor.connection import EXTRA, MAX_CONNECTIONS, Connection
from mragaudit.monitor.keys import secret_key
from mragaudit.monitor.wire import Wire
from mragaudit.registry import import_package

SECRET_BYTES = 32
SECRET_CHECK_SECONDS = 30.0
CLUSTER_THREADS = 8


def reason_of(error: Exception) -> str:
    """Return what went wrong without any key or id: the kind of error and Redis's own code word."""
    word = str(error).partition(" ")[0]
    code = f" {word}" if word.isupper() and word.isalpha() else ""
    return f"{type(error).__name__}{code}"


class KeptSecret:
    """The secret that keys user hashes, looked up again now and then where the store keeps it.

    A server that lost it may have got another one from a new worker; the same user would then be two.
    """

    def __init__(self, configured: bytes | None) -> None:
        self._configured = configured is not None
        self._value = configured
        self._checked = 0.0
        self._loads = 0

    @property
    def value(self) -> bytes | None:
        """The secret as it was last seen, None before the first look."""
        return self._value

    def known(self, script_loads: int) -> bytes | None:
        """Return the secret, None where it has to be looked up: at first, after a while, after a lost script."""
        fresh = time.monotonic() - self._checked < SECRET_CHECK_SECONDS and script_loads == self._loads
        return self._value if fresh or self._configured else None

    def keep(self, value: bytes, *, script_loads: int) -> bytes:
        """Keep what the store holds, and return it."""
        self._value, self._checked, self._loads = value, time.monotonic(), script_loads
        return value

    def doubt(self) -> None:
        """Have it looked up again: the server was away."""
        self._checked = -SECRET_CHECK_SECONDS


class Store:
    """Runs scripts; raises StoreError where the server is away, too slow, full or read-only."""

    def __init__(self, connection: Connection, *, prefix: str, breakers: Breakers) -> None:
        self.client: Any = connection.client
        self.cluster = connection.cluster
        self.script_loads = 0
        self._prefix = prefix
        self._breakers = breakers
        redis = import_package("redis", extra=EXTRA)
        self._no_script = redis.exceptions.NoScriptError
        self._errors = (redis.RedisError, redis.exceptions.RedisClusterException, OSError)
        self._wire = Wire(self.client) if connection.single_server else None
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS) if connection.cluster else None
        self._busy_seconds = connection.busy_seconds
        self._pool = ThreadPoolExecutor(CLUSTER_THREADS, "mragaudit-store") if connection.cluster else None

    def run(self, call: Call) -> Any:
        """Return the answer of one script call; raises LeftAloneError without a call while the breaker is open."""
        with self._breakers.guarded(call.keys[0]):
            return self._run_in_place(call)

    def _run_in_place(self, call: Call) -> Any:
        if self._places is None:
            return self._run_or_raise(call)
        if not self._places.acquire(timeout=self._busy_seconds):
            raise BusyError("busy")
        try:
            return self._run_or_raise(call)
        finally:
            self._places.release()

    def _run_or_raise(self, call: Call) -> Any:
        try:
            return self._run(call)
        except self._errors as error:
            raise StoreError(reason_of(error)) from error

    def _run(self, call: Call) -> Any:
        try:
            if self._wire is not None:
                return self._wire.evalsha(call)
            return self.client.evalsha(call.script.sha, *call.arguments)
        except self._no_script:
            self.script_loads += 1
            return self.client.eval(call.script.text, *call.arguments)

    def run_all(self, calls: Sequence[Call]) -> list[Any]:
        """Return the answers of several calls, made at the same time on a cluster, where they go to several nodes.

        Only the first must succeed; an answer of the others is None where their node is away.
        """
        if self._pool is None:
            return [self.run(calls[0]), *(self._attempt(call) for call in calls[1:])]
        others: list[Future[Any]] = [self._pool.submit(self._attempt, call) for call in calls[1:]]
        first = self.run(calls[0])
        return [first, *(one.result() for one in others)]

    def attempt_all(self, calls: Sequence[Call]) -> list[Any]:
        """Return the answers of several calls, None for each that failed."""
        return [self._attempt(call) for call in calls]

    def _attempt(self, call: Call) -> Any:
        try:
            return self.run(call)
        except StoreError:
            return None

    def secret(self, offer: bytes | None = None) -> bytes:
        """Return the secret that the store keeps; where it has none, `offer` or a new one becomes it."""
        key = secret_key(self._prefix)
        with self._breakers.guarded(key):
            try:
                self.client.set(key, offer or secrets.token_hex(SECRET_BYTES), nx=True)
                value = self.client.get(key)
            except self._errors as error:
                raise StoreError(reason_of(error)) from error
        return value.encode() if isinstance(value, str) else bytes(value)

    def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._wire is not None:
            self._wire.close()
        self.client.close()
