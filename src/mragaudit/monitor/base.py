"""What the synchronous and the asyncio monitor are made of, before any waiting."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from mragaudit.monitor.alerts import sinks_from
from mragaudit.monitor.connection import Connection
from mragaudit.monitor.core import Counts
from mragaudit.monitor.reload import SettingsFile
from mragaudit.monitor.session import Session
from mragaudit.monitor.settings import MonitorSettings, Store
from mragaudit.monitor.sinks import AlertSink
from mragaudit.monitor.store import KeptSecret

SECRET_ENV = "MRAGAUDIT_MONITOR_KEY"  # noqa: S105 - the name of a variable, not a secret


def configured_secret() -> bytes | None:
    """Return the secret of user hashes from the environment."""
    value = os.environ.get(SECRET_ENV)
    return value.encode() if value else None


class BaseMonitor:
    """Settings, rules, counters and sinks of one monitor; the store is its client's own."""

    def __init__(
        self,
        settings: MonitorSettings | SettingsFile | None,
        *,
        connect: Callable[[Store], Connection],
        connection: Connection | None,
        sinks: Sequence[AlertSink] | None,
        secret: bytes | None,
        clock: Callable[[], float],
    ) -> None:
        source = settings if settings is not None else MonitorSettings()
        given = source.settings if isinstance(source, SettingsFile) else source
        self._connection = connection or connect(given.store)
        chosen = sinks_from(given) if sinks is None else sinks
        self.session = Session(source, cluster=self._connection.cluster, sinks=chosen, clock=clock)
        self._secret = KeptSecret(secret or configured_secret())

    @property
    def settings(self) -> MonitorSettings:
        """The settings in force."""
        return self.session.settings

    @property
    def counts(self) -> Counts:
        """What this monitor did since it was made."""
        return self.session.counts
