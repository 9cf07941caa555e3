"""Prompts and pools of the attacks, as data that is checked when it is read."""

from __future__ import annotations

import string
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from mragaudit.attacks.steps import Think
from mragaudit.errors import ConfigError, DataError
from mragaudit.plainyaml import read_plain
from mragaudit.prompts import Template

P = TypeVar("P", bound="Pool")


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all files below `resources/attacks`: where the content is from, and what of it is assumed."""

    schema_version: int
    source: str
    assumption: str


class Writer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prompt for the attacker's own model: shown as text to complete, or as messages, as its backend does it."""

    system: str
    turn: str
    """Last turn with its placeholders, in `str.format` syntax."""
    shots: tuple[dict[str, str], ...]
    """Worked examples: the turn's fields, and `answer`."""
    stop: tuple[str, ...]
    max_tokens: int

    def __post_init__(self) -> None:
        fields = {name for _, name, _, _ in string.Formatter().parse(self.turn) if name is not None}
        for number, shot in enumerate(self.shots, start=1):
            if set(shot) != fields | {"answer"}:
                raise ValueError(f"example {number} has {sorted(shot)}; it needs {sorted(fields | {'answer'})}")
        if self.max_tokens < 1:
            raise ValueError(f'"max_tokens" is {self.max_tokens}; it has to be at least 1')

    def think(self, **fields: str) -> Think:
        """Return the call; the fields are inserted as text and never read as a template."""
        template = Template(system=self.system, turn=self.turn.rstrip(), shots=self.shots, stop=self.stop)
        return Think(prompt=template.prompt(**fields), max_tokens=self.max_tokens, stop=self.stop)


def load_pool(folder: Path, kind: type[P], *, name: str) -> P:
    """Return the file `name`.yaml of the folder.

    Raises ConfigError when it is absent, DataError when its content does not fit.
    """
    path = folder / f"{name}.yaml"
    try:
        content = read_plain(path)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: this file of an attack's prompts is missing; add it, or leave the attack out"
        ) from error
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not readable as UTF-8 YAML: {error}") from error
    try:
        pool = msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}") from error
    if pool.schema_version != 1:
        raise DataError(f'{path}: "schema_version" is {pool.schema_version}; this version reads 1')
    return pool


def require_fields(text: str, fields: set[str]) -> None:
    """Raise ValueError when a template has other placeholders than these; `load_pool` adds file and key."""
    try:
        found = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise ValueError(f'"{text}": {error}; write braces that are text as {{{{ and }}}}') from error
    if found != fields:
        raise ValueError(f'"{text}" has the placeholders {sorted(found)}; it needs exactly {sorted(fields)}')
