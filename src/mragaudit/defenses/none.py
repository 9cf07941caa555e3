"""No defense: the baseline of every comparison."""

from __future__ import annotations

from mragaudit.defenses.base import BaseDefense


class NoDefense(BaseDefense):
    """All hooks hand on what they got."""

    name = "none"
    title = "no defense"
