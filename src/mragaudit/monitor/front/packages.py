"""Optional packages of the fronts: absent, they are named with the command that installs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mragaudit.errors import MissingPackageError

EXTRA = "mragaudit[monitor]"


@contextmanager
def needed(*packages: str, install: str = EXTRA) -> Iterator[None]:
    """Import inside this block; raises MissingPackageError where one of the packages is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in packages:
            raise
        name = error.name.partition(".")[0]
        message = f"the package {name} is not installed; install it with: pip install '{install}'"
        raise MissingPackageError(message) from error
