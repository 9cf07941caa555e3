"""The files beside the config that decide about the monitor's replay."""

from __future__ import annotations

from pathlib import Path

from mragaudit.config import Settings
from mragaudit.errors import ConfigError
from mragaudit.monitor.reload import read_monitor_settings
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.traffic.profiles import Profiles, read_profiles
from mragaudit.resources import resource_folder


def monitor_files(settings: Settings) -> list[str]:
    """Return the files whose content decides: profiles, and the monitor's settings where the config names some."""
    given = settings.monitor.settings
    return [str(profiles_path(settings)), *([given] if given is not None else [])]


def profiles_of(settings: Settings) -> Profiles:
    """Return the profiles that the config names: a path, or a file below `resources`."""
    return read_profiles(profiles_path(settings))


def profiles_path(settings: Settings) -> Path:
    """Return the file of profiles; raises ConfigError where there is none."""
    given = settings.monitor.traffic
    for path in (Path(given), resource_folder(settings.resources) / given):
        if path.is_file():
            return path
    raise ConfigError(f'config key "monitor.traffic" is "{given}": no such file, here or below `resources`')


def monitor_settings(settings: Settings) -> MonitorSettings:
    """Return the monitor's settings: of the file that the config names, or its defaults."""
    path = settings.monitor.settings
    return MonitorSettings() if path is None else read_monitor_settings(Path(path))
