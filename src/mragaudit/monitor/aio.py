"""The asyncio monitor: what `client` does, without blocking the event loop."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from mragaudit.errors import DataError, StoreError
from mragaudit.monitor.base import BaseMonitor
from mragaudit.monitor.breaker import Breakers, BusyError
from mragaudit.monitor.calls import Call
from mragaudit.monitor.connection import EXTRA, MAX_CONNECTIONS, Connection, connect_async
from mragaudit.monitor.holds import hold_call, release_call
from mragaudit.monitor.keys import secret_key, user_hash
from mragaudit.monitor.queries import DEFAULT_TENANT, Documents, check_id
from mragaudit.monitor.reload import SettingsFile
from mragaudit.monitor.session import Request
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.sinks import AlertSink
from mragaudit.monitor.sizes import own_call, size_call
from mragaudit.monitor.store import SECRET_BYTES, reason_of
from mragaudit.monitor.wire import AsyncWire
from mragaudit.records.monitoring import Decision
from mragaudit.registry import import_package


class AsyncStore:
    """Runs scripts; raises StoreError where the server is away, too slow, full or read-only."""

    def __init__(self, connection: Connection, *, prefix: str, breakers: Breakers) -> None:
        self.client: Any = connection.client
        self.cluster = connection.cluster
        self.script_loads = 0
        self._prefix = prefix
        self._breakers = breakers
        redis = import_package("redis", extra=EXTRA)
        self._no_script = redis.exceptions.NoScriptError
        self._errors: tuple[type[Exception], ...] = (
            redis.RedisError,
            redis.exceptions.RedisClusterException,
            OSError,
        )
        self._wire = AsyncWire(connection.client) if connection.single_server else None
        self._places = asyncio.Semaphore(MAX_CONNECTIONS)
        self._busy_seconds = connection.busy_seconds
        if connection.cluster:
            # Where one connection of a cluster fails redis-py closes others, also those that are being opened.
            self._errors += (AttributeError,)
        self._opening = asyncio.Lock()
        self._opened = not connection.cluster

    async def run(self, call: Call) -> Any:
        """Return the answer of one script call; raises LeftAloneError without a call while the breaker is open."""
        with self._breakers.guarded(call.keys[0]):
            await self._take_place()
            try:
                await self._open()
                return await self._run_or_raise(call)
            finally:
                self._places.release()

    async def _take_place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()  # at once; to wait for it in a task of its own would cost as much as the call
            return
        try:
            await asyncio.wait_for(self._places.acquire(), self._busy_seconds)
        except TimeoutError as error:
            raise BusyError("busy") from error

    async def _open(self) -> None:
        """Look the nodes of a cluster up once: calls that do so at the same time close each other's connections."""
        if self._opened:
            return
        async with self._opening:
            if self._opened:
                return
            try:
                await self.client.initialize()
            except self._errors as error:
                raise StoreError(reason_of(error)) from error
            self._opened = True

    async def _run_or_raise(self, call: Call) -> Any:
        try:
            return await self._run(call)
        except self._errors as error:
            raise StoreError(reason_of(error)) from error

    async def _run(self, call: Call) -> Any:
        try:
            if self._wire is not None:
                return await self._wire.evalsha(call)
            return await self.client.evalsha(call.script.sha, *call.arguments)
        except self._no_script:
            self.script_loads += 1
            return await self.client.eval(call.script.text, *call.arguments)

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        """Return the answers of several calls, made at the same time.

        Only the first must succeed; an answer of the others is None where their node is away.
        """
        if len(calls) == 1:
            return [await self.run(calls[0])]
        attempts = (self._attempt(call) for call in calls[1:])
        first, *others = await asyncio.gather(self.run(calls[0]), *attempts, return_exceptions=True)
        # All are waited for: a call left behind would open connections that nobody closes.
        for answer in (first, *others):
            if isinstance(answer, BaseException):
                raise answer
        return [first, *others]

    async def attempt_all(self, calls: Sequence[Call]) -> list[Any]:
        """Return the answers of several calls, None for each that failed."""
        return list(await asyncio.gather(*(self._attempt(call) for call in calls)))

    async def _attempt(self, call: Call) -> Any:
        try:
            return await self.run(call)
        except StoreError:
            return None

    async def secret(self, offer: bytes | None = None) -> bytes:
        """Return the secret that the store keeps; where it has none, `offer` or a new one becomes it."""
        key = secret_key(self._prefix)
        with self._breakers.guarded(key):
            await self._open()
            try:
                await self.client.set(key, offer or secrets.token_hex(SECRET_BYTES), nx=True)
                value = await self.client.get(key)
            except self._errors as error:
                raise StoreError(reason_of(error)) from error
        return value.encode() if isinstance(value, str) else bytes(value)

    async def close(self) -> None:
        """Close all connections."""
        if self._wire is not None:
            await self._wire.close()
        await self.client.aclose()
        if self.cluster:
            # The client closes nothing while it has its nodes still to look up, as after a failure.
            for nodes in ("nodes_cache", "startup_nodes"):
                await self.client.nodes_manager.aclose(nodes)


