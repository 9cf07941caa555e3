"""Lets the end-to-end tests import their runner and the browser of the report tests."""

from __future__ import annotations

import sys
from pathlib import Path

from chrome import browser, requests_of

__all__ = ["browser", "requests_of"]

HERE = Path(__file__).parent

sys.path[:0] = [str(HERE), str(HERE.parent / "report")]
