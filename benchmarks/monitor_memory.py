"""What one user of the monitor costs in Redis, key by key, as MEMORY USAGE says.

    python benchmarks/monitor_memory.py redis://127.0.0.1:6379

Takes a server that may be written to (keys with a prefix of their own, deleted at the end); needs a real one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mragaudit.monitor import ExfiltrationMonitor, MonitorSettings, admin

START = 1_700_000_000.0
USER = "user@example.org"
MOST_QUERIES = 10_000


@contextmanager
def monitor_on(url: str, **sections: Any) -> Iterator[ExfiltrationMonitor]:
    """Yield a monitor whose keys are deleted at the end."""
    sections["store"] = {"url": url, "prefix": "memory-benchmark", "timeout_seconds": 10.0}
    sections["collective"] = {"enabled": False}
    with ExfiltrationMonitor(MonitorSettings.model_validate(sections), sinks=()) as monitor:
        yield monitor
        for key in monitor.store.client.scan_iter(match="memory-benchmark:*", count=1_000):
            monitor.store.client.delete(key)


def ask(monitor: ExfiltrationMonitor, query: int, doc_ids: Sequence[str], *, level: str = "public", at: float) -> None:
    """Record one query; raises where the monitor could not."""
    documents = [(one, level) for one in doc_ids]
    decision = monitor.record(
        user=USER, query_id=f"query {query}", collection="handbook", documents=documents, time=START + at
    )
    if decision.problem is not None:
        raise SystemExit(decision.problem)


def sizes(monitor: ExfiltrationMonitor) -> dict[str, int]:
    """Return bytes by structure of the one user."""
    client = monitor.store.client
    found = {}
    for key in client.scan_iter(match="memory-benchmark:{u.*", count=1_000):
        found[key.decode().partition("}:")[2]] = client.memory_usage(key, samples=0)
    return found


def per_query(url: str) -> None:
    """Print bytes a query, at several numbers of queries without documents of their own."""
    print("queries, 5 documents each, always the same: bytes a query inside the window")
    with monitor_on(url) as monitor:
        for number in range(1, MOST_QUERIES + 1):
            ask(monitor, number, [f"doc-{position}" for position in range(5)], at=number / 10)
            if number in (50, 100, 200, 1_000, MOST_QUERIES):
                found = sizes(monitor)
                parts = {name: found[name] / number for name in ("vol", "ret", "lev")}
                shown = ", ".join(f"{name} {each:.0f}" for name, each in parts.items())
                print(f"  {number:>6}: {sum(parts.values()):6.0f}  ({shown})")


def per_document(url: str, *, id_bytes: int, level: str) -> None:
    """Print bytes a distinct document."""
    print(f"documents with ids of {id_bytes} bytes, level {level}: bytes a distinct document")
    with monitor_on(url) as monitor:
        held = 0
        for query in range(1_000):
            ids = [f"{number:0{id_bytes}d}" for number in range(held, held + 100)]
            ask(monitor, query, ids, level=level, at=query)
            held += 100
            if held in (100, 1_000, 10_000, 100_000):
                found = sizes(monitor)
                sensitive = f", sens {found['sens'] / held:.0f}" if "sens" in found else ""
                print(f"  {held:>6}: cov {found['cov:n.handbook'] / held:.0f}{sensitive}")


def sketches(url: str) -> None:
    """Print bytes of a user's sketches."""
    print("hyperloglog: bytes of one sketch by distinct documents of its sub-window")
    with monitor_on(url, coverage={"mode": "hyperloglog"}) as monitor:
        held = 0
        for query in range(500):
            ask(monitor, query, [f"doc-{number}" for number in range(held, held + 40)], at=query)
            held += 40
            if held in (40, 200, 1_000, 2_000, 5_000, 20_000):
                found = sizes(monitor)
                slot = next(size for name, size in found.items() if name.startswith("hll:n.handbook:"))
                print(f"  {held:>6}: {slot}")
        for day in range(1, 8):
            ask(monitor, 500 + day, [f"day {day}-{number}" for number in range(40)], at=day * 86_400)
        ring = sum(size for name, size in sizes(monitor).items() if name.startswith("hll:"))
        print(f"  eight days, one of 20,000 and seven of 40 documents, with what says which is which: {ring}")


def fixed(url: str) -> None:
    """Print bytes of what does not grow: baseline after five weeks, throttling, allow-list, collections."""
    print("bytes of the rest")
    with monitor_on(url, volume={"max_queries": 1}) as monitor:
        for day in range(35):
            ask(monitor, day, [f"doc-{number}" for number in range(5)], level="restricted", at=day * 86_400)
        ask(monitor, 35, [], at=34 * 86_400 + 1)
        admin.allow(monitor, USER, seconds=600, reason="a reason of about forty characters long")
        ask(monitor, 36, [], at=35 * 86_400)
        monitor.user_added(USER, "handbook", doc_ids=[f"{number:036d}" for number in range(1_000)])
        found = sizes(monitor)
        for name in ("base", "state", "allow", "colls"):
            print(f"  {name}: {found[name]}")
        print(f"  own, a document of 1,000 with ids of 36 bytes: {found['own:n.handbook'] / 1_000:.0f}")


def main() -> None:
    """Print all figures."""
    url = sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379"
    per_query(url)
    for id_bytes in (8, 36, 62):
        per_document(url, id_bytes=id_bytes, level="public")
    per_document(url, id_bytes=36, level="restricted")
    sketches(url)
    fixed(url)


if __name__ == "__main__":
    main()
