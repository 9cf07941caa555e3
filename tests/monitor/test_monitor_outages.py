"""The store killed, flushed, full, read-only, stalled or moved: no crash, no silent pass, nothing recorded lost."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from monitor_drivers import Driver, ids, made_settings, reading
from redis_servers import RedisServer, free_port, running

from mragaudit.monitor.keys import UserKeys, size_key

pytestmark = [pytest.mark.monitor, pytest.mark.redis]
CLIENTS = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "asyncio"])
Make = Callable[..., Driver]
BREAKER_SECONDS = 0.4
STORE = {"timeout_seconds": 0.25, "breaker_failures": 3, "breaker_seconds": BREAKER_SECONDS}


@pytest.fixture
def drivers() -> Iterator[Make]:
    """Return a maker of drivers on a given URL, with the default patience of a quarter of a second."""
    made: list[Driver] = []

    def make(url: str, *, asynchronous: bool, store: Any = None, **sections: Any) -> Driver:
        settings = made_settings(url, store=STORE | {"url": url} | (store or {}), **sections)
        made.append(Driver(settings, asynchronous=asynchronous))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    with running(RedisServer(tmp_path / "own")) as one:
        yield one


def recovered(one: Driver, **query: Any) -> Any:
    """Return the first judged decision; the breaker lets a query through within its pause."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        decision = one.ask(**query)
        if decision.problem is None:
            return decision
        time.sleep(0.05)
    raise AssertionError(decision.problem)


@CLIENTS
def test_a_server_killed_and_started_again_without_persistence_starts_from_nothing(
    own_server: RedisServer, drivers: Make, asynchronous: bool
) -> None:
    one = drivers(own_server.url, asynchronous=asynchronous)
    for _ in range(5):
        one.ask(ids(1, 3))
    own_server.kill()
    lost = [one.ask(ids(1, 3)) for _ in range(5)]
    assert [d.action for d in lost] == ["pass"] * 5
    assert all(d.problem and d.alert and d.alert.kind == "store" and d.missing for d in lost)
    assert one.monitor.counts.problems == {"store": 3, "breaker": 2}
    assert one.sink.kinds() == ["store", "store"]  # away, then left alone: each is said once a minute
    own_server.start()
    assert reading(recovered(one), "volume").count == 1
    assert one.monitor.counts.decisions["pass"] >= 11


@CLIENTS
def test_a_server_killed_in_mid_run_loses_nothing_that_its_append_only_file_holds(
    tmp_path: Path, drivers: Make, asynchronous: bool
) -> None:
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with running(RedisServer(tmp_path / "aof", *options)) as server:
        one = drivers(server.url, asynchronous=asynchronous, volume={"max_queries": 9_000})
        killed = threading.Event()

        def kill_and_start() -> None:
            time.sleep(0.15)
            server.kill()
            killed.set()
            time.sleep(0.1)  # long enough for queries to meet nobody
            server.start()

        trouble = threading.Thread(target=kill_and_start)
        trouble.start()
        decisions = []
        while not (killed.is_set() and decisions and decisions[-1].problem is None and not trouble.is_alive()):
            decisions.append(one.ask(ids(1, 3)))
            time.sleep(0.002)
            assert len(decisions) < 20_000
        trouble.join()
        judged = [d for d in decisions if d.problem is None]
        unjudged = len(decisions) - len(judged)
        stored = reading(judged[-1], "volume").count
        # A query whose answer was cut off may have been recorded; one that was answered certainly was.
        assert len(judged) <= stored <= len(judged) + unjudged
        assert unjudged > 0
        assert one.monitor.counts.problems.total() == unjudged


@CLIENTS
def test_scripts_that_the_server_forgot_are_sent_again(
    own_server: RedisServer, drivers: Make, asynchronous: bool
) -> None:
    one = drivers(own_server.url, asynchronous=asynchronous)
    counts = []
    for number in range(6):
        if number % 2:
            one.direct.script_flush()
        counts.append(reading(one.ask(ids(1, 3)), "volume").count)
    assert counts == [1, 2, 3, 4, 5, 6]
    assert one.monitor.counts.problems == {}


