"""What made a result: digests of the code behind a stage, hashes of files, versions of packages."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import platform
from functools import cache
from pathlib import Path

PACKAGE_ROOT = Path(__file__).parent
PACKAGE = PACKAGE_ROOT.name


def source_digest(*modules: str) -> str:
    """Return a digest of the named modules and of all library modules that they import, directly or not.

    Snakemake sees only the thin scripts, so rules carry this as a param. The digest is taken over the syntax tree
    without docstrings: a changed comment, docstring or line break is no changed code. Nothing is imported.
    """
    closure: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in closure:
            continue
        path = _module_path(name)
        if path is None:
            continue
        digest, imported = _read_module(path)
        closure[name] = digest
        waiting += imported
    text = "\n".join(f"{name} {closure[name]}" for name in sorted(closure))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _module_path(name: str) -> Path | None:
    if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
        return None
    base = PACKAGE_ROOT.joinpath(*name.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _read_module(path: Path) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(path.read_bytes())
    _strip_docstrings(tree)
    imported: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(imported)


def _strip_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        kept = [statement for statement in body if not _is_string(statement)]
        body[:] = kept or [ast.Pass()]


def _is_string(statement: object) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def tree_sha256(folder: Path, pattern: str = "*") -> str:
    """Return one digest over all files below a folder that match a pattern: names and contents, no times."""
    lines = [
        f"{path.relative_to(folder).as_posix()} {file_sha256(path)}"
        for path in sorted(folder.rglob(pattern))
        if path.is_file()
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Return the installed versions of Python and of the packages; absent ones are left out."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
