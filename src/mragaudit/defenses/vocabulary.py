"""The vocabulary of entity substitution: placeholders, and the words by which names are found."""

from __future__ import annotations

import hashlib
import re
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from mragaudit.errors import ConfigError
from mragaudit.plainyaml import read_plain
from mragaudit.resources import resource_folder

Script = Literal["cased", "han", "arabic", "other"]


class Placeholders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """What stands in the place of a name or an address."""

    prefix: str
    codes: tuple[str, ...]
    han_prefix: str
    han_first: str
    han_second: str
    arabic_prefix: str
    arabic_codes: tuple[str, ...]
    email_domain: str

    def name(self, key: str, *, script: Script) -> str:
        """Return the placeholder of a person, determined by the key alone, in Latin, Han or Arabic letters."""
        if script == "han":
            return f"{self.han_prefix}{_pick(self.han_first, key, 0)}{_pick(self.han_second, key, 1)}"
        if script == "arabic":
            return f"{self.arabic_prefix} {_pick(self.arabic_codes, key, 0)}"
        return f"{self.prefix} {self._code(key)}"

    def email(self, key: str) -> str:
        """Return the placeholder of an address."""
        return f"{self._code(key).lower()}@{self.email_domain}"

    def _code(self, key: str) -> str:
        return f"{_pick(self.codes, key, 0)}-{_pick(self.codes, key, 1)}"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What matches every placeholder and nothing else."""
        code = "(?:" + "|".join(map(re.escape, self.codes)) + ")"
        arabic = "|".join(map(re.escape, self.arabic_codes))
        return re.compile(
            rf"\b{self.prefix} {code}-{code}\b|\b{code}-{code}@{re.escape(self.email_domain)}"
            rf"|{self.han_prefix}[{self.han_first}][{self.han_second}]|{self.arabic_prefix} (?:{arabic})\b",
            re.IGNORECASE,
        )


def _pick(items: str | tuple[str, ...], key: str, place: int) -> str:
    digest = hashlib.sha256(f"{place}:{key}".encode()).digest()
    return items[int.from_bytes(digest[:8], "big") % len(items)]


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All lists of the file; those that the file holds as running text are split where they are used."""

    schema_version: int
    placeholders: Placeholders
    labels: tuple[str, ...]
    honorifics: tuple[str, ...]
    cues: tuple[str, ...]
    particles: tuple[str, ...]
    not_names: str
    weak_names: str
    han_family_names: str
    han_double_family_names: tuple[str, ...]
    han_titles: tuple[str, ...]
    han_cues: tuple[str, ...]
    han_not_names: tuple[str, ...]
    han_stops: str
    arabic_given_names: tuple[str, ...]
    arabic_titles: tuple[str, ...]
    arabic_connectors: tuple[str, ...]
    arabic_stops: str


def read_vocabulary(path: Path) -> Vocabulary:
    """Return a vocabulary; raises ConfigError, naming file and key, for what does not belong there."""
    try:
        return msgspec.convert(read_plain(path), Vocabulary)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: the vocabulary of the entity substitution is missing") from error
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from error


@cache  # every cell of a grid makes its own object
def shipped_vocabulary(resources: str = "resources") -> Vocabulary:
    """Return the vocabulary that ships."""
    return read_vocabulary(resource_folder(resources) / "defenses" / "lprag.yaml")


def name_words(vocabulary: Vocabulary) -> frozenset[str]:
    """Return, case-folded, the words of names and placeholders that the defense knows; no canary may use one."""
    put = vocabulary.placeholders
    words = {put.prefix, *put.codes, put.han_prefix, put.arabic_prefix, *put.arabic_codes}
    words |= {*vocabulary.arabic_given_names, *vocabulary.han_double_family_names, *vocabulary.weak_names.split()}
    return frozenset(word.casefold() for word in words | set("".join(vocabulary.han_family_names.split())))
