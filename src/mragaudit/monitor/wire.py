"""One connection a thread to a single server.

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
        packed = (self._pack(("EVALSHA", call.script.sha, len(call.keys), *call.keys, *call.args)),)
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
