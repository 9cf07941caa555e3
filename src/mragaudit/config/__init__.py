"""Typed configuration: one source for defaults, comments, schema and checks."""

from mragaudit.config.load import load_settings, read_settings
from mragaudit.config.needs import Needs, stage_needs
from mragaudit.config.settings import Role, Settings
from mragaudit.config.slices import settings_from_slice, settings_slice

__all__ = [
    "Needs",
    "Role",
    "Settings",
    "load_settings",
    "read_settings",
    "settings_from_slice",
    "settings_slice",
    "stage_needs",
]
