"""What figures and report share: languages, models, and the published figures where they may stand beside."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mragaudit.config import Role, Settings
from mragaudit.corpus.languages import load_language
from mragaudit.errors import DataError
from mragaudit.plainyaml import read_plain
from mragaudit.report.model import (
    Language,
    PublishedFigures,
    RoleModel,
    names_published_models,
    published_from,
)
from mragaudit.resources import resource_folder
from mragaudit.stages.models import LANGUAGE_ROLES

PACKAGE_PREFIX = "package:"


def languages_of(settings: Settings) -> tuple[Language, ...]:
    """Return the query languages with their names and writing directions."""
    folder = resource_folder(settings.resources) / "languages"
    found = [load_language(folder, lang) for lang in settings.languages]
    return tuple(Language(code=one.lang, name=one.name, direction=one.direction) for one in found)


def models_of(settings: Settings) -> tuple[RoleModel, ...]:
    """Return the model of every role, with its licence where `resources/versions.csv` names it."""
    licences = _licences(resource_folder(settings.resources) / "versions.csv")
    models = [_language_model(name, getattr(settings.roles, name), licences) for name in LANGUAGE_ROLES]
    embedder = settings.roles.embedder
    name = embedder.model.removeprefix(PACKAGE_PREFIX)
    return (
        *models,
        RoleModel(
            role="embedder",
            backend=embedder.backend,
            model=name,
            revision="",
            licence=licences.get(name, ""),
            embedded=embedder.model.startswith(PACKAGE_PREFIX),
        ),
    )


def _language_model(role: str, given: Role, licences: dict[str, str]) -> RoleModel:
    name = given.model.removeprefix(PACKAGE_PREFIX)
    return RoleModel(
        role=role,
        backend=given.backend,
        model=name,
        revision=given.sha256 or "",
        licence=licences.get(name, ""),
        embedded=given.model.startswith(PACKAGE_PREFIX),
    )


def _licences(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as handle:
        return {_package(row["name"]): row["licence"] for row in csv.DictReader(handle)}


def _package(name: str) -> str:
    """Return the package of an entry: `file (package x)` is x."""
    _, found, package = name.partition("(package ")
    return package.rstrip(")") if found else name


def published_beside(settings: Settings) -> PublishedFigures | None:
    """Return the published figures where every role runs the published model, with what else differs; else None."""
    path = resource_folder(settings.resources) / "published" / "figures.yaml"
    if not path.is_file():
        return None
    published = published_from(read_plain(path))
    if not names_published_models(published, models_of(settings)):
        return None
    return msgspec.structs.replace(published, differences=tuple(_differences(published, settings)))


def _differences(published: PublishedFigures, settings: Settings) -> Iterator[str]:
    """Yield the keys that the publication states and this run sets otherwise; a key that is not ours is a DataError."""
    for key, value in published.settings.items():
        section, _, name = key.partition(".")
        try:
            own = getattr(getattr(settings, section), name) if name else getattr(settings, section)
        except AttributeError as error:
            raise DataError(f'published/figures.yaml: settings: "{key}" is no key of the config') from error
        if _plain(own) != value:
            yield f"{key} is {_plain(own)}, published {value}"


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def default_judge(settings: Settings) -> str:
    """Return the judge variant of the headline: `english` as published, else the first that runs."""
    variants = settings.judge.variants
    return "english" if "english" in variants or not variants else variants[0]


def default_filter(settings: Settings) -> str:
    """Return the filter variant of the headline: `regex_ascii` as published, else the first that runs."""
    variants = settings.filter.variants
    return "regex_ascii" if "regex_ascii" in variants or not variants else variants[0]
