"""The metric-to-channel map: which hooks a metric can see, as data."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import yaml

from mragaudit.errors import ConfigError, did_you_mean
from mragaudit.hookaudit.verdicts import HOOKS, Hook
from mragaudit.plainyaml import read_plain
from mragaudit.resources import resource_folder

Channel = Literal["text", "membership", "retrieval"]
Sight = Literal["interpretable", "indirect", "nuisance", "not_observable"]


class Metric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric, the channel that it reads, and what a change at each hook means for it."""

    name: str
    title: str
    channel: Channel
    observes: tuple[Hook, ...]
    through: dict[Hook, str] = {}
    """Hook → what its change goes through before the metric sees it."""
    nuisance: dict[Hook, str] = {}
    """Hook → why a movement says nothing of what the metric is meant to measure."""

    def __post_init__(self) -> None:
        named = [*self.observes, *self.through, *self.nuisance]
        twice = {hook for hook in named if named.count(hook) > 1}
        if twice:
            raise ValueError(f"{self.name}: {', '.join(sorted(twice))} stands in more than one of its lists")

    def sight(self, hook: Hook) -> Sight:
        """Return what the metric sees of a change at a hook."""
        if hook in self.observes:
            return "interpretable"
        if hook in self.through:
            return "indirect"
        return "nuisance" if hook in self.nuisance else "not_observable"


class MetricMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All metrics, in the order of the report."""

    schema_version: int
    metrics: tuple[Metric, ...]

    def metric(self, name: str) -> Metric:
        """Return a metric by name; raises ConfigError with the nearest name for an unknown one."""
        by_name = {metric.name: metric for metric in self.metrics}
        if name not in by_name:
            raise ConfigError(f'metric "{name}" is unknown; {did_you_mean(name, by_name)}')
        return by_name[name]


def read_metrics(path: Path) -> MetricMap:
    """Return a metric map; raises ConfigError, naming file and key, for what does not belong there."""
    try:
        found = msgspec.convert(read_plain(path), MetricMap)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: the metric map is missing") from error
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}; hooks are {', '.join(HOOKS)}") from error
    names = [metric.name for metric in found.metrics]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f'{path}: the metric "{name}" stands there twice')
    return found


def shipped_metrics(resources: str = "resources") -> MetricMap:
    """Return the metric map that ships."""
    return read_metrics(resource_folder(resources) / "hook_audit" / "metrics.yaml")
