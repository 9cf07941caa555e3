"""What the tests of the fronts share: a guard on a store of its own, small limits, short delays."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

NEEDED = ("fakeredis", "lupa", "fastapi", "httpx", "langchain_core", "llama_index", "prometheus_client", "uvicorn")
if os.environ.get("CI") != "true" and any(importlib.util.find_spec(name) is None for name in NEEDED):
    collect_ignore_glob = ["test_*.py"]

_names = itertools.count()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def make_settings() -> Callable[..., Any]:
    """Return a maker of settings: of ten queries an hour the seventh (0.7) is throttled, on a new memory store."""
    from mragaudit.monitor.settings import MonitorSettings  # noqa: PLC0415 - needs the extra `monitor`

    def make(**sections: Any) -> MonitorSettings:
        given = {
            "store": {"url": f"memory://front-{next(_names)}", "timeout_seconds": 2.0},
            "volume": {"max_queries": 10},
            "throttle": {"delay_seconds": 0.15, "max_delayed": 2, "retry_after_seconds": 33},
            "alerts": {"log": False},
        }
        merged = {name: {**given.get(name, {}), **sections.get(name, {})} for name in {*given, *sections}}
        return MonitorSettings.model_validate(merged)

    return make


@pytest.fixture
async def make_guard(make_settings: Callable[..., Any]) -> AsyncIterator[Callable[..., Any]]:
    """Return a maker of guards over asyncio monitors, all closed after the test."""
    from mragaudit.monitor import AsyncExfiltrationMonitor  # noqa: PLC0415
    from mragaudit.monitor.front.guard import Guard  # noqa: PLC0415

    monitors = []

    def make(**sections: Any) -> Guard:
        monitors.append(AsyncExfiltrationMonitor(make_settings(**sections), secret=b"test"))
        return Guard(monitors[-1])

    yield make
    for one in monitors:
        await one.close()


@pytest.fixture
def make_blocking_guard(make_settings: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Return a maker of guards over synchronous monitors, all closed after the test."""
    from mragaudit.monitor import ExfiltrationMonitor  # noqa: PLC0415
    from mragaudit.monitor.front.guard import Guard  # noqa: PLC0415

    monitors = []

    def make(**sections: Any) -> Guard:
        monitors.append(ExfiltrationMonitor(make_settings(**sections), secret=b"test"))
        return Guard(monitors[-1])

    yield make
    for one in monitors:
        one.close()
