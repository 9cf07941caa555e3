"""One way to drive every monitor under test: in memory, on a server, on a cluster; synchronous and asyncio."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Sequence
from typing import Any

from mragaudit.monitor import AsyncExfiltrationMonitor, ExfiltrationMonitor, MonitorSettings
from mragaudit.monitor.calls import Call
from mragaudit.monitor.connection import connect
from mragaudit.monitor.keys import UserKeys
from mragaudit.records.monitoring import Alert, Decision, SignalReading

SECRET = b"a secret of the tests"
START = 1_700_000_000.0
"""Unix seconds at which simulated time starts, 22:13:20 of a day."""
HOUR, DAY, WEEK = 3_600.0, 86_400.0, 604_800.0
KINDS = ("memory", "server", "cluster")
_numbers = itertools.count()


class ListSink:
    """Keeps the alerts that were sent."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []
        self.closed = False

    def send(self, alert: Alert) -> None:
        self.alerts.append(alert)

    def close(self) -> None:
        self.closed = True

    def kinds(self) -> list[str]:
        return [one.kind for one in self.alerts]


def made_settings(url: str, *, prefix: str | None = None, **sections: Any) -> MonitorSettings:
    """Return settings for a store, with a prefix of their own, patient enough for a busy machine."""
    store = {"url": url, "prefix": prefix or f"t{next(_numbers)}", "timeout_seconds": 5.0}
    sections["store"] = store | sections.get("store", {})
    sections["coverage"] = {"size_max_age_seconds": 0.0} | sections.get("coverage", {})
    return MonitorSettings.model_validate(sections)


def ids(first: int, last: int) -> list[str]:
    """Return the ids of documents `first` to `last`."""
    return [f"doc-{number}" for number in range(first, last + 1)]


class Driver:
    """A monitor, its alerts, and short ways to ask it things."""

    def __init__(self, settings: MonitorSettings, *, asynchronous: bool, **options: Any) -> None:
        self.sink = ListSink()
        options = {"sinks": [self.sink], "secret": SECRET} | options
        self._loop = asyncio.new_event_loop() if asynchronous else None
        kind = AsyncExfiltrationMonitor if asynchronous else ExfiltrationMonitor
        self.monitor: Any = kind(settings, **options)
        self._direct: Any = None

    @property
    def settings(self) -> MonitorSettings:
        return self.monitor.settings

    @property
    def prefix(self) -> str:
        return self.settings.store.prefix

    @property
    def direct(self) -> Any:
        """A synchronous client of the same store, apart from the monitor's."""
        if self._direct is None:
            self._direct = connect(self.settings.store).client
        return self._direct

    def stored_keys(self) -> list[str]:
        """Return all keys of this driver's prefix."""
        return sorted(key.decode() for key in self.direct.scan_iter(match=f"{self.prefix}:*", count=1_000))

    def key(self, name: str, *, user: str = "ann") -> str:
        """Return one of a user's keys."""
        return UserKeys(self.prefix, self.do("user_hash", user)).key(name)

    def wait_for(self, result: Any) -> Any:
        """Return a result, awaited where it is a coroutine."""
        if self._loop is not None and inspect.isawaitable(result):
            return self._loop.run_until_complete(result)
        return result

    def record(self, **query: Any) -> Decision:
        decision = self.wait_for(self.monitor.record(**query))
        assert isinstance(decision, Decision)
        return decision

    def ask(
        self,
        doc_ids: Sequence[str] = (),
        *,
        at: float | None = None,
        user: str = "ann",
        level: str = "public",
        collection: str = "kb",
        query_id: str | None = None,
        **more: Any,
    ) -> Decision:
        """Record a query whose documents all have one level; `at` counts seconds from START."""
        return self.record(
            user=user,
            query_id=query_id or f"query {next(_numbers)}",
            collection=collection,
            documents=[(one, level) for one in doc_ids],
            time=None if at is None else START + at,
            **more,
        )

    def run(self, call: Call) -> Any:
        return self.wait_for(self.monitor.store.run(call))

    def do(self, name: str, *args: Any, **options: Any) -> Any:
        """Call any other method of the monitor."""
        return self.wait_for(getattr(self.monitor, name)(*args, **options))

    def close(self) -> None:
        self.wait_for(self.monitor.close())
        if self._direct is not None:
            self._direct.close()
        if self._loop is not None:
            self._loop.run_until_complete(_finish_tasks())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()


async def _finish_tasks() -> None:
    """Wait for what is left on the loop: redis-py closes replaced nodes of a cluster in tasks of their own."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*left, return_exceptions=True)


def reading(decision: Decision, signal: Any) -> SignalReading:
    """Return the reading of one signal; the query must have been judged."""
    one = decision.signal(signal)
    assert one is not None, decision.problem
    return one
