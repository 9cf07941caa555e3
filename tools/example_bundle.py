"""Make resources/example_bundle/example.tar.gz anew: without models from its own rows, with `--models` from nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import typer

from mragaudit.bundle.archive import unpack_archive
from mragaudit.bundle.checksums import root_digest
from mragaudit.bundle.names import CHECKSUMS

REPOSITORY = Path(__file__).parents[1]
EXAMPLE = REPOSITORY / "resources" / "example_bundle"
ARCHIVE = EXAMPLE / "example.tar.gz"
BUNDLE = "results/example/bundle.tar.gz"
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
WITHOUT_MODELS = ("filter", "score")
"""First of the stages that need no model and come after one; all that follow run again too."""


def main(*, models: bool = False) -> None:
    """Replace the example bundle and the digests in its README.

    Without --models only what needs no model is made again, from the rows that the bundle holds.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run_all(folder) if models else _run_light(folder)
        shutil.copyfile(folder / BUNDLE, ARCHIVE)
    typer.echo(f"{ARCHIVE.relative_to(REPOSITORY)}: root digest {_write_digest()}")


def _run_all(folder: Path) -> None:
    shutil.copy(REPOSITORY / "config.yaml", folder)
    _snakemake(folder, "--configfile", str(EXAMPLE / "config.yaml"), "--", "bundle")


def _run_light(folder: Path) -> None:
    unpack_archive(ARCHIVE, folder)
    shutil.rmtree(folder / "resources")  # the repository's are used: prompts and languages may have changed
    _snakemake(folder, "--rerun-triggers", "input", "--forcerun", *WITHOUT_MODELS, "--", "bundle")


def _snakemake(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--snakefile", str(REPOSITORY / "Snakefile")]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run([*command, *arguments], cwd=folder, env={**os.environ, "PATH": path}, check=True)  # noqa: S603  # our own Snakefile


def _write_digest() -> str:
    """Write the archive's root digest into the README and return it."""
    with tempfile.TemporaryDirectory() as name:
        unpack_archive(ARCHIVE, Path(name))
        digest = root_digest((Path(name) / CHECKSUMS).read_bytes())
    readme = EXAMPLE / "README.md"
    readme.write_text(DIGEST.sub(digest, readme.read_text(encoding="utf-8")), encoding="utf-8")
    return digest


if __name__ == "__main__":
    typer.run(main)
