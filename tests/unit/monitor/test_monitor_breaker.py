"""The circuit breaker: closed, open, half open."""

from __future__ import annotations

import threading

import pytest

from mragaudit.errors import StoreError
from mragaudit.monitor.breaker import Breakers, BusyError, CircuitBreaker, LeftAloneError, slot_of


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


def fail(breakers: Breakers, key: str, error: StoreError) -> None:
    with pytest.raises(type(error)), breakers.guarded(key):
        raise error


def test_on_a_cluster_one_part_is_left_alone_and_the_others_are_not() -> None:
    breakers = Breakers(failures=2, open_seconds=60.0, cluster=True)
    for _ in range(2):
        fail(breakers, "{a}:x", StoreError("away"))
    assert breakers.is_open
    with pytest.raises(LeftAloneError), breakers.guarded("{a}:y"):
        pytest.fail("the call was made")
    with breakers.guarded("{b}:x"):
        pass
    assert breakers.is_open


def test_on_one_server_all_keys_share_a_breaker() -> None:
    breakers = Breakers(failures=2, open_seconds=60.0, cluster=False)
    fail(breakers, "{a}:x", StoreError("away"))
    fail(breakers, "{b}:x", StoreError("away"))
    with pytest.raises(LeftAloneError), breakers.guarded("{c}:x"):
        pytest.fail("the call was made")


def test_too_many_calls_at_once_do_not_open_it() -> None:
    """Otherwise a flood would switch the monitor off."""
    breakers = Breakers(failures=2, open_seconds=60.0, cluster=False)
    for _ in range(10):
        fail(breakers, "k", BusyError("busy"))
    assert not breakers.is_open


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        ("123456789", 0x31C3),  # the check value of CRC16/XMODEM
        ("{123456789}:a", 0x31C3),
        ("a{123456789}b{c}", 0x31C3),
        ("", 0),
    ],
)
def test_a_slot_is_that_of_the_hash_tag(key: str, slot: int) -> None:
    assert slot_of(key) == slot


@pytest.mark.parametrize("key", ["a", "{}a", "a{b", "a}b", "{u.HASH}:vol", "a{}{b}", "é{ü}"])
@pytest.mark.monitor
def test_a_slot_is_the_one_that_the_client_computes(key: str) -> None:
    from redis.crc import key_slot  # noqa: PLC0415 - needs the extra `monitor`

    assert slot_of(key) == key_slot(key.encode())