class AsyncExfiltrationMonitor(BaseMonitor):
    """Records queries and says which to slow, on one event loop.

    `record` never raises: what the store or the input does wrong becomes a decision with `problem` set. The other
    methods are for indexers and front ends; they raise StoreError while the store is away.
    """

    def __init__(
        self,
        settings: MonitorSettings | SettingsFile | None = None,
        *,
        connection: Connection | None = None,
        sinks: Sequence[AlertSink] | None = None,
        secret: bytes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Make a monitor; the arguments are those of `ExfiltrationMonitor`, with an asyncio client."""
        super().__init__(
            settings, connect=connect_async, connection=connection, sinks=sinks, secret=secret, clock=clock
        )
        self.store = AsyncStore(self._connection, prefix=self.settings.store.prefix, breakers=self.session.breakers)

    async def record(
        self,
        *,
        user: str,
        query_id: str,
        collection: str,
        documents: Documents,
        role: str | None = None,
        tenant: str = DEFAULT_TENANT,
        time: float | None = None,
    ) -> Decision:
        """Record one query and return what to do with it; the arguments are those of `ExfiltrationMonitor.record`."""
        request = Request(
            user=user,
            query_id=query_id,
            collection=collection,
            documents=documents,
            tenant=tenant,
            role=role,
            time=time,
        )
        try:
            return await self._record(request)
        except Exception as error:  # a served query never meets an exception of the monitor
            return self.session.broken(request, error)

    async def _record(self, request: Request) -> Decision:
        session = self.session
        session.reload()
        try:
            query = session.checked(request)
        except DataError as error:
            return session.refused(request, error)
        try:
            prepared = session.prepare(query, secret=await self.secret())
            asked_at = session.now()
            replies = await self.store.run_all(session.with_size(prepared))
        except StoreError as error:
            self._secret.doubt()
            return session.store_failed(request, error)
        judged = session.settle(prepared, replies, asked_at=asked_at)
        marks = session.mark_calls(prepared, judged)
        return session.conclude(prepared, judged, await self.store.attempt_all(marks) if marks else ())

    async def secret(self) -> bytes:
        """Return the secret that keys user hashes."""
        known = self._secret.known(self.store.script_loads)
        if known is not None:
            return known
        loads, old = self.store.script_loads, self._secret.value
        try:
            return self._secret.keep(await self.store.secret(old), script_loads=loads)
        except StoreError:
            if old is None or not self.store.cluster:
                raise
            return old  # its node is away; the user's may be there

    async def user_hash(self, user: str, *, tenant: str = DEFAULT_TENANT) -> str:
        """Return the keyed hash that stands for a user in the store, the log and the sinks."""
        check_id("user", user, self.settings)
        check_id("tenant", tenant, self.settings)
        return user_hash(await self.secret(), tenant=tenant, user=user)

    async def set_size(self, collection: str, size: int) -> None:
        """Say how many documents a collection holds now, for all tenants; an indexer calls it after every change."""
        await self.store.run(size_call(self.settings, collection, size=size))

    async def user_added(
        self, user: str, collection: str, *, doc_ids: Sequence[str], tenant: str = DEFAULT_TENANT
    ) -> int:
        """Note documents that a user added, which count neither as retrieved nor as held; return how many there are."""
        return await self._own(user, collection, doc_ids=doc_ids, tenant=tenant, added=True)

    async def user_removed(
        self, user: str, collection: str, *, doc_ids: Sequence[str], tenant: str = DEFAULT_TENANT
    ) -> int:
        """Note that documents which a user had added are gone; return how many are left."""
        return await self._own(user, collection, doc_ids=doc_ids, tenant=tenant, added=False)

    async def _own(self, user: str, collection: str, *, doc_ids: Sequence[str], tenant: str, added: bool) -> int:
        hashed = await self.user_hash(user, tenant=tenant)
        call = own_call(self.settings, user_hash=hashed, collection=collection, doc_ids=doc_ids, added=added)
        return int(await self.store.run(call))

    async def hold(self, user: str, request_id: str, *, tenant: str = DEFAULT_TENANT) -> bool:
        """Take one of the user's places for delayed requests; False when there is none, for whatever reason."""
        try:
            hashed = await self.user_hash(user, tenant=tenant)
            places = await self.store.run(hold_call(self.settings, user_hash=hashed, request_id=request_id))
            return bool(places == 1)
        except (StoreError, DataError):
            return False

    async def release(self, user: str, request_id: str, *, tenant: str = DEFAULT_TENANT) -> None:
        """Give a place for delayed requests back; one that is not is free again by itself after the delay."""
        try:
            hashed = await self.user_hash(user, tenant=tenant)
            await self.store.run(release_call(self.settings, user_hash=hashed, request_id=request_id))
        except DataError:
            return  # what cannot be an id holds no place
        except StoreError:
            self.counts.problems["store"] += 1

    async def close(self) -> None:
        """Send waiting alerts and close all connections."""
        for sink in self.session.sinks:
            await asyncio.to_thread(sink.close)
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
