"""What the models of a run need and this machine lacks: said before the first job, not after the hours before its own.

Said, not refused: jobs may run on other machines, which have the key and the packages, and a stage whose journal holds
all its calls needs neither.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from mragaudit.bundle.readme import MODEL_STAGES
from mragaudit.config import Settings
from mragaudit.config.settings import EmbedderRole, Role
from mragaudit.registry import Kind, locate, missing_hint


def print_lacking(settings: Settings, *, stages: Iterable[str]) -> None:
    """Write to stderr, a line each, what the models of these stages lack here."""
    sys.stderr.writelines(f"{line}\n" for line in lacking(settings, stages=stages))


def lacking(settings: Settings, *, stages: Iterable[str]) -> list[str]:
    """Return a warning for each thing that a role of these stages lacks on this machine."""
    running = sorted(MODEL_STAGES.keys() & set(stages))
    return [
        f"warning: roles.{name}: {lack}; jobs of {' and '.join(used)} fail where it is missing, "
        "unless the journal holds all their calls"
        for name, role in settings.roles
        if (used := [stage for stage in running if name in MODEL_STAGES[stage]])
        for lack in _lacking_of(role)
    ]


def _lacking_of(role: Role | EmbedderRole) -> Iterator[str]:
    kind: Kind = "embedder" if isinstance(role, EmbedderRole) else "llm"
    if hint := missing_hint(kind, role.backend):
        yield hint
    of_backend = getattr(locate(kind, role.backend), "lacking", None)
    if of_backend is not None:
        yield from of_backend(**role.options)
