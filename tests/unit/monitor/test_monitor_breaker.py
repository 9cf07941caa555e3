"""The circuit breaker: closed, open, half open."""

from __future__ import annotations

import threading

from mragaudit.monitor.breaker import CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[CircuitBreaker, Clock]:
    clock = Clock()
    return CircuitBreaker(failures=3, open_seconds=5.0, clock=clock), clock


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    breaker, _ = made()
    seen = []
    for _ in range(3):
        seen.append(breaker.allows())
        breaker.failed()
    assert seen == [True, True, True]
    assert breaker.is_open
    assert not breaker.allows()


def test_a_success_in_between_starts_the_count_anew() -> None:
    breaker, _ = made()
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert not breaker.is_open


def test_after_the_pause_one_call_may_try_and_the_others_wait() -> None:
    breaker, clock = made()
    for _ in range(3):
        breaker.failed()
    clock.now = 4.999
    assert not breaker.allows()
    clock.now = 5.0
    assert [breaker.allows() for _ in range(4)] == [True, False, False, False]


def test_a_failed_try_opens_it_for_another_pause() -> None:
    breaker, clock = made()
    for _ in range(3):
        breaker.failed()
    clock.now = 5.0
    assert breaker.allows()
    clock.now = 5.25
    breaker.failed()
    clock.now = 10.125
    assert not breaker.allows()
    clock.now = 10.25
    assert breaker.allows()


def test_a_try_that_never_ends_does_not_keep_it_open_for_ever() -> None:
    breaker, clock = made()
    for _ in range(3):
        breaker.failed()
    clock.now = 5.0
    assert breaker.allows()
    clock.now = 10.0
    assert breaker.allows()


def test_a_successful_try_closes_it_and_the_count_starts_anew() -> None:
    breaker, clock = made()
    for _ in range(3):
        breaker.failed()
    clock.now = 5.0
    assert breaker.allows()
    breaker.succeeded()
    assert not breaker.is_open
    breaker.failed()
    breaker.failed()
    assert breaker.allows()


def test_of_many_threads_one_alone_tries() -> None:
    breaker, clock = made()
    for _ in range(3):
        breaker.failed()
    clock.now = 6.0
    barrier, allowed = threading.Barrier(16), []

    def work() -> None:
        barrier.wait()
        allowed.append(breaker.allows())

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(allowed) == 1
