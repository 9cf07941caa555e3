"""The probe: hooks are run in a sandbox on inputs that they ought to change."""

from __future__ import annotations
