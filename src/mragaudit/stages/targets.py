"""Which parts of the workflow a command asks for: each has its own checks before the first job, and its own plan."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

from mragaudit.errors import ConfigError, did_you_mean

Part = Literal["audit", "hook_audit"]

GRID_FOLDER = "hook_audit"
_OF_THE_GRID = (GRID_FOLDER, "grid_")


RULES = frozenset(
    "all corpus queries translate backtranslate index retrieve calibrate judge generate filter score aggregate figures "
    "manifest report bundle monitor monitor_traffic monitor_log monitor_replay monitor_closed_loop monitor_tables "
    "monitor_page hook_audit grid_plan grid_documents grid_hooks grid_calls grid_scores grid_tables grid_manifest "
    "grid_page hook_audit_bundle".split()
)
"""Names of the rules in the Snakefile, all of which may be asked for."""


def require_targets(targets: Iterable[str]) -> None:
    """Raise ConfigError for what is neither a rule nor the path of a result: Snakemake would refuse it.

    A config file that is taken for a target would be left out of the plan without a word.
    """
    for target in targets:
        if PurePosixPath(target).suffix in {".yaml", ".yml"}:
            raise ConfigError(f'"{target}" is no target; a config is given as: --configfile {target}')
        if "/" not in target and target not in RULES:
            raise ConfigError(f'"{target}" is no target; {did_you_mean(target, RULES)}')


def asked_parts(targets: Iterable[str]) -> frozenset[Part]:
    """Return the parts that rules or files belong to; the staged audit where none is named, as Snakemake has it.

    The monitor's replay is made from an audit, so it asks for one.
    """
    parts: frozenset[Part] = frozenset(_part(target) for target in targets)
    return parts or frozenset({"audit"})


def _part(target: str) -> Part:
    if "/" in target:
        return "hook_audit" if GRID_FOLDER in PurePosixPath(target).parts else "audit"
    return "hook_audit" if target.startswith(_OF_THE_GRID) else "audit"
