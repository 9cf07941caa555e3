"""Connections to a single server: one a thread, or one a call under way on an event loop.

The pooled client of redis-py spends about as long on one call as the server on the script; taken apart, the same
library's connection and hiredis' packer are fast enough (benchmarks/monitor.py measures it).
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from mragaudit.monitor.calls import Call
from mragaudit.monitor.connection import EXTRA
from mragaudit.registry import import_package


def command_of(call: Call) -> tuple[str | int, ...]:
    """Return the words of a script call."""
    return ("EVALSHA", call.script.sha, len(call.keys), *call.keys, *call.args)


class Wire:
    """Sends script calls over connections like those of a redis-py client; raises that library's errors."""

    def __init__(self, client: Any) -> None:
        self._pool = client.connection_pool
        self._pack = import_package("hiredis", extra=EXTRA).pack_command
        self._dropped = import_package("redis", extra=EXTRA).ConnectionError
        self._local = threading.local()
        self._all: weakref.WeakSet[Any] = weakref.WeakSet()  # a thread that ends takes its connection along

    def evalsha(self, call: Call) -> Any:
        """Return the answer of a script that the server knows by its hash.

        A dropped connection is opened anew and the call made once more: a query id counts once.
        """
        packed = (self._pack(command_of(call)),)
        try:
            return self._ask(packed)
        except self._dropped:
            return self._ask(packed)

    def _ask(self, packed: tuple[bytes]) -> Any:
        connection = self._connection()
        connection.send_packed_command(packed)
        return connection.read_response()

    def _connection(self) -> Any:
        """Return this thread's connection; a forked process makes its own."""
        local = self._local
        if getattr(local, "pid", None) != os.getpid():
            local.connection = self._pool.connection_class(**self._pool.connection_kwargs)
            local.pid = os.getpid()
            self._all.add(local.connection)
        return local.connection

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in list(self._all):
            connection.disconnect()
        self._all.clear()
        self._local = threading.local()


class AsyncWire:
    """The same on an event loop; how many calls may be under way at once is for the caller to bound."""

    def __init__(self, client: Any) -> None:
        redis = import_package("redis", extra=EXTRA)
        self._pool = client.connection_pool
        self._pack = import_package("hiredis", extra=EXTRA).pack_command
        self._dropped = redis.ConnectionError
        self._refused = redis.ResponseError
        self._free: list[Any] = []

    async def evalsha(self, call: Call) -> Any:
        """Return the answer of a script that the server knows by its hash; asked once more where it was dropped."""
        packed = self._pack(command_of(call))
        try:
            return await self._ask(packed)
        except self._dropped:
            await self.close()  # the others were dropped as well, by a server that started anew
            return await self._ask(packed)

    async def _ask(self, packed: bytes) -> Any:
        connection = self._free.pop() if self._free else self._new()
        try:
            await connection.send_packed_command(packed)
            answer = await connection.read_response()
        except self._refused:  # an answer, too
            self._free.append(connection)
            raise
        except BaseException:  # cancelled, or too slow: what is still to come would be taken for the next answer
            await connection.disconnect(nowait=True)
            raise
        self._free.append(connection)
        return answer

    def _new(self) -> Any:
        return self._pool.connection_class(**self._pool.connection_kwargs)

    async def close(self) -> None:
        """Close the connections that no call is using."""
        while self._free:
            await self._free.pop().disconnect(nowait=True)
