"""Which names a bundle may hold: all others are refused before a byte of them is written."""

from __future__ import annotations

import re

from mragaudit.errors import ArchiveError

README = "README.md"
CHECKSUMS = "checksums.sha256"
CONFIG = "config.yaml"
DESCRIPTION = "bundle.json"
RESOURCES = "resources"
INPUTS = "inputs"
RESULTS = "results"

MOST_CHARS = 240
"""Of a whole name: what a USTAR header holds, less a margin."""
MOST_PARTS = 8

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+=@-]*")
# No program, no archive and no object of a programming language is among these.
_SUFFIXES = frozenset({".csv", ".faiss", ".html", ".json", ".jsonl", ".md", ".npy", ".svg", ".tsv", ".yaml"})
_TOP_FILES = frozenset({README, CHECKSUMS, CONFIG, DESCRIPTION})
_TOP_FOLDERS = frozenset({RESOURCES, INPUTS, RESULTS})


def check_name(name: str) -> str:
    """Return a file's name as it may be unpacked, a leading `./` taken off.

    Raises ArchiveError for an absolute path, `..`, a hidden file, characters that mean something to a shell or a file
    system, and for every place and ending that no bundle has.
    """
    require_inside(name)
    plain = name.removeprefix("./")
    parts = plain.split("/")
    if len(plain) > MOST_CHARS or len(parts) > MOST_PARTS or not all(map(_PART.fullmatch, parts)):
        raise ArchiveError(
            f"{name[:MOST_CHARS]!r} is no name that a bundle gives: letters, digits and ._+=@- in at most {MOST_PARTS} "
            "parts, none hidden or empty"
        )
    if not belongs(plain):
        raise ArchiveError(f"{name!r} is nothing that a bundle holds; it is not unpacked")
    return plain


def require_inside(name: str) -> None:
    """Raise ArchiveError for an absolute path and for `..`, in the name of a file or of a folder."""
    plain = name.removeprefix("./")
    if plain.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", plain):
        raise ArchiveError(f"{name!r} is an absolute path; names in a bundle are relative")
    if ".." in plain.split("/"):
        raise ArchiveError(f'{name!r} leads out of the folder with ".."')


def fits(name: str) -> bool:
    """Return whether `check_name` takes a name."""
    try:
        check_name(name)
    except ArchiveError:
        return False
    return True


def belongs(name: str) -> bool:
    """Return whether a well-formed name has a place and an ending that bundles have."""
    top, below, rest = name.partition("/")
    if not below:
        return top in _TOP_FILES
    return top in _TOP_FOLDERS and any(rest.endswith(suffix) for suffix in _SUFFIXES)
