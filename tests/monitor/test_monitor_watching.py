"""The commands that go on until a person ends them, on a real server."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from monitor_drivers import SECRET, made_settings
from redis_servers import RedisServer, running
from typer.testing import CliRunner

from mragaudit import cli
from mragaudit.monitor import ExfiltrationMonitor
from mragaudit.monitor import cli as monitor_cli
from mragaudit.monitor.alerts import sinks_from
from mragaudit.monitor.base import SECRET_ENV
from mragaudit.records.monitoring import Alert

pytestmark = [pytest.mark.monitor, pytest.mark.redis]


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Any]:
    with running(RedisServer(tmp_path)) as one:
        yield one


def hammer(url: str) -> None:
    """Alert twice, by the composite and by the volume, in the log and in the stream."""
    settings = made_settings(url, prefix="mragaudit", volume={"max_queries": 1})
    with ExfiltrationMonitor(settings, sinks=sinks_from(settings), secret=SECRET) as monitor:
        for number in range(2):
            monitor.record(user="ann", query_id=f"q{number}", collection="kb", documents=[])


def test_alerts_follows_the_stream_until_it_is_interrupted(own_server: Any) -> None:
    command = [sys.executable, "-c", "from mragaudit.cli import main; main()", "monitor", "alerts", "--json"]
    process = subprocess.Popen(
        [*command, "--url", own_server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        hammer(own_server.url)
        assert process.stdout is not None
        found = [msgspec.json.decode(process.stdout.readline(), type=Alert) for _ in range(2)]
        assert [one.query_id for one in found] == ["q0", "q1"]
        assert found[0].user == found[0].user_hash != "ann"
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def test_top_keeps_its_last_table_while_the_store_is_away(own_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hammer(own_server.url)
    turns = iter([own_server.kill])

    def sleep(_: float) -> None:
        turn = next(turns, None)
        if turn is None:
            raise KeyboardInterrupt
        turn()

    monkeypatch.setenv(SECRET_ENV, SECRET.decode())
    monkeypatch.setattr(monitor_cli, "time", type("Time", (), {"sleep": staticmethod(sleep), "time": time.time}))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as rich is concerned
    result = CliRunner().invoke(cli.app, ["monitor", "top", "--url", own_server.url])
    assert result.exit_code == 0, result.exception
    assert "the store is away (ConnectionError" in result.stdout
    assert "throttled for" in result.stdout
