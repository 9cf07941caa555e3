"""A sandbox for other people's code: bubblewrap, with everything taken away that a hook does not need.

No network, no file but Python, its packages and the audited tree, all of them read-only, a small memory file system to
write to, an empty environment, the rights of nobody, and limits on time, memory, processes and file size.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

from mragaudit.errors import MissingPackageError

CHILD = Path(__file__).with_name("child.py")
SCRATCH_BYTES = 64 * 2**20
WALL_SECONDS = 30.0
MAX_RESULT_BYTES = 2**20
LIMITS = {
    "core_bytes": 0,
    "cpu_seconds": 20,
    "file_bytes": 32 * 2**20,
    "memory_bytes": 4 * 2**30,
    "processes": 64,
    "open_files": 256,
}
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
NOT_CONTAINED = (
    "--probe-unsafe runs the code without a sandbox: it can read, write and delete files, use the network and the "
    "environment of this process's user; only processor time, memory and file size are limited"
)


SELF_TEST = """
import os
if os.getuid() == 0:
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
import json
print("works")
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What came back from a job: results by their number, and why some may be missing."""

    results: dict[int, dict[str, Any]]
    problem: str


def require_sandbox() -> None:
    """Raise MissingPackageError where no sandbox works here."""
    problem = _sandbox_problem()
    if problem:
        raise MissingPackageError(
            f"--probe runs other people's code and needs a sandbox that works here: {problem}. "
            "Install bubblewrap (apt-get install bubblewrap) and allow user namespaces, or accept the risk with "
            f"--probe-unsafe. {NOT_CONTAINED}"
        )


@cache
def _sandbox_problem() -> str:
    if shutil.which("bwrap") is None:
        return "the program bwrap is not installed"
    command = [*sandbox_command({}), sys.executable, "-I", "-B", "-c", SELF_TEST]
    try:
        done = subprocess.run(command, capture_output=True, timeout=WALL_SECONDS, check=False, env={})  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not run ({type(error).__name__})"
    if done.stdout.strip() != b"works":
        return f"bwrap fails: {done.stderr.decode(errors='replace').strip()[:200]}"
    return ""


def sandbox_command(readable: Mapping[Path, Path]) -> list[str]:
    """Return the beginning of a command line that runs the rest in the sandbox.

    `readable` holds further folders: where one stands inside → where it is taken from.

    As root, bubblewrap sets up the sandbox with root's rights and the child gives them up for those of nobody: an
    id that is only mapped to nobody would still be root to the kernel, which exempts it from the limit on processes.
    """
    command = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session", "--clearenv"]
    if os.getuid() == 0:
        command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-all", "--uid", "65534", "--gid", "65534"]
    for place in SYSTEM:
        path = Path(place)
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), place]
        elif path.exists():
            command += ["--ro-bind", place, place]
    command += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"]  # noqa: S108
    bound = {path: path for path in _outermost([*_python_folders(), CHILD.resolve()])} | dict(readable)
    made = {Path("/"), Path("/tmp"), *map(Path, SYSTEM)}  # noqa: S108
    for inside, outside in bound.items():
        for parent in (path for path in reversed(inside.parents) if path not in made):
            made.add(parent)
            command += ["--perms", "0755", "--dir", str(parent)]  # of itself bubblewrap makes them for root alone
        command += ["--ro-bind", str(outside), str(inside)]
    return [*command, "--remount-ro", "/", "--chdir", "/tmp", "--"]  # noqa: S108


def _python_folders() -> Iterator[Path]:
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    places |= {str(Path(sys.executable).parent), str(Path(sys.executable).resolve().parent)}
    yield from (Path(place) for place in sorted(places) if Path(place).exists())


def _outermost(paths: list[Path]) -> list[Path]:
    """Return the paths that are not inside another one, nor inside what is bound anyway."""
    bound = [Path(place) for place in SYSTEM]
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda item: len(item.parts)):
        if not any(path.is_relative_to(other) for other in (*kept, *bound)):
            kept.append(path)
    return kept


def run_job(job: dict[str, Any], *, readable: Mapping[Path, Path], unsafe: bool = False) -> Reply:
    """Run one job of the child; its results are those lines of its channel that carry the job's secret."""
    reading, writing = os.pipe()
    secret = secrets.token_hex(16)
    prefix = [] if unsafe else sandbox_command(readable)
    command = [*prefix, sys.executable, "-B", "-s", str(CHILD)]
    text = (
        json.dumps({**job, "channel": writing, "secret": secret, "limits": _limits(unsafe), "contained": not unsafe})
        + "\n"
    )
    environment = {} if not unsafe else {"PATH": os.environ.get("PATH", "")}
    with subprocess.Popen(  # noqa: S603  # the command is ours; what it imports is what the sandbox is for
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(writing,),
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(writing)
        timer = Timer(WALL_SECONDS, _kill, (process,))
        timer.start()
        try:
            _send(process, text)
            content = _read(reading)
        finally:
            timer.cancel()
            _kill(process)
            os.close(reading)
    results = _results(content, secret)
    missing = len(results) < len(job["hooks"])
    return Reply(results=results, problem=f"it ended early or ran longer than {WALL_SECONDS:g} s" if missing else "")


def _limits(unsafe: bool) -> dict[str, int]:  # one value, passed on
    return {name: value for name, value in LIMITS.items() if not (unsafe and name == "processes")}


def _send(process: subprocess.Popen[bytes], text: str) -> None:
    if process.stdin is None:
        return
    try:
        process.stdin.write(text.encode())
        process.stdin.close()
    except BrokenPipeError:
        return


def _read(descriptor: int) -> bytes:
    """Return what comes until the channel closes, up to a limit."""
    content = b""
    while len(content) < MAX_RESULT_BYTES:
        part = os.read(descriptor, 65536)
        if not part:
            break
        content += part
    return content


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _results(content: bytes, secret: str) -> dict[int, dict[str, Any]]:
    results: dict[int, dict[str, Any]] = {}
    for line in content.split(b"\n"):
        if line.startswith(secret.encode()):
            result = json.loads(line[len(secret) :])
            results.setdefault(result["number"], result)
    return results
