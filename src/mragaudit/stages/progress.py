"""Progress of loops that are no model calls, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
INTERVAL_SECONDS = 5.0


def counted(rows: Iterable[T], *, total: int, label: str) -> Iterator[T]:
    """Yield the rows, with a line on stderr every few seconds: how many of how many, and how long it will take."""
    yield from tqdm(rows, total=total, desc=label, mininterval=INTERVAL_SECONDS, file=sys.stderr)
