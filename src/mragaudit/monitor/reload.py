"""Settings from a YAML file: checked, and taken over while the service runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from mragaudit.config.load import read_yaml, validated
from mragaudit.errors import ConfigError
from mragaudit.monitor.settings import Alerts, MonitorSettings

logger = logging.getLogger(__name__)
CHECK_SECONDS = 2.0


def read_monitor_settings(path: Path) -> MonitorSettings:
    """Return the settings of a file; raises ConfigError, one line a fault, when it is missing or wrong."""
    values = read_yaml(path)
    try:
        return validated(MonitorSettings, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


class SettingsFile:
    """A settings file that is looked at every two seconds at most; a faulty edit is logged and changes nothing."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._stamp = self._state()
        self._next = clock() + CHECK_SECONDS
        self.settings = read_monitor_settings(path)

    def changed(self) -> MonitorSettings | None:
        """Return new settings once after each good edit, else None."""
        if self._clock() < self._next:
            return None
        self._next = self._clock() + CHECK_SECONDS
        stamp = self._state()
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        try:
            settings = read_monitor_settings(self._path)
        except ConfigError as error:
            logger.error("settings stay as they were: %s", error)
            return None
        return self._taken_over(settings)

    def _taken_over(self, settings: MonitorSettings) -> MonitorSettings:
        if settings.store != self.settings.store:
            logger.warning("%s: a change below `store` needs a restart; the rest is taken over", self._path)
            settings = settings.model_copy(update={"store": self.settings.store})
        if _sinks(settings) != _sinks(self.settings):
            logger.warning(
                "%s: a change of the sinks below `alerts` needs a restart; the rest is taken over", self._path
            )
        self.settings = settings
        logger.info("%s: settings taken over", self._path)
        return settings

    def _state(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _sinks(settings: MonitorSettings) -> Alerts:
    """Return what the sinks were made from: all of `alerts` but the key that is read at every query."""
    return settings.alerts.model_copy(update={"repeat_seconds": 1.0})
