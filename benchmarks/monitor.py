"""What the monitor costs a query, against a naive implementation and against redis-benchmark, in one run.

    python benchmarks/monitor.py [--queries 20000] [--memory-users 2000]

Starts a Redis of its own on loopback. Every figure is a ratio of two timings of the same run, except latency and
memory. Rounds alternate and the best of each side counts, since other work on the machine only ever slows one down.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from socket import socket
from typing import Any, cast

import redis

from mragaudit.monitor import AsyncExfiltrationMonitor, ExfiltrationMonitor, MonitorSettings
from mragaudit.monitor.calls import RecordCalls
from mragaudit.monitor.keys import encode_query
from mragaudit.monitor.queries import checked_query
from mragaudit.monitor.settings import Store, Volume

DOCUMENTS = [
    ("doc-17", "public"),
    ("doc-4", "internal"),
    ("doc-256", "public"),
    ("doc-8", "confidential"),
    ("5", "public"),
]
USER, COLLECTION = "user@example.org", "handbook"
ROUNDS = 5
TARGET_NAIVE, TARGET_SYNC, TARGET_ASYNC, TARGET_P99_MS = 5.0, 0.60, 0.35, 2.0
MILLION = 1_000_000


@contextmanager
def server() -> Iterator[int]:
    """A Redis without persistence on a free port."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, "--loglevel", "warning"]
        process = subprocess.Popen([program("redis-server"), *options], stdout=subprocess.DEVNULL)  # noqa: S603
        try:
            wait_for(port)
            yield port
        finally:
            process.terminate()
            process.wait()


def program(name: str) -> str:
    """Return the path of a program; stops with the package that has it where it is missing."""
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is missing; install it with: apt-get install redis-server redis-tools")
    return found


def wait_for(port: int) -> None:
    """Return once the server answers."""
    client = redis.Redis(port=port)
    for _ in range(100):
        try:
            client.ping()
        except redis.ConnectionError:
            time.sleep(0.05)
        else:
            client.close()
            return
    raise SystemExit("redis-server did not start")


def settings(port: int) -> MonitorSettings:
    """Defaults, with limits that neither this traffic nor a busy machine reaches: no query is slowed."""
    return MonitorSettings(
        volume=Volume(max_queries=MILLION, tracked_queries=2 * MILLION),
        store=Store(url=f"redis://127.0.0.1:{port}/0", timeout_seconds=10.0),
    )


class Naive:
    """The textbook's way: one command a round trip, no script, the client's clock, windows that never roll."""

    def __init__(self, port: int) -> None:
        self._redis: Any = redis.Redis(port=port)

    def record(self, query_id: str) -> float:
        """Record one query and return the weighted mean of the three signals."""
        now, client = time.time(), self._redis
        volume, coverage, levels = f"query_volume:{USER}", f"coverage:{USER}:{COLLECTION}", f"sensitivity:{USER}"
        client.zadd(volume, {query_id: now})
        client.zremrangebyscore(volume, 0, now - 3600)
        client.expire(volume, 3700)
        queries = client.zcard(volume)
        client.sadd(coverage, *(doc_id for doc_id, _ in DOCUMENTS))
        client.expire(coverage, 604_800)
        seen = client.scard(coverage)
        size = int(client.get(f"size:{COLLECTION}") or 1)
        for _, level in DOCUMENTS:
            client.hincrby(levels, level, 1)
        client.expire(levels, 86_400)
        totals = {name.decode(): int(value) for name, value in client.hgetall(levels).items()}
        sensitive = totals.get("confidential", 0) + totals.get("restricted", 0)
        scores = min(1, queries / 50), min(1, seen / size / 0.8), min(1, sensitive / sum(totals.values()) / 0.3)
        return 0.4 * float(scores[0]) + 0.35 * float(scores[1]) + 0.25 * float(scores[2])


def rate(work: Callable[[], object], n: int) -> float:
    """Return how often a second `work` ran."""
    start = time.perf_counter()
    for _ in range(n):
        work()
    return n / (time.perf_counter() - start)


