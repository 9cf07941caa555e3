"""The monitor's default settings as YAML and their JSON schema, generated from `settings`."""

from __future__ import annotations

from pathlib import Path

from mragaudit.config.render import render_defaults, render_schema
from mragaudit.monitor.settings import MonitorSettings

SETTINGS_PATH = Path("resources/monitor/monitor.yaml")
SCHEMA_PATH = Path("resources/monitor/monitor.schema.json")

HEADER = """\
# yaml-language-server: $schema=monitor.schema.json
# Defaults of every key of the exfiltration monitor, generated from src/mragaudit/monitor/settings.py
# (`mragaudit config --write`). A file of your own needs only the keys that differ. Two keys are empty here:
#   roles:
#     support: {max_queries: 200, sensitivity_baseline: 0.6}
#   alerts:
#     webhook: {url: "https://alerts.example.org/mragaudit"}

"""


def render_monitor_settings() -> str:
    """Return the text of monitor.yaml: every key with its description and default."""
    return render_defaults(MonitorSettings, header=HEADER)


def render_monitor_schema() -> str:
    """Return the text of the JSON schema (draft 2020-12) of the monitor's settings."""
    return render_schema(MonitorSettings)
