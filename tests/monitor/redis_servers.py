"""Real Redis servers and a cluster on loopback, started by tests and stopped after them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

START_SECONDS = 30.0


def free_port() -> int:
    """Return a port on which nothing listens; a cluster's bus takes the one 10,000 above it."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
        if port < 55_000:
            return port


class RedisServer:
    """One redis-server process with a folder of its own."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port() if port is None else port
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> RedisServer:
        """Start the server, or start it again over what it left in its folder, and wait until it answers."""
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*command, "--save", "", *self._options], stdout=log, stderr=log)
        self._wait()
        return self

    def _wait(self) -> None:
        from redis import RedisError  # noqa: PLC0415 - needs the extra `monitor`

        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with self.client() as client, contextlib.suppress(RedisError):
                if client.ping():
                    return
            time.sleep(0.02)
        raise RuntimeError(f"redis-server does not answer: {(self.folder / 'log').read_text()[-2000:]}")

    def client(self) -> Any:
        """Return a client of its own, apart from any monitor's."""
        from redis import Redis  # noqa: PLC0415

        return Redis(port=self.port, socket_timeout=20, protocol=2)

    def signal(self, number: int) -> None:
        """Send the process a signal, such as SIGSTOP for a stall and SIGCONT for its end."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End the process as a power cut would, without a word to it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None


class RedisCluster:
    """Three nodes that share the slots, without replicas."""

    def __init__(self, folder: Path) -> None:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "6000")
        self.nodes = [RedisServer(folder / str(number), *options) for number in range(3)]

    @property
    def url(self) -> str:
        return f"redis+cluster://127.0.0.1:{self.nodes[0].port}"

    def start(self) -> RedisCluster:
        """Start the nodes and join them."""
        for node in self.nodes:
            node.start()
        addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
        self.manage("--cluster", "create", *addresses, "--cluster-replicas", "0", "--cluster-yes")
        self._wait()
        return self

    def manage(self, *arguments: str) -> str:
        """Run redis-cli and return what it printed."""
        done = subprocess.run(["redis-cli", *arguments], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if all(self._is_ready(node) for node in self.nodes):
                return
            time.sleep(0.05)
        raise RuntimeError("the cluster does not come up")

    def _is_ready(self, node: RedisServer) -> bool:
        with node.client() as client:
            info = client.execute_command("CLUSTER INFO")
        return (info["cluster_state"], info["cluster_slots_ok"]) == ("ok", "16384")

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()


@contextlib.contextmanager
def running(server: RedisServer | RedisCluster) -> Iterator[RedisServer | RedisCluster]:
    """Start a server or a cluster and end it at the end."""
    try:
        yield server.start()
    finally:
        server.kill()
