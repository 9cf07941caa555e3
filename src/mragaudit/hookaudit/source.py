"""Python source of a tree, parsed and never imported: what cannot be read is named, and the rest is kept."""

from __future__ import annotations

import ast
import importlib.machinery
import io
import os
import stat
import sys
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mragaudit.errors import DataError

SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", ".git", ".hg", ".svn", ".tox", ".nox", ".mypy_cache"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A file that could not be audited, and why."""

    file: str
    reason: str
    line: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """A parsed file."""

    file: str
    """Path as shown to a person, relative to the root where it lies below."""
    name: str
    """Dotted name under which other modules import it."""
    is_package: bool
    text: str
    tree: ast.Module


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTree:
    """All files of a tree that could be parsed, and those that could not."""

    root: Path
    files: tuple[SourceFile, ...]
    problems: tuple[Problem, ...]

    @property
    def line_count(self) -> int:
        """Lines of the parsed files."""
        return sum(file.text.count("\n") + 1 for file in self.files)


def locate(path_or_module: str) -> Path:
    """Return the file or folder that is meant: an existing path, else an installed module by its dotted name.

    Nothing is imported: only the finder of top-level modules is asked, the rest is looked for below the folder.
    Raises DataError when there is neither.
    """
    path = Path(path_or_module)
    if path.exists():
        return path
    if all(part.isidentifier() for part in path_or_module.split(".")) and (found := _find_module(path_or_module)):
        return found
    raise DataError(
        f'"{path_or_module}": no such file or folder, and no installed module of this name has Python source; '
        "give a path, or a module such as package.subpackage"
    )


def _find_module(name: str) -> Path | None:
    head, *rest = name.split(".")
    spec = importlib.machinery.PathFinder.find_spec(head, sys.path)
    if spec is None:
        return None
    places = [Path(place) for place in spec.submodule_search_locations or []]
    if not rest:
        return _first([*places, Path(spec.origin or "")])
    inside = [place.joinpath(*rest) for place in places]
    return _first([*inside, *(place.with_name(f"{place.name}.py") for place in inside)])


def _first(paths: list[Path]) -> Path | None:
    return next((path for path in paths if path.is_dir() or (path.is_file() and path.suffix == ".py")), None)


def load_tree(root: Path) -> SourceTree:
    """Return every Python file at or below a path.

    Links to folders are not followed, so that a loop of links ends; a file reached twice is read once.
    """
    files: list[SourceFile] = []
    problems: list[Problem] = []
    seen: set[tuple[int, int]] = set()
    for path in _python_files(root, problems):
        shown = printable_path(path.relative_to(root).as_posix() if root.is_dir() else path.name)
        try:
            status = path.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            if not stat.S_ISREG(status.st_mode):
                problems.append(Problem(file=shown, reason="is not a regular file"))
                continue
            content = path.read_bytes()
        except OSError as error:
            problems.append(Problem(file=shown, reason=f"cannot be read: {error.strerror}"))
            continue
        parsed = parse_source(content, file=shown, name=_module_name(path, root), is_package=path.stem == "__init__")
        (problems if isinstance(parsed, Problem) else files).append(parsed)  # type: ignore[arg-type]
    return SourceTree(root=root, files=tuple(files), problems=tuple(problems))


def parse_source(
    content: bytes | str, *, file: str = "<source>", name: str = "source", is_package: bool = False
) -> SourceFile | Problem:
    """Return the parsed text, or what is wrong with it, with the line where that is known."""
    try:
        text = content if isinstance(content, str) else _decode(content)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        reason = f"is not text in its declared encoding (UTF-8 unless it says otherwise): {error}"
        return Problem(file=file, reason=reason)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other people's escape sequences
            tree = ast.parse(text)
    except SyntaxError as error:
        return Problem(file=file, reason=f"syntax error: {error.msg}", line=error.lineno)
    except (RecursionError, MemoryError):
        return Problem(file=file, reason="nested too deeply to be parsed")
    except ValueError as error:
        return Problem(file=file, reason=f"is not Python source: {error}")
    return SourceFile(file=file, name=name, is_package=is_package, text=text, tree=tree)


def printable_path(path: str) -> str:
    """Return a path that can be written as UTF-8: names need not be text."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def _decode(content: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return content.decode(encoding)


def _python_files(root: Path, problems: list[Problem]) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return

    def note(error: OSError) -> None:
        problems.append(Problem(file=str(error.filename), reason=f"cannot be listed: {error.strerror}"))

    for folder, names, files in os.walk(root, onerror=note):
        names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS and not _is_environment(folder, name))
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(".py"))


def _is_environment(folder: str, name: str) -> bool:
    return (Path(folder) / name / "pyvenv.cfg").is_file()


def _module_name(path: Path, root: Path) -> str:
    """Return the dotted name counted from the outermost package, else from the root."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.resolve().parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    base = root.resolve() if root.is_dir() else folder
    if folder != base and base in folder.parents:
        parts = [*folder.relative_to(base).parts, *parts]
    return ".".join(parts) or path.parent.name
