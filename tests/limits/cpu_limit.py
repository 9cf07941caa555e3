"""A bound on work that must not grow with the square of its input."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

MOST_SECONDS = 60
"""Of CPU time: ten times and more what linear work takes for inputs of some hundred thousand characters, and a fraction
of what quadratic work does. It says nothing of speed; that is measured in `benchmarks/`."""


@contextmanager
def cpu_limit(seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Raise AssertionError in a block that is still at work after so much CPU time of this process."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {seconds:g} s of CPU time; does its work grow with the square?")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
