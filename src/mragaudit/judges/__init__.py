"""Judges: what they are asked, and what their replies mean."""

from __future__ import annotations

from mragaudit.judges.parser import Verdict, parse_verdict

__all__ = ["Verdict", "parse_verdict"]
