"""What a model job takes of a machine: the sum over the plugins that its stage runs."""

from __future__ import annotations

from dataclasses import dataclass

from mragaudit.config.settings import Settings
from mragaudit.config.slices import STAGE_KEYS
from mragaudit.registry import Kind, plugin


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What one job of a stage asks of the machine that it runs on."""

    gpus: int
    memory_mb: int


def stage_needs(settings: Settings, stage: str) -> Needs:
    """Return what one job of a model stage needs, by the plugins of the roles whose settings it uses.

    Memory adds up, since a stage holds all its models at once; they share GPUs. Raises KeyError for an unknown stage.
    """
    roles = [key.removeprefix("roles.") for key in STAGE_KEYS[stage] if key.startswith("roles.")]
    plugins = [plugin(_kind(role), getattr(settings.roles, role).backend) for role in roles]
    return Needs(gpus=max((one.gpus for one in plugins), default=0), memory_mb=sum(one.memory_mb for one in plugins))


def _kind(role: str) -> Kind:
    return "embedder" if role == "embedder" else "llm"
