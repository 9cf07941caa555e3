"""Stores for the monitor's tests: fakeredis, one real server, one three-node cluster, each started once a session."""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]

settings.register_profile(
    "monitor",
    deadline=None,  # the machine may be busy
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
_names = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from redis_servers import RedisServer, running  # noqa: PLC0415 - needs the extra `monitor`

    with running(RedisServer(tmp_path_factory.mktemp("redis"))) as one:
        yield one


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from redis_servers import RedisCluster, running  # noqa: PLC0415

    with running(RedisCluster(tmp_path_factory.mktemp("cluster"))) as one:
        yield one


@pytest.fixture
def url_of(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Return the URL of a store by its kind; every memory store is a new one."""

    def url(kind: str) -> str:
        if kind == "memory":
            return f"memory://test-{next(_names)}"
        return str(request.getfixturevalue(kind).url)

    return url


@pytest.fixture
def make_driver(url_of: Callable[[str], str]) -> Iterator[Callable[..., Any]]:
    """Return a maker of drivers on a store of the given kind, all closed after the test."""
    from monitor_drivers import Driver, made_settings  # noqa: PLC0415

    made: list[Any] = []

    def make(kind: str = "memory", *, asynchronous: bool = False, options: Any = None, **sections: Any) -> Any:
        one = Driver(made_settings(url_of(kind), **sections), asynchronous=asynchronous, **(options or {}))
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


@pytest.fixture(
    params=[
        pytest.param((kind, asynchronous), id=f"{kind}-{client}", marks=marks)
        for kind, marks in (("memory", ()), ("server", pytest.mark.redis), ("cluster", pytest.mark.redis))
        for asynchronous, client in ((False, "sync"), (True, "asyncio"))
    ]
)
def drive(request: pytest.FixtureRequest, make_driver: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of drivers, once for every store and client: a test that takes it runs on all of them."""
    kind, asynchronous = request.param
    return lambda **sections: make_driver(kind, asynchronous=asynchronous, **sections)


@pytest.fixture(autouse=True)
def _quiet_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="redis")
