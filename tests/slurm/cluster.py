"""A real SLURM of one node on this machine, and Snakemake processes that send jobs to it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pipeline import CASE, REPOSITORY

HERE = Path(__file__).parent
PROFILE = REPOSITORY / "workflow" / "profiles" / "slurm"
DRIVER_SECONDS = 600
"""A Snakemake process is ended by then, even when these tests are killed."""
INIT_SECONDS = 8
"""To the first look at a job; every look at which none succeeded puts the next one off by ten seconds more."""
FIELDS = {
    "id": "JobID",
    "name": "Name",
    "state": "State",
    "partition": "Partition",
    "account": "Account",
    "cpus": "NumCPUs",
    "memory": "MinMemory",
    "limit": "TimeLimit",
    "gpus": "tres-per-job",
    "comment": "Comment",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What the queue says of a job, in its words."""

    id: str
    name: str
    """`mragaudit_{id of the Snakemake run}`."""
    state: str
    partition: str
    account: str
    cpus: str
    memory: str
    limit: str
    gpus: str
    comment: str
    """`rule_{rule}_wildcards_{wildcards}`."""

    @property
    def rule(self) -> str:
        return self.comment.removeprefix("rule_").partition("_wildcards_")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A SLURM that is up."""

    environment: Mapping[str, str]

    def ask(self, *command: str) -> str:
        """Return what a SLURM command prints; one that fails raises."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def jobs(self, run_id: str) -> list[Job]:
        """Return the jobs of a Snakemake run, ended ones too, in order of submission."""
        columns = ",".join(f"{name}:120" for name in FIELDS.values())
        found = self.ask("squeue", "--noheader", "--states=all", f"--name={run_id}", f"--Format={columns}")
        rows = [[line[i : i + 120].strip() for i in range(0, 120 * len(FIELDS), 120)] for line in found.splitlines()]
        jobs = [Job(**dict(zip(FIELDS, row, strict=True))) for row in rows]
        return sorted(jobs, key=lambda job: int(job.id))


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start a SLURM on free ports, and stop it, jobs included, on the way out."""
    base = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # a socket's path must be short
    ports = {"CONTROLLER_PORT": str(_free_port()), "NODE_PORT": str(_free_port())}
    try:
        up = subprocess.run(
            [str(HERE / "slurm_up.sh"), str(base)],
            env={**os.environ, **ports},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert up.returncode == 0, up.stderr
        path = f"{base / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        yield Cluster(environment={**os.environ, "SLURM_CONF": str(base / "etc" / "slurm.conf"), "PATH": path})
    finally:
        subprocess.run([str(HERE / "slurm_down.sh"), str(base)], capture_output=True, timeout=90, check=False)
        shutil.rmtree(base, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@dataclass(kw_only=True)
class Driver:
    """Snakemake in a folder, under the profile that is shipped; one process at a time."""

    cluster: Cluster
    folder: Path
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        """Start the command, with arguments on top of the usual ones, and forget what an earlier one said."""
        command = ["timeout", "--signal=INT", "--kill-after=20", str(DRIVER_SECONDS), sys.executable, "-m", "snakemake"]
        command += ["--snakefile", str(REPOSITORY / "Snakefile"), "--profile", str(PROFILE)]
        command += ["--configfile", str(CASE), "over.yaml", "--latency-wait", "10"]
        command += ["--slurm-init-seconds-before-status-checks", str(INIT_SECONDS), *more, *self.arguments]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**self.cluster.environment, **self.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self) -> int:
        """Return the exit code, once there is one."""
        assert self.process is not None
        return self.process.wait(timeout=DRIVER_SECONDS + 30)

    def run(self, *more: str) -> str:
        """Run the command to its end, and return what it said; an exit code other than 0 is a failure."""
        self.start(*more)
        code = self.wait()
        assert code == 0, self.output()[-6000:]
        return self.output()

    def kill(self) -> None:
        """Kill the process and what it started here, if it is still there; jobs in the cluster live on."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def output(self) -> str:
        """Return what the command has said so far."""
        return self._output.read_text(encoding="utf-8")

    def run_id(self) -> str:
        """Return the name that the jobs of this command have, once it is known."""
        found = self.until(lambda: re.search(r"SLURM run ID: (\S+)", self.output()))
        return str(found[1])

    def jobs(self) -> list[Job]:
        """Return the jobs that this command has sent so far."""
        return self.cluster.jobs(self.run_id())

    def until(self, condition: Callable[[], Any], *, seconds: float = 120) -> Any:
        """Return the first true value of a condition; it fails if the command ends, or the time, without one."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if value := condition():
                return value
            assert self.process is not None
            assert self.process.poll() is None, self.output()[-6000:]
            time.sleep(0.1)
        raise AssertionError(f"not within {seconds} s:\n{self.output()[-6000:]}")

    @property
    def _output(self) -> Path:
        return self.folder / "driver.txt"


def write_case(folder: Path, over: Mapping[str, Any]) -> None:
    """Make a folder in which the scripted case runs, with sections laid on top."""
    shutil.copy(REPOSITORY / "config.yaml", folder)
    (folder / "resources").symlink_to(REPOSITORY / "resources")
    (folder / "over.yaml").write_text(yaml.safe_dump(dict(over)), encoding="utf-8")