def alternating(first: Callable[[], float], second: Callable[[], float]) -> tuple[float, float]:
    """Return the best rates of two measurements taken in turns: other work on the machine only ever slows one down."""
    pairs = [(first(), second()) for _ in range(ROUNDS)]
    return max(a for a, _ in pairs), max(b for _, b in pairs)


def redis_benchmark(port: int, *, connections: int, n: int) -> float:
    """Return redis-benchmark's rate for the monitor's own script and arguments, without pipelining."""
    chosen = settings(port)
    query = checked_query(
        user=USER, query_id="placeholder", collection=COLLECTION, documents=DOCUMENTS, settings=chosen
    )
    call = RecordCalls(chosen, cluster=False).calls(query, "benchmark-user")[0]
    sha = redis.Redis(port=port).script_load(call.script.text)
    arguments = [str(part) for part in call.arguments]
    arguments[arguments.index(encode_query("placeholder"))] = "__rand_int__"
    command = [program("redis-benchmark"), "-p", str(port), "-c", str(connections), "-n", str(n), "-P", "1", "--csv"]
    command += ["-r", "1000000000", "EVALSHA", sha, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return float(done.stdout.splitlines()[-1].split('","')[1])


def against_naive(port: int, n: int) -> None:
    """One script call against one command a round trip, both synchronous on one connection."""
    naive, numbers = Naive(port), count()
    redis.Redis(port=port).set(f"size:{COLLECTION}", 1000)
    with ExfiltrationMonitor(settings(port), sinks=()) as monitor:
        monitor.set_size(COLLECTION, 1000)
        ours, theirs = alternating(
            lambda: rate(lambda: record(monitor, next(numbers)), n),
            lambda: rate(lambda: naive.record(f"n{next(numbers)}"), n // 5),
        )
    show("one script call / textbook version, 15 commands", ours, theirs, TARGET_NAIVE)


def commands_of_script(port: int, monitor: ExfiltrationMonitor) -> list[list[str]]:
    """Return the commands that the script runs for one query, as the server saw them."""
    client: Any = redis.Redis(port=port)
    with client.monitor() as watched:
        record(monitor, -1)
        client.echo("end")
        seen = []
        for line in watched.listen():
            if line["client_type"] == "lua":
                seen.append(shlex.split(line["command"]))
            elif line["command"].startswith("ECHO"):
                return seen
    return seen


def against_own_commands(port: int, n: int) -> None:
    """One script call against the very commands of the script, one a round trip."""
    numbers, client = count(10**8), cast("Any", redis.Redis(port=port))
    with ExfiltrationMonitor(settings(port), sinks=()) as monitor:
        record(monitor, next(numbers))
        commands = commands_of_script(port, monitor)
        ours, theirs = alternating(
            lambda: rate(lambda: record(monitor, next(numbers)), n),
            lambda: rate(lambda: [client.execute_command(*command) for command in commands], n // 10),
        )
    show(f"one script call / its own {len(commands)} commands one by one", ours, theirs, TARGET_NAIVE)


def record(monitor: ExfiltrationMonitor, number: int) -> object:
    """Record one query."""
    return monitor.record(user=USER, query_id=f"q{number}", collection=COLLECTION, documents=DOCUMENTS)


def against_benchmark(port: int, n: int) -> None:
    """The synchronous client on one connection against redis-benchmark on one."""
    numbers = count(10**9)
    with ExfiltrationMonitor(settings(port), sinks=()) as monitor:
        ours, theirs = alternating(
            lambda: rate(lambda: record(monitor, next(numbers)), n),
            lambda: redis_benchmark(port, connections=1, n=n),
        )
    show("synchronous client / redis-benchmark -c 1", ours, theirs, TARGET_SYNC)


def against_benchmark_async(port: int, n: int) -> None:
    """The asyncio client with 50 queries under way against redis-benchmark with 50 connections."""
    numbers = count(2 * 10**9)
    ours, theirs = alternating(
        lambda: asyncio.run(asyncio_rate(port, numbers, n)),
        lambda: redis_benchmark(port, connections=50, n=n),
    )
    show("asyncio client, 50 under way / redis-benchmark -c 50", ours, theirs, TARGET_ASYNC)


async def asyncio_rate(port: int, numbers: Iterator[int], n: int, *, workers: int = 50) -> float:
    """Return the rate of `workers` tasks that record one query after the other."""
    async with AsyncExfiltrationMonitor(settings(port), sinks=()) as monitor:

        async def work(calls: int) -> None:
            for _ in range(calls):
                await monitor.record(
                    user=USER, query_id=f"q{next(numbers)}", collection=COLLECTION, documents=DOCUMENTS
                )

        await asyncio.gather(*(work(2) for _ in range(workers)))
        start = time.perf_counter()
        await asyncio.gather(*(work(n // workers) for _ in range(workers)))
        return n / (time.perf_counter() - start)


async def latency(port: int, *, per_second: float, seconds: float) -> list[float]:
    """Return how long each query waited for its decision, in milliseconds, at a steady rate of arrivals."""
    waits: list[float] = []
    async with AsyncExfiltrationMonitor(settings(port), sinks=()) as monitor:

        async def one(number: int) -> None:
            begun = time.perf_counter()
            await monitor.record(user=USER, query_id=f"l{number}", collection=COLLECTION, documents=DOCUMENTS)
            waits.append((time.perf_counter() - begun) * 1000)

        start, tasks = time.perf_counter(), []
        for number in range(int(per_second * seconds)):
            await asyncio.sleep(max(0.0, start + number / per_second - time.perf_counter()))
            tasks.append(asyncio.create_task(one(number)))
        await asyncio.gather(*tasks)
    return sorted(waits[len(waits) // 10 :])


def added_latency(port: int, n: int) -> None:
    """p50 and p99 of the time that the monitor adds to a query, at half the highest rate."""
    highest = asyncio.run(asyncio_rate(port, count(3 * 10**9), n))
    rounds = [asyncio.run(latency(port, per_second=highest / 2, seconds=5.0)) for _ in range(ROUNDS)]
    p99 = min(one[int(len(one) * 0.99)] for one in rounds)
    p50 = min(one[len(one) // 2] for one in rounds)
    verdict = "met" if p99 <= TARGET_P99_MS else "MISSED"
    print(
        f"added latency at {highest / 2:,.0f} queries/s (half load): p50 {p50:.2f} ms, p99 {p99:.2f} ms "
        f"(at most {TARGET_P99_MS:g} ms: {verdict})"
    )


def memory(port: int, users: int, *, documents: int = 200) -> None:
    """Memory of users who each retrieved 200 documents in 40 queries, and what a million would take."""
    client: Any = redis.Redis(port=port)
    client.flushall()
    with ExfiltrationMonitor(settings(port), sinks=()) as monitor:
        monitor.set_size(COLLECTION, 100_000)
        before = client.info("memory")["used_memory"]
        for user in range(users):
            for query in range(documents // 5):
                found = [(f"doc-{(user * 37 + query * 5 + rank) % 100_000}", "public") for rank in range(5)]
                monitor.record(user=f"u{user}", query_id=f"{user}-{query}", collection=COLLECTION, documents=found)
        used = client.info("memory")["used_memory"] - before
    each = used / users
    print(
        f"memory: {each:,.0f} bytes a user with {documents} documents in {documents // 5} queries "
        f"({users:,} users measured); 1,000,000 users: {each * MILLION / 2**30:.1f} GiB"
    )


def show(label: str, ours: float, theirs: float, target: float) -> None:
    """Print one ratio beside its target."""
    ratio = ours / theirs
    verdict = "met" if ratio >= target else "MISSED"
    print(f"{label}: {ours:,.0f} / {theirs:,.0f} a second = {ratio:.2f} (at least {target:g}: {verdict})", flush=True)


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000, help="queries a round")
    parser.add_argument("--memory-users", type=int, default=1_000, help="users of the memory measurement")
    given = parser.parse_args()
    print(Path(__file__).name, redis.__version__, "rounds:", ROUNDS)
    with server() as port:
        against_naive(port, given.queries // 2)
        against_own_commands(port, given.queries // 2)
        against_benchmark(port, given.queries)
        against_benchmark_async(port, given.queries)
        added_latency(port, given.queries)
        memory(port, given.memory_users)


if __name__ == "__main__":
    main()
