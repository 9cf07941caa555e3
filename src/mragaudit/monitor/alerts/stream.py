"""Alerts in a stream of the store: written here, read by `mragaudit monitor alerts`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from mragaudit.errors import StoreError
from mragaudit.monitor.alerts.queued import UndeliveredError
from mragaudit.monitor.calls import Text, as_text
from mragaudit.monitor.connection import EXTRA, Connection
from mragaudit.monitor.sinks import shown
from mragaudit.monitor.store import reason_of
from mragaudit.records.base import encode_record
from mragaudit.records.monitoring import Alert
from mragaudit.registry import import_package

FIELD = "alert"
KEEP_SECONDS = 90 * 86_400
"""A stream to which nothing is written is forgotten after this long."""
STREAM_ATTEMPTS = 5
BATCH = 100
FIRST = "0-0"


def stream_key(prefix: str) -> str:
    """Return the key of the stream of alerts."""
    return f"{prefix}:alerts"


class StreamDelivery:
    """Adds alerts to the stream, which keeps about the newest `length` of them."""

    name = "stream"

    def __init__(self, connection: Connection, *, prefix: str, length: int, plain_user_ids: bool) -> None:
        """Take a synchronous connection, which `close` closes."""
        self._client: Any = connection.client
        self._key = stream_key(prefix)
        self._length = length
        self._plain = plain_user_ids
        self._errors = _errors_of_the_store()

    def open(self) -> None:
        """The client makes its connections itself."""

    def deliver(self, alert: Alert) -> None:
        """Add the alert; raises UndeliveredError while the store is away."""
        body = encode_record(shown(alert, plain_user_ids=self._plain))
        try:
            self._client.xadd(self._key, {FIELD: body}, maxlen=self._length, approximate=True)
            self._client.expire(self._key, KEEP_SECONDS)
        except self._errors as error:
            raise UndeliveredError(reason_of(error), again=True) from None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamEntry:
    """One entry of the stream."""

    entry_id: str
    alert: Alert | None
    """None where the entry is no alert that this version can read."""


class AlertReader:
    """Reads the stream from a position on."""

    def __init__(self, connection: Connection, *, prefix: str) -> None:
        self._client: Any = connection.client
        self._key = stream_key(prefix)
        self._errors = _errors_of_the_store()
        self._position = FIRST

    def newest(self, most: int) -> list[StreamEntry]:
        """Return the newest entries, oldest first, and go on behind them; raises StoreError."""
        found = self._ask(lambda: self._client.xrevrange(self._key, count=max(most, 1)))
        if found:
            self._position = as_text(found[0][0])
        return [_entry(*one) for one in reversed(found[:most])]

    def new(self) -> Iterator[StreamEntry]:
        """Yield what was added since the last call; raises StoreError."""
        while found := self._ask(lambda: self._client.xrange(self._key, min=f"({self._position}", count=BATCH)):
            for one in found:
                self._position = as_text(one[0])
                yield _entry(*one)

    def _ask(self, ask: Any) -> Any:
        try:
            return ask()
        except self._errors as error:
            raise StoreError(reason_of(error)) from error


def _errors_of_the_store() -> tuple[type[Exception], ...]:
    redis = import_package("redis", extra=EXTRA)
    return (redis.RedisError, OSError)


def _entry(entry_id: Text, fields: dict[Text, Text] | None) -> StreamEntry:
    named = {as_text(name): value for name, value in (fields or {}).items()}
    return StreamEntry(entry_id=as_text(entry_id), alert=_alert(named.get(FIELD)))


def _alert(body: Text | None) -> Alert | None:
    try:
        return None if body is None else msgspec.json.decode(body, type=Alert)
    except msgspec.DecodeError:
        return None
