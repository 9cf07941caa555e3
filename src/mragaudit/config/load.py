"""From mappings and files to checked settings, with errors that name the key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mragaudit.config.settings import Settings
from mragaudit.errors import ConfigError, did_you_mean
from mragaudit.plainyaml import RepeatedKeyError, read_plain

M = TypeVar("M", bound=BaseModel)


_WORDS = {
    "String should match pattern": "text that matches",
    "a valid string": "a text; put it in quotes",
    "a valid array": "a list, as [one, two]",
    "an object": "a mapping of keys to values",
}
"""How pydantic says it, which speaks of JSON, to how we say it."""


def load_settings(config: Mapping[str, Any]) -> Settings:
    """Return checked settings from a mapping such as Snakemake's `config`.

    Raises ConfigError with one line per fault: the key, what stands there, what would be right.
    """
    return validated(Settings, config)


def validated(model: type[M], values: Mapping[str, Any]) -> M:
    """Return a checked model from plain data; raises ConfigError with one line per fault, as `load_settings` does."""
    try:
        return model.model_validate_json(json.dumps(dict(values)))
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(detail, model) for detail in _causes(error.errors()))) from error
    except TypeError as error:
        raise ConfigError(_not_plain(values) or f"config: a value is not plain YAML data ({error})") from error


def read_settings(paths: list[Path]) -> Settings:
    """Return the settings of one or more YAML files, later ones overriding earlier ones key by key."""
    merged: dict[str, Any] = {}
    for path in paths:
        merged = merge(merged, read_yaml(path))
    return load_settings(merged)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `over` laid on top, section by section."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merge(old, value) if both else value  # type: ignore[arg-type]  # `both` has checked it
    return result


def read_yaml(path: Path) -> dict[str, Any]:
    """Return a YAML mapping, empty for an empty file; raises ConfigError naming the file."""
    try:
        content = read_plain(path)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such config file") from error
    except RepeatedKeyError as error:
        raise ConfigError(f"{path}, {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not readable as UTF-8 YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a config is a mapping of keys, not a {type(content).__name__}")
    return content


def _not_plain(value: object, key: str = "") -> str | None:
    """Return what to say of the first value that JSON has no form for, which YAML makes of `2024-01-01`."""
    if isinstance(value, date):
        return f'config key "{key}" is the date {value.isoformat()}; put it in quotes if it is a text'
    if isinstance(value, Mapping):
        members: Iterable[tuple[object, object]] = value.items()
    else:
        members = enumerate(value) if isinstance(value, list) else ()
    found = (_not_plain(member, f"{key}.{name}".removeprefix(".")) for name, member in members)
    return next(filter(None, found), None)


def _causes(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Return the faults less those lists that are too short only because an entry of theirs is at fault itself."""
    places = [detail["loc"] for detail in details]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(len(place) > len(detail["loc"]) and place[: len(detail["loc"])] == detail["loc"] for place in places)
    ]


def _explain(detail: ErrorDetails, model: type[BaseModel]) -> str:
    key = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        allowed = _keys_of_section(model, detail["loc"][:-1])
        return f'config key "{key}" is unknown; {did_you_mean(str(detail["loc"][-1]), allowed)}'
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    for pydantic, ours in _WORDS.items():
        message = message.replace(pydantic, ours)
    if detail["type"] == "too_short":
        least = detail["ctx"]["min_length"]
        return (
            f'config key "{key}" is {detail["input"]!r}; it needs at least {least} entr{"y" if least == 1 else "ies"}'
        )
    if detail["type"].startswith("value_error"):
        if not key:
            return f"config: {message}"  # keys that contradict each other, which the message names
        return f'config key "{key}": {message}'
    return f'config key "{key}" is {detail["input"]!r}; it should be {message}'


def _keys_of_section(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the allowed keys of the section at a location."""
    for part in location:
        if str(part) in model.model_fields:
            model = section_model(model, str(part)) or model
    return list(model.model_fields)


def section_model(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """Return the model of a sub-section (or of a mapping's values), None when the key holds a plain value."""
    annotation = model.model_fields[key].annotation
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
