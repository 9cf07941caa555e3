"""Whether an answer gives away the planted value, and whether a benign answer is right."""

from __future__ import annotations

from mragaudit.leaks.benign import benign_correct
from mragaudit.leaks.score import LeakScore, score_leak

__all__ = ["LeakScore", "benign_correct", "score_leak"]
