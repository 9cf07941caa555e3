"""What every section of a config is made of."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, StringConstraints

from mragaudit.errors import ConfigError
from mragaudit.registry import Kind, plugin

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
WEIGHT_TOLERANCE = 1e-9
"""By which weights may miss the sum of 1."""


class Section(BaseModel):
    """Base of all sections: unknown keys refused, no silent conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def without_defaults(self, given: set[str]) -> Self:
        """Return self with every field outside `given` taken away: reading one raises AttributeError."""
        for name in set(type(self).model_fields) - given:
            self.__dict__.pop(name, None)
        return self


def require_plugin(kind: Kind, name: str) -> None:
    """Raise ValueError, which pydantic puts the key before, for a plugin that there is not."""
    try:
        plugin(kind, name)
    except ConfigError as error:
        raise ValueError(str(error)) from None
