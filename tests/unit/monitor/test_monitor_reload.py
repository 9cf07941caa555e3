"""Settings change while the service runs: a good edit is taken over, a faulty one changes nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from mragaudit.errors import ConfigError
from mragaudit.monitor import ExfiltrationMonitor, MonitorSettings, SettingsFile

MESSAGE = "settings stay as they were"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Edited:
    """A settings file, a clock, and what the file says once the clock has moved on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = Clock()
        self.write("volume: {max_queries: 10}")
        self.file = SettingsFile(path, clock=self.clock)

    def write(self, text: str) -> None:
        """Replace the file, as an editor or a config map does."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(self.path)

    def later(self, seconds: float = 3.0) -> MonitorSettings | None:
        self.clock.now += seconds
        return self.file.changed()


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    return Edited(tmp_path / "monitor.yaml")


def test_a_good_edit_is_taken_over_once(edited: Edited) -> None:
    assert edited.later() is None
    edited.write("volume: {max_queries: 20}")
    changed = edited.later()
    assert changed is not None
    assert changed.volume.max_queries == 20
    assert edited.file.settings == changed
    assert edited.later() is None


def test_the_file_is_looked_at_every_two_seconds_at_most(edited: Edited) -> None:
    edited.write("volume: {max_queries: 20}")
    assert edited.later(1.9) is None
    assert edited.later(0.2) is not None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("volume: {max_queries: -1}", "it should be greater than or equal to 1"),
        ("volum: {}", 'did you mean "volume"?'),
        ("volume: [", "not readable as UTF-8 YAML"),
    ],
)
def test_a_faulty_edit_is_logged_and_changes_nothing(
    edited: Edited, caplog: pytest.LogCaptureFixture, text: str, fault: str
) -> None:
    edited.write(text)
    assert edited.later() is None
    assert edited.file.settings.volume.max_queries == 10
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert MESSAGE in record.getMessage()
    assert fault in record.getMessage()


def test_a_faulty_edit_is_logged_once_and_a_mended_one_taken_over(
    edited: Edited, caplog: pytest.LogCaptureFixture
) -> None:
    edited.write("volum: {}")
    edited.later()
    edited.later()
    assert caplog.text.count(MESSAGE) == 1
    edited.write("volume: {max_queries: 30}")
    changed = edited.later()
    assert changed is not None
    assert changed.volume.max_queries == 30


def test_a_file_that_is_gone_for_a_moment_changes_nothing(edited: Edited, caplog: pytest.LogCaptureFixture) -> None:
    edited.path.unlink()
    assert edited.later() is None
    assert "no such config file" in caplog.text
    edited.write("volume: {max_queries: 40}")
    changed = edited.later()
    assert changed is not None
    assert changed.volume.max_queries == 40


def test_a_change_of_the_store_waits_for_a_restart(edited: Edited, caplog: pytest.LogCaptureFixture) -> None:
    edited.write("store: {url: 'redis://elsewhere'}\nvolume: {max_queries: 20}")
    changed = edited.later()
    assert changed is not None
    assert (changed.store.url, changed.volume.max_queries) == ("memory://", 20)
    assert "a change below `store` needs a restart" in caplog.text


def test_a_change_of_the_sinks_is_said_to_wait_for_a_restart(edited: Edited, caplog: pytest.LogCaptureFixture) -> None:
    edited.write("alerts: {repeat_seconds: 60}")
    edited.later()
    assert "restart" not in caplog.text
    edited.write("alerts: {repeat_seconds: 60, plain_user_ids: true}")
    edited.later()
    assert "a change of the sinks below `alerts` needs a restart" in caplog.text


def test_a_faulty_file_at_the_start_is_refused(tmp_path: Path) -> None:
    (tmp_path / "monitor.yaml").write_text("volum: {}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r'monitor\.yaml: config key "volum" is unknown'):
        SettingsFile(tmp_path / "monitor.yaml")


def throttled(monitor: ExfiltrationMonitor, *query_ids: str) -> int:
    """Return how many of some queries at one moment are throttled."""
    decisions = [monitor.record(user="ann", query_id=one, collection="kb", documents=[], time=1e9) for one in query_ids]
    return sum(one.throttled for one in decisions)


@pytest.mark.monitor
def test_a_running_monitor_judges_by_the_edited_settings(edited: Edited) -> None:
    edited.write("store: {url: 'memory://reloaded'}\nvolume: {max_queries: 1000}")
    edited.file = SettingsFile(edited.path, clock=edited.clock)
    with ExfiltrationMonitor(edited.file, sinks=()) as monitor:
        assert throttled(monitor, *"abcdefghij") == 0
        edited.write("store: {url: 'memory://reloaded'}\nvolume: {max_queries: 5}")
        assert throttled(monitor, "k") == 0
        edited.clock.now += 3
        assert throttled(monitor, "l", "m") == 2
        assert monitor.settings.volume.max_queries == 5
