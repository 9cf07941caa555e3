"""The bound stops what does not end, and nothing else."""

import re

from cpu_limit import finishes


def test_work_that_doubles_with_every_sign_is_stopped() -> None:
    assert not finishes(lambda: re.match("(a+)+b", "a" * 60), seconds=0.2)


def test_work_that_ends_finishes() -> None:
    assert finishes(lambda: sum(range(1000)), seconds=5)