@CLIENTS
@pytest.mark.parametrize("on_failure", ["open", "closed"])
def test_a_full_memory_records_nothing_in_part_and_is_told_of(
    own_server: RedisServer, drivers: Make, asynchronous: bool, on_failure: str
) -> None:
    one = drivers(own_server.url, asynchronous=asynchronous, store={"on_failure": on_failure})
    one.ask(ids(1, 3), user="warm")
    one.ask(ids(1, 3))
    before = {key: one.direct.dump(key) for key in one.stored_keys()}
    one.direct.config_set("maxmemory", 1)
    one.direct.config_set("maxmemory-policy", "noeviction")
    decision = one.ask(ids(4, 6), level="restricted")
    assert decision.problem == (f"the store did not count this query (OutOfMemoryError); on_failure is {on_failure}")
    assert decision.throttled == (on_failure == "closed")
    assert one.sink.kinds() == ["store"]
    assert one.monitor.counts.problems == {"store": 1}
    assert {key: one.direct.dump(key) for key in one.stored_keys()} == before
    one.direct.config_set("maxmemory", 0)
    after = one.ask(ids(4, 6))
    assert (reading(after, "volume").count, reading(after, "coverage").count) == (2, 6)


@CLIENTS
def test_a_read_only_replica_counts_nothing_and_is_told_of(
    own_server: RedisServer, tmp_path: Path, drivers: Make, asynchronous: bool
) -> None:
    options = ("--replicaof", "127.0.0.1", str(own_server.port), "--repl-diskless-sync-delay", "0")
    with running(RedisServer(tmp_path / "replica", *options)) as replica:
        one = drivers(replica.url, asynchronous=asynchronous, store={"on_failure": "closed"})
        decision = one.ask(ids(1, 3))
        assert decision.throttled
        assert decision.delay_seconds == one.settings.throttle.delay_seconds
        assert decision.alert is not None
        assert "ReadOnlyError" in (decision.problem or "")
        assert one.sink.kinds() == ["store"]


@CLIENTS
def test_a_stall_of_two_seconds_costs_each_query_little_and_mixes_no_answers_up(
    own_server: RedisServer, drivers: Make, asynchronous: bool
) -> None:
    one = drivers(own_server.url, asynchronous=asynchronous)
    one.ask(user="ann")
    for _ in range(4):
        one.ask(user="bob")
    own_server.signal(signal.SIGSTOP)
    started, waits = time.monotonic(), []
    try:
        while time.monotonic() < started + 2:
            before = time.monotonic()
            decision = one.ask(user="ann", query_id=f"stalled {len(waits)}")
            waits.append(time.monotonic() - before)
            assert (decision.action, decision.throttled) == ("pass", False)
            assert decision.problem is not None
            time.sleep(0.02)
    finally:
        own_server.signal(signal.SIGCONT)
    assert max(waits) < 0.25 + 0.35
    assert sum(waits) / len(waits) < 0.1  # the breaker keeps most of them from waiting at all
    problems = one.monitor.counts.problems
    assert problems.total() == len(waits)
    assert problems["breaker"] > problems["store"] >= 3
    bob = recovered(one, user="bob")
    ann = recovered(one, user="ann")
    assert reading(bob, "volume").count == 5
    # What was sent into the stall may have been taken up after it, each query once.
    assert 2 <= reading(ann, "volume").count <= 2 + problems["store"]


@CLIENTS
def test_a_query_that_ran_into_a_stall_counts_once_when_it_is_tried_again(
    own_server: RedisServer, drivers: Make, asynchronous: bool
) -> None:
    one = drivers(own_server.url, asynchronous=asynchronous)
    one.ask(query_id="first")
    own_server.signal(signal.SIGSTOP)
    try:
        assert one.ask(query_id="stalled").problem is not None
    finally:
        own_server.signal(signal.SIGCONT)
    assert reading(recovered(one, query_id="stalled"), "volume").count == 2


