"""The synchronous monitor: record a query, get a decision."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from mragaudit.errors import DataError, StoreError
from mragaudit.monitor.base import BaseMonitor
from mragaudit.monitor.connection import Connection, connect
from mragaudit.monitor.holds import hold_call, release_call
from mragaudit.monitor.keys import user_hash
from mragaudit.monitor.queries import DEFAULT_TENANT, Documents, check_id
from mragaudit.monitor.reload import SettingsFile
from mragaudit.monitor.session import Request
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.sinks import AlertSink
from mragaudit.monitor.sizes import own_call, size_call
from mragaudit.monitor.store import Store
from mragaudit.records.monitoring import Decision


class ExfiltrationMonitor(BaseMonitor):
    """Records queries and says which to slow; safe to share between threads.

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
        """Make a monitor.

        `connection` replaces the client that `store.url` names; `sinks` replace those that the settings name. `secret`
        keys the hashes of user ids: by default the environment variable MRAGAUDIT_MONITOR_KEY, else one that the store
        keeps.
        """
        super().__init__(settings, connect=connect, connection=connection, sinks=sinks, secret=secret, clock=clock)
        self.store = Store(self._connection, prefix=self.settings.store.prefix, breakers=self.session.breakers)

    def record(
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
        """Record one query and return what to do with it.

        `documents` are the retrieved ids with their sensitivity levels; `query_id` is unique a query, the same for a
        retry. `time` is for replays alone: Unix seconds in place of the store's clock.
        """
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
            return self._record(request)
        except Exception as error:  # a served query never meets an exception of the monitor
            return self.session.broken(request, error)

    def _record(self, request: Request) -> Decision:
        session = self.session
        session.reload()
        try:
            query = session.checked(request)
        except DataError as error:
            return session.refused(request, error)
        try:
            prepared = session.prepare(query, secret=self.secret())
            asked_at = session.now()
            replies = self.store.run_all(session.with_size(prepared))
        except StoreError as error:
            self._secret.doubt()
            return session.store_failed(request, error)
        judged = session.settle(prepared, replies, asked_at=asked_at)
        marks = session.mark_calls(prepared, judged)
        return session.conclude(prepared, judged, self.store.attempt_all(marks) if marks else ())

    def secret(self) -> bytes:
        """Return the secret that keys user hashes."""
        known = self._secret.known(self.store.script_loads)
        if known is not None:
            return known
        loads, old = self.store.script_loads, self._secret.value
        try:
            return self._secret.keep(self.store.secret(old), script_loads=loads)
        except StoreError:
            if old is None or not self.store.cluster:
                raise
            return old  # its node is away; the user's may be there

    def user_hash(self, user: str, *, tenant: str = DEFAULT_TENANT) -> str:
        """Return the keyed hash that stands for a user in the store, the log and the sinks."""
        check_id("user", user, self.settings)
        check_id("tenant", tenant, self.settings)
        return user_hash(self.secret(), tenant=tenant, user=user)

    def set_size(self, collection: str, size: int) -> None:
        """Say how many documents a collection holds now, for all tenants; an indexer calls it after every change."""
        self.store.run(size_call(self.settings, collection, size=size))

    def user_added(self, user: str, collection: str, *, doc_ids: Sequence[str], tenant: str = DEFAULT_TENANT) -> int:
        """Note documents that a user added, which count neither as retrieved nor as held; return how many there are."""
        return self._own(user, collection, doc_ids=doc_ids, tenant=tenant, added=True)

    def user_removed(self, user: str, collection: str, *, doc_ids: Sequence[str], tenant: str = DEFAULT_TENANT) -> int:
        """Note that documents which a user had added are gone; return how many are left."""
        return self._own(user, collection, doc_ids=doc_ids, tenant=tenant, added=False)

    def _own(self, user: str, collection: str, *, doc_ids: Sequence[str], tenant: str, added: bool) -> int:
        hashed = self.user_hash(user, tenant=tenant)
        call = own_call(self.settings, user_hash=hashed, collection=collection, doc_ids=doc_ids, added=added)
        return int(self.store.run(call))

    def hold(self, user: str, request_id: str, *, tenant: str = DEFAULT_TENANT) -> bool:
        """Take one of the user's places for delayed requests; False when there is none, for whatever reason."""
        try:
            hashed = self.user_hash(user, tenant=tenant)
            places = self.store.run(hold_call(self.settings, user_hash=hashed, request_id=request_id))
            return bool(places == 1)
        except (StoreError, DataError):
            return False

    def release(self, user: str, request_id: str, *, tenant: str = DEFAULT_TENANT) -> None:
        """Give a place for delayed requests back; one that is not is free again by itself after the delay."""
        try:
            hashed = self.user_hash(user, tenant=tenant)
            self.store.run(release_call(self.settings, user_hash=hashed, request_id=request_id))
        except DataError:
            return  # what cannot be an id holds no place
        except StoreError:
            self.counts.problems["store"] += 1

    def close(self) -> None:
        """Send waiting alerts and close all connections."""
        for sink in self.session.sinks:
            sink.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
