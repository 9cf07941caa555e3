"""The default `config.yaml` and the JSON schema, generated from the typed settings."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import yaml
from pydantic import BaseModel

from mragaudit.config.load import section_model
from mragaudit.config.settings import Settings

HEADER = """\
# Defaults of every key, generated from the sections in src/mragaudit/config (`mragaudit config --write`).
# Leave this file as it is; put what differs in a file of your own and lay it on top:
#   snakemake --cores all --configfile my.yaml
"""


def render_config() -> str:
    """Return the text of config.yaml: every key with its description and default."""
    return render_defaults(Settings, header=HEADER)


def render_defaults(model: type[BaseModel], *, header: str) -> str:
    """Return a YAML file of a model's defaults, every key with its description."""
    defaults = model().model_dump(mode="json")
    return header + "\n".join(_section_lines(model, defaults, indent=0)) + "\n"


def render_schema(model: type[BaseModel] = Settings) -> str:
    """Return the text of the JSON schema (draft 2020-12) of a config file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _section_lines(model: type[BaseModel], values: dict[str, Any], *, indent: int) -> list[str]:
    lines: list[str] = []
    for key, field in model.model_fields.items():
        lines += _comment(field.description or "", indent=indent)
        section = section_model(model, key)
        if section is None or not values[key]:
            lines.append(" " * indent + f"{key}: {_inline(values[key])}")
        else:
            lines.append(" " * indent + f"{key}:")
            lines += _section_lines(section, values[key], indent=indent + 2)
        if indent == 0:
            lines.append("")
    return lines


def _comment(text: str, *, indent: int) -> list[str]:
    pad = " " * indent
    return textwrap.wrap(text, width=108, initial_indent=f"{pad}# ", subsequent_indent=f"{pad}# ")


def _inline(value: object) -> str:
    """Return a value as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n...\n").strip()
