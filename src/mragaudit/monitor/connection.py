"""From a URL to a client of the store: one server, a cluster, or a Redis inside this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mragaudit.errors import ConfigError
from mragaudit.monitor.settings import Store
from mragaudit.registry import import_package

EXTRA = "monitor"
MEMORY = "memory://"
CLUSTER_SCHEMES = {"redis+cluster://": "redis://", "rediss+cluster://": "rediss://"}
SCHEMES = ("redis://", "rediss://", "unix://", *CLUSTER_SCHEMES, MEMORY)
MAX_CONNECTIONS = 64
PROTOCOL = 2  # answers of scripts as plain lists, on every version of the client


@dataclass(frozen=True, slots=True)
class Connection:
    """A client and what it is connected to."""

    client: Any
    """redis.Redis, redis.RedisCluster or their asyncio twins."""
    cluster: bool
    single_server: bool = False
    """A real server that this module connected to, over whose connections calls may be sent directly."""
    busy_seconds: float = 1.0
    """Longest wait for one of MAX_CONNECTIONS."""


class LateClient:
    """A client that is made at its first call: redis-py's synchronous cluster client connects when it is made."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            with self._lock:
                self._made = self._made or self._make()
        return getattr(self._made, name)

    def close(self) -> None:
        """Close the client, if there ever was one."""
        if self._made is not None:
            self._made.close()


def connect(store: Store) -> Connection:
    """Return a synchronous client; no connection is opened before the first call.

    Raises ConfigError for a URL of another kind, MissingPackageError without the extra `monitor`.
    """
    redis = import_package("redis", extra=EXTRA)
    url, cluster = _server_url(store.url)
    if url.startswith(MEMORY):
        return Connection(_fake().FakeRedis(server=_fake_server(url)), cluster=False)
    options = _options(store, retry=redis.retry.Retry, redis=redis)
    if cluster:
        late = LateClient(lambda: redis.RedisCluster.from_url(url, **options))
        return Connection(late, cluster=True, busy_seconds=store.timeout_seconds)
    pool = redis.BlockingConnectionPool.from_url(url, timeout=store.timeout_seconds, **options)
    return Connection(redis.Redis.from_pool(pool), cluster=False, single_server=True)


def connect_async(store: Store) -> Connection:
    """Return an asyncio client; raises what `connect` raises."""
    redis = import_package("redis", extra=EXTRA)
    aio = import_package("redis.asyncio", extra=EXTRA)
    url, cluster = _server_url(store.url)
    if url.startswith(MEMORY):
        return Connection(_fake().FakeAsyncRedis(server=_fake_server(url)), cluster=False)
    options = _options(store, retry=aio.retry.Retry, redis=redis)
    if cluster:
        client = aio.RedisCluster.from_url(url, **options)
        return Connection(client, cluster=True, busy_seconds=store.timeout_seconds)
    pool = aio.BlockingConnectionPool.from_url(url, timeout=store.timeout_seconds, **options)
    client = aio.Redis.from_pool(pool)
    return Connection(client, cluster=False, single_server=True, busy_seconds=store.timeout_seconds)


def _options(store: Store, *, retry: Any, redis: Any) -> dict[str, Any]:
    """Return the options of a connection; a dropped one is tried once more, since a query id counts once."""
    once_more = retry(redis.backoff.NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    return {
        "socket_timeout": store.timeout_seconds,
        "socket_connect_timeout": store.timeout_seconds,
        "max_connections": MAX_CONNECTIONS,
        "retry": once_more,
        "protocol": PROTOCOL,
    }


def _server_url(url: str) -> tuple[str, bool]:
    for scheme, plain in CLUSTER_SCHEMES.items():
        if url.startswith(scheme):
            return plain + url.removeprefix(scheme), True
    if not url.startswith(SCHEMES):
        raise ConfigError(f"store.url: the scheme is none of {', '.join(SCHEMES)}")
    return url, False


def _fake() -> Any:
    return import_package("fakeredis", extra=EXTRA)


_SERVERS: dict[str, Any] = {}


def _fake_server(url: str) -> Any:
    """Return the one server of a memory URL, which all clients of this process share."""
    return _SERVERS.setdefault(url, _fake().FakeServer())
