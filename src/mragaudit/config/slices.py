"""Which settings each stage uses: the part that decides whether its files are out of date."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from mragaudit.config.hook_audit_section import HookAudit
from mragaudit.config.load import section_model
from mragaudit.config.section import Section
from mragaudit.config.settings import Settings
from mragaudit.errors import ConfigError

# What a grid's calls are made from; how far a metric may move and still count as not moved is judged later.
GRID_KEYS = tuple(f"hook_audit.{name}" for name in HookAudit.model_fields if name != "tolerance")

# Every stage sees these keys and no others: reading another one raises AttributeError in the stage,
# so that no result can depend on a setting whose change would not rerun the rule.
STAGE_KEYS: dict[str, tuple[str, ...]] = {
    "corpus": ("seed", "resources", "corpus", "run"),
    "queries": ("resources", "languages", "corpus", "queries", "judge", "shards"),
    "translate": ("seed", "resources", "languages", "translate", "noise", "roles.translator"),
    "backtranslate": (
        *("seed", "resources", "languages", "backtranslate", "noise"),
        *("roles.back_translator", "roles.embedder"),
    ),
    "index": ("seed", "roles.embedder", "retrieve"),
    "retrieve": ("retrieve", "roles.embedder"),
    "calibrate": ("resources", "judge", "roles.judge"),
    "judge": ("seed", "resources", "languages", "judge", "noise", "roles.judge", "generate"),
    "generate": ("seed", "resources", "languages", "generate", "noise", "roles.generator"),
    "score": ("resources", "languages", "judge", "filter", "shards"),
    "aggregate": ("seed", "resources", "languages", "judge", "filter", "retrieve", "queries", "statistics"),
    "figures": ("resources", "languages", "judge", "filter", "roles", "statistics.confidence"),
    "monitor_traffic": (
        *("seed", "resources", "languages", "monitor.settings", "monitor.traffic", "monitor.development_seeds"),
        *("monitor.check_seeds", "monitor.days", "monitor.users_per_seed", "monitor.attackers_per_seed"),
    ),
    "monitor_log": ("monitor.collection_sizes",),
    "monitor_replay": ("monitor.settings", "monitor.store"),
    "monitor_closed_loop": ("monitor.settings", "monitor.store"),
    "monitor_tables": ("resources", "languages", "statistics", "monitor"),
    "grid_plan": GRID_KEYS,
    "grid_documents": ("seed", "resources", *GRID_KEYS),
    "grid_hooks": ("resources",),
    "grid_calls": (
        *("seed", "resources", "shards", "generate", *GRID_KEYS),
        *("roles.generator", "roles.attacker", "roles.embedder"),
    ),
    "grid_scores": ("resources",),
    "grid_tables": ("seed", "resources", "hook_audit", "statistics"),
    "grid_page": ("run", "resources", "hook_audit", "statistics", "roles"),
    "monitor_page": ("run", "resources", "languages", "statistics", "monitor"),
}


def settings_slice(settings: Settings, stage: str) -> dict[str, Any]:
    """Return the plain-data part of the settings that a stage uses."""
    whole = settings.model_dump(mode="json")
    part: dict[str, Any] = {}
    for path in STAGE_KEYS[stage]:
        section, _, key = path.partition(".")
        if key:
            part.setdefault(section, {})[key] = whole[section][key]
        else:
            part[section] = whole[section]
    return part


def settings_from_slice(part: Mapping[str, Any]) -> Settings:
    """Return settings that hold only the keys of a slice; reading any other key raises AttributeError."""
    values: dict[str, Any] = {}
    for key, value in part.items():
        section = section_model(Settings, key)
        whole = section is None or set(value) == set(section.model_fields)
        values[key] = _field(Settings, key, value) if section is None or whole else _partial(section, value)
    return Settings.model_construct(_fields_set=set(values), **values).without_defaults(set(values))


def _partial(section: type[BaseModel], value: Mapping[str, Any]) -> BaseModel:
    """Return a section that holds only the keys given; reading any other raises AttributeError."""
    fields: dict[str, Any] = {name: _field(section, name, one) for name, one in value.items()}
    made = section.model_construct(_fields_set=set(fields), **fields)
    return made.without_defaults(set(fields)) if isinstance(made, Section) else made


def _field(model: type[BaseModel], name: str, value: object) -> object:
    annotation: Any = model.model_fields[name].annotation
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    try:
        return adapter.validate_json(json.dumps(value))
    except ValidationError as error:
        raise ConfigError(f'config key "{name}": {error}') from error
