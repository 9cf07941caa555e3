"""A bound on work that must not grow with the square of its input."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

MOST_SECONDS = 60.0
"""Of CPU time: ten times and more what linear work takes for inputs of some hundred thousand characters, and a fraction
of what quadratic work does. It says nothing of speed; that is measured in `benchmarks/`."""


class _OverLimitError(BaseException):
    """No work under test may catch it."""


def finishes(work: Callable[[], object], *, seconds: float = MOST_SECONDS) -> bool:
    """Return whether the work ends before this process has spent so much CPU time; it is stopped where it does not."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _OverLimitError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        work()
    except _OverLimitError:
        return False
    else:
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
