"""Stage `grid_hooks`: where the grid's defenses act, by their source and by running them in a sandbox."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from mragaudit.config import Settings
from mragaudit.errors import DataError, MissingPackageError
from mragaudit.grid.hooks import HookFindings
from mragaudit.hookaudit.inventory import audit_path
from mragaudit.hookaudit.maps import shipped_maps
from mragaudit.hookaudit.probe.run import probe_inventory
from mragaudit.provenance import PACKAGE_ROOT
from mragaudit.records.base import write_bytes

logger = logging.getLogger(__name__)

DEFENSES = PACKAGE_ROOT / "defenses"
OWN_MAP = "own"


def run(*, hooks: Path, settings: Settings) -> None:
    """Write `hook_audit/hooks.json`; where no sandbox works the probe is left out, and says so."""
    maps = tuple(one for one in shipped_maps(settings.resources) if one.name == OWN_MAP)
    inventory = audit_path(DEFENSES, maps)
    observations, not_probed = None, ""
    try:
        observations = probe_inventory(DEFENSES, inventory)
    except MissingPackageError as error:
        not_probed = str(error)
        logger.warning("grid_hooks: nothing probed: %s", error)
    # The place of the package differs from machine to machine and is no finding.
    named = msgspec.structs.replace(inventory, root=f"{PACKAGE_ROOT.name}/{DEFENSES.name}")
    found = HookFindings(inventory=named, observations=observations, not_probed=not_probed)
    write_bytes(hooks, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def read_hooks(path: Path) -> HookFindings:
    """Return what `run` wrote; raises DataError naming the file where it is none of ours."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=HookFindings)
    except FileNotFoundError as error:
        raise DataError(f"{path}: this file is missing; run the stage grid_hooks") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error
