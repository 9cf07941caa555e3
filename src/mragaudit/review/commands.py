"""Commands for whoever is to check or compare runs: `mragaudit verify`, `unpack` and `compare`.

Exit codes: 0 all is well; 1 an error with a message; 2 wrong use of the command; 3 a bundle that fails a check; 4 an
archive that cannot be used at all (hostile, damaged, none of ours).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from mragaudit.bundle.archive import LIMITS, Limits
from mragaudit.bundle.checksums import is_digest
from mragaudit.errors import ArchiveError, DataError, StorageError
from mragaudit.records.base import write_text
from mragaudit.review.comparison import render_comparison, render_json
from mragaudit.review.verification import render_verification
from mragaudit.stages.aggregate import to_csv
from mragaudit.stages.compare import compare_runs, open_side
from mragaudit.stages.opening import open_bundle
from mragaudit.stages.verify import verify_bundle

EXIT_FAILED = 3
EXIT_UNUSABLE = 4

BundleFile = Annotated[Path, typer.Argument(help="archive that `snakemake bundle` made")]
MostFiles = Annotated[int, typer.Option("--max-files", min=1, help="files that an archive may hold")]
MostBytes = Annotated[int, typer.Option("--max-bytes", min=1, help="bytes that an archive may hold, unpacked")]


def add_commands(app: typer.Typer) -> None:
    """Add this module's commands to a command line."""
    for command in (verify, unpack, compare):
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
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as name:
            made = Path(name) / "bundle"
            made.mkdir()
            found = open_bundle(bundle, made, limits=Limits(n_files=max_files, n_bytes=max_bytes)).digests
            made.rename(folder)
    except ArchiveError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_UNUSABLE) from error
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made ({error.strerror}); name a folder that can be written") from error
    typer.echo(f"{len(found)} files in {folder}; {folder / 'README.md'} says how to go on")


@contextmanager
def _named(folders: Mapping[Path, Path]) -> Iterator[None]:
    """Name the archive in an error about a file of the folder that it was unpacked into, which is gone by then."""
    try:
        yield
    except DataError as error:
        text = str(error)
        for folder, archive in folders.items():
            text = text.replace(f"{folder}/", f"{archive}: ")
        raise DataError(text) from error


def compare(
    a: Annotated[Path, typer.Argument(help="bundle, unpacked bundle, or folder of a run")],
    b: Annotated[Path, typer.Argument(help="the other one")],
    json_file: Annotated[Path | None, typer.Option("--json", help="write everything into this file")] = None,
    csv_folder: Annotated[Path | None, typer.Option("--csv", help="write paired.csv and all tables there")] = None,
) -> None:
    """Set two runs side by side: tables with differences, and paired intervals over the documents that both have.

    Every difference is B minus A.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="mragaudit-compare-") as name:
            folders = [Path(name) / side for side in "ab"]
            for folder in folders:
                folder.mkdir()
            with _named({folder: path for folder, path in zip(folders, (a, b), strict=True) if path.is_file()}):
                done = compare_runs(*(open_side(path, folder) for path, folder in zip((a, b), folders, strict=True)))
    except ArchiveError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_UNUSABLE) from error
    if json_file is not None:
        write_text(json_file, render_json(done))
    if csv_folder is not None:
        for table, content in {"paired": done.paired, **done.tables}.items():
            write_text(csv_folder / f"{table}.csv", to_csv(content))
    typer.echo(render_comparison(done))
