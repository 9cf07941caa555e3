"""YAML resources as checked plain values: every complaint names the file and the key."""

from __future__ import annotations

import string
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from mragaudit.errors import ConfigError, DataError, did_you_mean
from mragaudit.plainyaml import RepeatedKeyError, read_plain


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A value inside a YAML file, with the place where it stands."""

    path: Path
    key: str
    """Dotted path from the top of the file, empty for the top."""
    value: object

    def error(self, problem: str) -> DataError:
        """Return the error that names file and key."""
        where = f'{self.path}, key "{self.key}"' if self.key else f"{self.path}"
        return DataError(f"{where}: {problem}")

    def mapping(self, *, required: Iterable[str] = (), optional: Iterable[str] = ()) -> dict[str, Node]:
        """Return the members by name; raises DataError for a missing or an unknown one.

        With neither `required` nor `optional` any names are allowed.
        """
        if not isinstance(self.value, dict):
            raise self.error("a mapping of names to values has to stand here")
        wanted, allowed = set(required), {*required, *optional}
        for name in sorted(wanted - set(self.value)):
            raise self.error(f'"{name}" is missing here')
        members = {str(name): self._child(f".{name}", value) for name, value in self.value.items()}
        for name, member in members.items():
            if allowed and name not in allowed:
                raise member.error(f"this key is unknown; {did_you_mean(name, allowed)}")
        return members

    def items(self, *, at_least: int = 1) -> list[Node]:
        """Return the members of a list; raises DataError for no list or too short a one."""
        if not isinstance(self.value, list) or len(self.value) < at_least:
            raise self.error(f"a list of at least {at_least} has to stand here")
        return [self._child(f"[{position}]", value) for position, value in enumerate(self.value)]

    def text(self) -> str:
        """Return a text; raises DataError for anything else (a bare `no` or `12` is no text in YAML)."""
        if not isinstance(self.value, str):
            raise self.error(f"a text has to stand here, not {self.value!r}; put it in quotes")
        return self.value

    def texts(self, *, at_least: int = 1) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(item.text() for item in self.items(at_least=at_least))

    def choice(self, allowed: Iterable[str]) -> str:
        """Return a text that is one of the allowed ones."""
        value, names = self.text(), list(allowed)
        if value not in names:
            raise self.error(f'"{value}" is unknown; {did_you_mean(value, names)}')
        return value

    def template(self, *, required: Iterable[str] = (), optional: Iterable[str] = ()) -> str:
        """Return a text with named placeholders; raises DataError for a missing, unknown or broken one."""
        value = self.text()
        try:
            found = {name for _, name, _, _ in string.Formatter().parse(value) if name is not None}
        except ValueError as error:
            raise self.error(f"the braces do not match ({error}); double a brace that is meant as text") from error
        needed, allowed = set(required), {*required, *optional}
        for name in sorted(found - allowed):
            raise self.error(f"the placeholder {{{name}}} is unknown; {did_you_mean(name, allowed)}")
        for name in sorted(needed - found):
            raise self.error(f"the placeholder {{{name}}} is missing")
        return value

    def templates(
        self, *, required: Iterable[str] = (), optional: Iterable[str] = (), at_least: int = 1
    ) -> tuple[str, ...]:
        """Return a list of texts with named placeholders."""
        nodes = self.items(at_least=at_least)
        return tuple(node.template(required=required, optional=optional) for node in nodes)

    def _child(self, suffix: str, value: object) -> Node:
        return Node(path=self.path, key=f"{self.key}{suffix}".removeprefix("."), value=value)


def load_yaml(path: Path) -> Node:
    """Return the content of a YAML file.

    Raises ConfigError naming the file when it is missing, DataError with the line when it is no valid YAML.
    """
    try:
        value = read_plain(path)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: this file is missing; add it, or leave out what needs it") from error
    except RepeatedKeyError as error:
        raise DataError(f"{path}, {error}") from error
    except yaml.YAMLError as error:
        raise DataError(f"{path}: this is no valid YAML in UTF-8: {error}") from error
    return Node(path=path, key="", value=value)
