"""The exfiltration monitor: it finds who is emptying the index, one legitimate query at a time."""

from mragaudit.monitor.aio import AsyncExfiltrationMonitor
from mragaudit.monitor.client import ExfiltrationMonitor
from mragaudit.monitor.queries import RetrievedDocument
from mragaudit.monitor.reload import SettingsFile, read_monitor_settings
from mragaudit.monitor.risk import CompositeRisk, ThrottlePolicy
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.signals import CoverageMonitor, QueryVolumeTracker, SensitivityMonitor
from mragaudit.monitor.sinks import AlertSink, LogSink

__all__ = [
    "AlertSink",
    "AsyncExfiltrationMonitor",
    "CompositeRisk",
    "CoverageMonitor",
    "ExfiltrationMonitor",
    "LogSink",
    "MonitorSettings",
    "QueryVolumeTracker",
    "RetrievedDocument",
    "SensitivityMonitor",
    "SettingsFile",
    "ThrottlePolicy",
    "read_monitor_settings",
]
