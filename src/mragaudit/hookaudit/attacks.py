"""The attack map: which metrics an attack is scored by, and where its steps come from, as data."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import yaml

from mragaudit.errors import ConfigError, did_you_mean
from mragaudit.hookaudit.verdicts import HOOKS, Hook
from mragaudit.plainyaml import read_plain
from mragaudit.resources import resource_folder

AttackKind = Literal["extraction", "membership", "probe"]
Spec = Literal["published", "partly_published", "assumption", "own"]


class Attack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attack, what it is scored by and what is known of it."""

    name: str
    title: str
    kind: AttackKind
    spec: Spec
    """Where the steps come from; `own` is a probe of ours."""
    source: str = ""
    """Text that names or describes the attack; empty for our own."""
    assumed: str = ""
    """What the source leaves open and we chose."""
    aim: str
    """What the attack is after."""
    evades: tuple[Hook, ...] = ()
    """Hooks whose change it is made to get round."""
    metrics: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.metrics:
            raise ValueError(f"{self.name}: an attack is scored by at least one metric")
        if (self.spec == "own") != (not self.source):
            raise ValueError(f'{self.name}: `source` belongs to every attack but those of spec "own"')
        if self.spec in {"partly_published", "assumption"} and not self.assumed:
            raise ValueError(f"{self.name}: `assumed` has to say what of a spec that is not published whole is ours")


class AttackMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All attacks, in the order of the report."""

    schema_version: int
    attacks: tuple[Attack, ...]

    def __post_init__(self) -> None:
        names = [attack.name for attack in self.attacks]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"{', '.join(sorted(twice))} stands there twice")

    def attack(self, name: str) -> Attack:
        """Return an attack by name; raises ConfigError with the nearest name for an unknown one."""
        by_name = {attack.name: attack for attack in self.attacks}
        if name not in by_name:
            raise ConfigError(f'attack "{name}" is unknown; {did_you_mean(name, by_name)}')
        return by_name[name]


def read_attacks(path: Path) -> AttackMap:
    """Return an attack map; raises ConfigError, naming file and key, for what does not belong there."""
    try:
        return msgspec.convert(read_plain(path), AttackMap)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: the attack map is missing") from error
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}; hooks are {', '.join(HOOKS)}") from error


def shipped_attacks(resources: str = "resources") -> AttackMap:
    """Return the attack map that ships."""
    return read_attacks(resource_folder(resources) / "hook_audit" / "attacks.yaml")