@CLIENTS
@pytest.mark.parametrize("on_failure", ["open", "closed"])
def test_a_store_that_was_never_there_is_told_of_and_the_breaker_closes_once_it_is(
    tmp_path: Path, drivers: Make, asynchronous: bool, on_failure: str
) -> None:
    port = free_port()
    one = drivers(f"redis://127.0.0.1:{port}", asynchronous=asynchronous, store={"on_failure": on_failure})
    decisions = [one.ask(ids(1, 3)) for _ in range(6)]
    assert {d.action for d in decisions} == {"pass" if on_failure == "open" else "throttle"}
    assert one.monitor.counts.problems == {"store": 3, "breaker": 3}
    assert one.monitor.session.breakers.is_open
    with running(RedisServer(tmp_path / "late", port=port)):
        assert reading(recovered(one), "volume").count == 1
        assert not one.monitor.session.breakers.is_open
        assert reading(one.ask(), "volume").count == 2


@CLIENTS
def test_bad_input_is_refused_while_the_store_is_away_too(drivers: Make, asynchronous: bool) -> None:
    one = drivers(f"redis://127.0.0.1:{free_port()}", asynchronous=asynchronous)
    for _ in range(4):
        one.ask()
    assert one.ask(user="").throttled


@CLIENTS
def test_workers_keep_one_secret_although_the_server_lost_it(own_server: RedisServer, asynchronous: bool) -> None:
    """Otherwise the same user would be two, one for the workers of before and one for those of after."""
    settings = made_settings(own_server.url, store=STORE | {"url": own_server.url})
    old = [Driver(settings, asynchronous=asynchronous, secret=None) for _ in range(2)]
    for one in old:
        one.ask()
    own_server.kill()
    for one in old:
        one.ask()
    own_server.start()
    new = Driver(settings, asynchronous=asynchronous, secret=None)
    try:
        counts = [reading(recovered(one), "volume").count for one in (new, *old, new, *old)]
        assert counts == [1, 2, 3, 4, 5, 6]
    finally:
        for one in (new, *old):
            one.close()


def test_threads_that_come_and_go_leave_no_connections_behind(own_server: RedisServer, drivers: Make) -> None:
    one = drivers(own_server.url, asynchronous=False)
    for _ in range(30):
        worker = threading.Thread(target=one.ask)
        worker.start()
        worker.join()
    assert len(one.direct.client_list()) < 8


def test_a_closed_monitor_leaves_no_connection_behind(own_server: RedisServer) -> None:
    watch = own_server.client()
    for asynchronous in (False, True):
        one = Driver(made_settings(own_server.url), asynchronous=asynchronous)
        one.ask()
        one.close()
    with watch:
        assert len(watch.client_list()) == 1


# --- a cluster ---------------------------------------------------------------------------------------------------


def slot_of(key: str) -> int:
    from redis.crc import key_slot  # noqa: PLC0415

    return int(key_slot(key.encode()))


def node_of(cluster: Any, key: str) -> int:
    """Return the position of the node that holds a key's slot."""
    slot = slot_of(key)
    with cluster.nodes[0].client() as client:
        for first, last, (_, port, *_), *_ in client.execute_command("CLUSTER SLOTS"):
            if first <= slot <= last:
                return [node.port for node in cluster.nodes].index(port)
    raise AssertionError(f"nobody holds slot {slot}")


def user_on(one: Driver, cluster: Any, node: int) -> str:
    """Return a user whose keys lie on a node."""
    for number in range(200):
        user = f"user {number}"
        hashed = one.do("user_hash", user)
        if node_of(cluster, UserKeys(one.prefix, hashed).key("vol")) == node:
            return user
    raise AssertionError(f"no user on node {node}")


def collection_on(one: Driver, cluster: Any, node: int) -> str:
    """Return a collection whose size lies on a node."""
    names = (f"kb-{number}" for number in range(200))
    return next(name for name in names if node_of(cluster, size_key(one.prefix, f"n.{name}")) == node)


@contextlib.contextmanager
def stopped(node: RedisServer) -> Iterator[None]:
    """Stall a node, for less than after which the others declare it dead."""
    node.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.signal(signal.SIGCONT)


