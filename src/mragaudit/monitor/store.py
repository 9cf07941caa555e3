"""The synchronous way to the store: scripts by hash, one error for everything that can go wrong."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from mragaudit.errors import StoreError
from mragaudit.monitor.calls import Call
from mragaudit.monitor.connection import EXTRA, Connection
from mragaudit.monitor.keys import secret_key
from mragaudit.monitor.wire import Wire
from mragaudit.registry import import_package

SECRET_BYTES = 32
CLUSTER_THREADS = 8


def reason_of(error: Exception) -> str:
    """Return what went wrong without any key or id: the kind of error and Redis's own code word."""
    word = str(error).partition(" ")[0]
    code = f" {word}" if word.isupper() and word.isalpha() else ""
    return f"{type(error).__name__}{code}"


class Store:
    """Runs scripts; raises StoreError where the server is away, too slow, full or read-only."""

    def __init__(self, connection: Connection, *, prefix: str) -> None:
        self.client: Any = connection.client
        self.cluster = connection.cluster
        self._prefix = prefix
        redis = import_package("redis", extra=EXTRA)
        self._no_script = redis.exceptions.NoScriptError
        self._errors = (redis.RedisError, redis.exceptions.RedisClusterException, OSError)
        self._wire = Wire(self.client) if connection.single_server else None
        self._pool = ThreadPoolExecutor(CLUSTER_THREADS, "mragaudit-store") if connection.cluster else None

    def run(self, call: Call) -> Any:
        """Return the answer of one script call."""
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

    def secret(self) -> bytes:
        """Return the secret that keys user hashes, made and kept in the store at its first use."""
        key = secret_key(self._prefix)
        try:
            self.client.set(key, secrets.token_hex(SECRET_BYTES), nx=True)
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
