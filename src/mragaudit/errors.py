"""The errors that mragaudit raises on purpose: one base, a few kinds.

Every message says what was wrong, where (file and line, or config key) and what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class MragauditError(Exception):
    """Base of all errors that a user can mend; its text is printed without a traceback."""


class ConfigError(MragauditError):
    """A config key is unknown, of the wrong type, or contradicts another."""


class DataError(MragauditError):
    """A record or an imported row is not what its stage boundary allows."""


class GateError(MragauditError):
    """A stage has fewer, more or other rows than its input calls for."""


class MissingPackageError(MragauditError):
    """An optional package is needed and absent; the message holds the install command."""


class BackendError(MragauditError):
    """A model cannot be loaded or cannot take the request; trying again would not help."""


class RequestError(BackendError):
    """One request cannot be taken as it is, by its position among the requests of the call."""

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(message)
        self.position = position


class ArchiveError(MragauditError):
    """An archive is damaged, hostile or none of ours; nothing of it was used."""


class StorageError(MragauditError):
    """A file cannot be written: no space, no permission."""


class StoreError(MragauditError):
    """The monitor's store did not take a call: away, too slow, full, or read-only."""


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return a hint: the nearest allowed name, else all allowed names."""
    names = sorted(allowed)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    return f"allowed: {', '.join(names)}" if names else "nothing is allowed here"