@CLIENTS
def test_a_node_that_stalls_takes_its_own_users_along_and_no_others(
    cluster: Any, drivers: Make, asynchronous: bool
) -> None:
    one = drivers(cluster.url, asynchronous=asynchronous)
    here, there = user_on(one, cluster, 0), user_on(one, cluster, 1)
    collection = collection_on(one, cluster, 1)
    one.do("set_size", collection, 100)
    one.ask(ids(1, 30), user=here, collection=collection)
    one.ask(ids(1, 30), user=there, collection=collection)
    with stopped(cluster.nodes[1]):
        started = time.monotonic()
        lost = one.ask(ids(1, 30), user=there, collection=collection)
        waited = time.monotonic() - started
        judged = one.ask(ids(1, 30), user=here, collection=collection)
    assert lost.problem is not None
    assert waited < 0.25 * 3 + 0.3
    assert judged.problem is None
    assert reading(judged, "volume").count == 2
    coverage = reading(judged, "coverage")
    assert (coverage.value, coverage.not_evaluated) == (None, "the size of the collection is unknown")
    assert one.monitor.counts.problems["part"] >= 1
    assert one.sink.kinds().count("store") == 2
    assert reading(recovered(one, user=there, collection=collection), "volume").count in {2, 3}


@CLIENTS
def test_the_users_of_other_nodes_do_not_wait_for_a_node_that_stalls(
    cluster: Any, drivers: Make, asynchronous: bool
) -> None:
    one = drivers(cluster.url, asynchronous=asynchronous, store={"breaker_failures": 1, "breaker_seconds": 30.0})
    here, there = user_on(one, cluster, 0), user_on(one, cluster, 1)
    collection = collection_on(one, cluster, 1)
    one.do("set_size", collection, 100)
    for user in (here, there):
        one.ask(ids(1, 30), user=user, collection=collection)
    with stopped(cluster.nodes[1]):
        one.ask(user=there, collection=collection)
        one.ask(user=here, collection=collection)
        started = time.monotonic()
        judged = [one.ask(user=here, collection=collection) for _ in range(10)]
        left_alone = [one.ask(user=there, collection=collection) for _ in range(10)]
        waited = time.monotonic() - started
    assert {d.problem for d in judged} == {None}
    assert all("left alone" in (d.problem or "") for d in left_alone)
    assert reading(judged[-1], "volume").count == 12
    assert waited < 0.25  # twenty queries for less than one waits for a stalled node


@CLIENTS
def test_a_slot_that_moves_under_load_loses_nothing(cluster: Any, drivers: Make, asynchronous: bool) -> None:
    one = drivers(cluster.url, asynchronous=asynchronous, volume={"max_queries": 9_000}, store={"timeout_seconds": 1.0})
    user = user_on(one, cluster, 0)
    key = UserKeys(one.prefix, one.do("user_hash", user)).key("vol")
    decisions = [one.ask(ids(1, 5), user=user) for _ in range(20)]
    source, target = cluster.nodes[0], cluster.nodes[2]
    with source.client() as giver, target.client() as taker:
        slot = slot_of(key)
        names = {node.port: node.client().execute_command("CLUSTER MYID").decode() for node in (source, target)}
        taker.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", names[source.port])
        giver.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", names[target.port])
        keys = giver.execute_command("CLUSTER GETKEYSINSLOT", slot, 1_000)
        decisions.append(one.ask(ids(1, 5), user=user))
        for moved in keys:  # one at a time: between them the user's keys lie on two nodes
            giver.execute_command("MIGRATE", "127.0.0.1", target.port, moved, 0, 1_000)
            decisions.append(one.ask(ids(1, 5), user=user))
        for node in cluster.nodes:
            with node.client() as client:
                client.execute_command("CLUSTER SETSLOT", slot, "NODE", names[target.port])
    decisions.append(recovered(one, user=user))
    decisions += [one.ask(ids(1, 5), user=user) for _ in range(5)]
    judged = [d for d in decisions if d.problem is None]
    # While a slot moves, a script with keys that do not exist yet is put off by both nodes.
    assert len(judged) >= 26
    assert reading(decisions[-1], "volume").count == len(judged)
    assert all(d.alert is not None for d in decisions if d.problem)
    assert node_of(cluster, key) == 2


@CLIENTS
def test_a_cluster_that_was_never_there_is_told_of(drivers: Make, asynchronous: bool) -> None:
    one = drivers(f"redis+cluster://127.0.0.1:{free_port()}", asynchronous=asynchronous)
    decisions = [one.ask() for _ in range(5)]
    assert [d.action for d in decisions] == ["pass"] * 5
    assert one.monitor.counts.problems == {"store": 3, "breaker": 2}
