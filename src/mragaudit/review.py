"""Commands for whoever is to check or compare runs: `mragaudit verify`, `unpack` and `compare`.

Exit codes: 0 all is well; 1 an error with a message; 2 wrong use of the command; 3 a bundle that fails a check; 4 an
archive that cannot be used at all (hostile, damaged, none of ours).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mragaudit.bundle.archive import LIMITS, Limits, unpack_archive
from mragaudit.bundle.checksums import is_digest
from mragaudit.bundle.names import CHECKSUMS
from mragaudit.errors import ArchiveError, DataError
from mragaudit.stages.verify import Verification, verify_bundle

EXIT_FAILED = 3
EXIT_UNUSABLE = 4

BundleFile = Annotated[Path, typer.Argument(help="archive that `snakemake bundle` made")]
MostFiles = Annotated[int, typer.Option("--max-files", min=1, help="files that an archive may hold")]
MostBytes = Annotated[int, typer.Option("--max-bytes", min=1, help="bytes that an archive may hold, unpacked")]


def add_commands(app: typer.Typer) -> None:
    """Add this module's commands to a command line."""
    for command in (verify, unpack):
        app.command()(command)


def verify(
    bundle: BundleFile,
    expect: Annotated[str | None, typer.Option(help="root digest that the bundle must have, from the paper")] = None,
    max_files: MostFiles = LIMITS.n_files,
    max_bytes: MostBytes = LIMITS.n_bytes,
) -> None:
    """Check a bundle: checksums, rows, stages against one another, and what needs no model made again.

    Exit code 0: verified; 3: a check failed, named; 4: the archive cannot be used.
    """
    if expect is not None and not is_digest(expect.strip().lower()):
        raise typer.BadParameter("a root digest is 64 hexadecimal digits", param_hint="--expect")
    limits = Limits(n_files=max_files, n_bytes=max_bytes)
    try:
        done = verify_bundle(bundle, expect=expect, limits=limits)
    except ArchiveError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_UNUSABLE) from error
    typer.echo(render_verification(done, expected=expect is not None))
    raise typer.Exit(0 if done.passed else EXIT_FAILED)


def unpack(
    bundle: BundleFile,
    folder: Annotated[Path, typer.Argument(help="folder to unpack into; it must not exist yet")],
    max_files: MostFiles = LIMITS.n_files,
    max_bytes: MostBytes = LIMITS.n_bytes,
) -> None:
    """Unpack a bundle safely, for running a stage again."""
    if folder.exists():
        raise DataError(f"{folder}: stands there already; name a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as name:
            made = Path(name) / "bundle"
            made.mkdir()
            found = unpack_archive(bundle, made, limits=Limits(n_files=max_files, n_bytes=max_bytes))
            if CHECKSUMS not in found:
                raise ArchiveError(f"{bundle}: it holds no {CHECKSUMS}, so it is no bundle")
            made.rename(folder)
    except ArchiveError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_UNUSABLE) from error
    typer.echo(f"{len(found)} files in {folder}; {folder / 'README.md'} says how to go on")


def render_verification(done: Verification, *, expected: bool) -> str:
    """Return the checks as text, one line each, faults below; the verdict last."""
    lines = [f"bundle of run {done.run}"]
    for check in done.checks:
        state = "FAILED" if check.state == "failed" else check.state
        lines.append(f"{state:<13} {check.name:<16} {check.detail}".rstrip())
        lines += [f"{'':<13} -> {fault}" for fault in check.faults]
    lines.append(f"root digest: {done.digest}")
    return "\n".join([*lines, _verdict(done, expected=expected)])


def _verdict(done: Verification, *, expected: bool) -> str:
    failed = [check.name for check in done.checks if check.state == "failed"]
    if failed:
        return f"NOT VERIFIED: {', '.join(failed)}"
    open_points = [check.name for check in done.checks if check.state == "not compared"]
    apart = f"; not compared: {', '.join(open_points)}" if open_points else ""
    if expected:
        return f"verified{apart}"
    return f"verified as consistent{apart}; hold the root digest against the one that was published (--expect)"
