"""What the audit knows of a language beside its prompts: names, writing direction, months."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from mragaudit.corpus.yamlfiles import Node, load_yaml

Direction = Literal["ltr", "rtl"]
_MONTHS = 12
_FLORES = re.compile("[a-z]{3}_[A-Z][a-z]{3}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """One query language."""

    lang: str
    """BCP 47 tag."""
    name: str
    """English name."""
    native_name: str
    direction: Direction
    months: tuple[str, ...]
    """Twelve entries, January first: the month's name, then other accepted names, separated by `|`."""
    flores: str | None
    """FLORES-200 code, by which translation models know the language; None: no such model can be asked for it."""


def load_language(folder: Path, lang: str) -> Language:
    """Return the language described in `{folder}/{lang}.yaml`.

    Raises ConfigError naming the file when it is missing, DataError naming file and key of a bad entry.
    """
    top = load_yaml(folder / f"{lang}.yaml")
    members = top.mapping(required=("lang", "name", "native_name", "direction", "months"), optional=("flores",))
    members["lang"].choice([lang])
    months = members["months"].items(at_least=_MONTHS)
    if len(months) != _MONTHS:
        raise members["months"].error(f"{len(months)} months stand here; a year has {_MONTHS}")
    return Language(
        lang=lang,
        name=members["name"].text(),
        native_name=members["native_name"].text(),
        direction=cast("Direction", members["direction"].choice(("ltr", "rtl"))),
        months=tuple(_month_forms(month) for month in months),
        flores=_flores_code(members["flores"]) if "flores" in members else None,
    )


def _flores_code(node: Node) -> str:
    if not _FLORES.fullmatch(node.text()):
        raise node.error(f'"{node.text()}" is no FLORES-200 code; one looks like swh_Latn')
    return node.text()


def _month_forms(month: Node) -> str:
    return "|".join(month.texts()) if isinstance(month.value, list) else month.text()
