"""Check without network that requirements/*.txt still answer what pyproject.toml asks for."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
EXTRAS_BY_LOCK = {
    "run.txt": ("embedded", "monitor"),
    "test.txt": ("embedded", "monitor", "slurm", "http", "dev"),
    "models.txt": ("bge_m3", "nllb", "sentence_transformers", "transformers"),
    "vllm.txt": ("http",),
}
NEVER_LOCKED = {"torch"}
"""Its build differs from machine to machine, so `make models` installs it by itself."""


def read_pins(text: str) -> dict[str, Version]:
    """Return the pinned version by canonical package name, of a lock as uv writes it.

    Only lines of the form ``name==version`` count, with or without a marker; hashes and comments do not.
    """
    pins: dict[str, Version] = {}
    for line in text.splitlines():
        name, separator, rest = line.partition("==")
        if separator and not line.startswith((" ", "#")):
            pins[canonicalize_name(name.partition("[")[0])] = Version(rest.split()[0])
    return pins


def unmet(requirements: Iterable[str], pins: Mapping[str, Version]) -> list[str]:
    """Return one sentence a requirement that the pins do not meet, in the given order."""
    complaints = []
    for text in requirements:
        wanted = Requirement(text)
        if canonicalize_name(wanted.name) in NEVER_LOCKED:
            continue
        pin = pins.get(canonicalize_name(wanted.name))
        if pin is None:
            complaints.append(f"{wanted} is not in the lock")
        elif not wanted.specifier.contains(pin, prereleases=True):
            complaints.append(f"{wanted} is asked for, {pin} is locked")
    return complaints


def check_project(root: Path) -> list[str]:
    """Return what is wrong with the locks of the project in root; empty if nothing is."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    complaints = []
    for lock, extras in EXTRAS_BY_LOCK.items():
        pins = read_pins((root / "requirements" / lock).read_text(encoding="utf-8"))
        wanted = [*project["dependencies"]]
        for extra in extras:
            wanted += project["optional-dependencies"][extra]
        complaints += [f"requirements/{lock}: {complaint}" for complaint in unmet(wanted, pins)]
    return complaints


def main() -> int:
    """Print what is wrong and return the exit code: 1 if anything is."""
    complaints = check_project(ROOT)
    for complaint in complaints:
        sys.stderr.write(f"{complaint}; run: make lock\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
