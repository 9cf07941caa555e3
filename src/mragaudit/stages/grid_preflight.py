"""What can be known to be wrong with a grid before its first job starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.config.hook_audit_section import HookAudit
from mragaudit.corpus.grid_templates import load_canary_templates, load_domain, load_grid_templates
from mragaudit.corpus.pubmedqa import CORPUS as PUBMEDQA
from mragaudit.corpus.pubmedqa import read_articles, usable_articles
from mragaudit.defenses.arms import make_arm
from mragaudit.errors import ConfigError
from mragaudit.grid.cells import arms_by_name
from mragaudit.grid.realisations import CANARY_CORPUS
from mragaudit.prompts import load_generator
from mragaudit.registry import create, plugin
from mragaudit.resources import resource_folder
from mragaudit.stages.grid_calls import CORPORA, LANGUAGE
from mragaudit.stages.models import require_options

ROLES = ("generator", "attacker")
"""Language models of the grid."""


def check_grid(settings: Settings) -> None:
    """Raise a clear error, naming the config key, for a grid that cannot succeed."""
    grid = settings.hook_audit
    require_options(settings, roles=ROLES)
    _require_writers(settings)
    _require_options(grid)
    _require_corpora(settings)


@contextmanager
def _at(key: str) -> Iterator[None]:
    """Name the config key in whatever ConfigError is raised within."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f'config key "{key}": {error}') from error


def _require_writers(settings: Settings) -> None:
    for name in ROLES:
        backend = getattr(settings.roles, name).backend
        found = plugin("llm", backend)
        if found.translates_only or found.classifies_only:
            able = "translate" if found.translates_only else "name the class of a text"
            raise ConfigError(f'config key "roles.{name}.backend" is "{backend}", which can only {able}')


def _require_options(grid: HookAudit) -> None:
    """Make every attack and every arm once: the config knows their names, only they know their options."""
    probes = (grid.adaptive.fixed_attack, *grid.adaptive.probes)
    for attack in dict.fromkeys((*grid.attacks, grid.canaries.attack, *probes, *grid.attack_options)):
        with _at("hook_audit.attack_options"):
            create("attack", attack, options=grid.attack_options.get(attack, {}))
    with _at("hook_audit.defense_options"):
        for arm in arms_by_name(grid).values():
            make_arm(arm, k=grid.k, public_threshold=0.0, options=grid.defense_options)


def _require_corpora(settings: Settings) -> None:
    """Read templates, prompts and PubMedQA's file as the stages will."""
    grid, resources = settings.hook_audit, resource_folder(settings.resources)
    load_generator(resources / "prompts", LANGUAGE)
    for corpus in sorted(_corpora(grid)):
        load_domain(resources / CORPORA, corpus)
        if corpus != PUBMEDQA:
            load_grid_templates(resources / CORPORA, corpus)
    if grid.pubmedqa is not None and PUBMEDQA in grid.corpora:
        with _at("hook_audit.pubmedqa"):
            usable_articles(read_articles(Path(grid.pubmedqa)), n_documents=grid.indexed + grid.held_out)
    if grid.canaries.classes:
        load_canary_templates(resources / CORPORA)
        if grid.k > grid.canaries.per_seed:
            raise ConfigError(
                f'config key "hook_audit.k" is {grid.k} and hook_audit.canaries.per_seed {grid.canaries.per_seed}; '
                "k documents are taken from so many"
            )


def _corpora(grid: HookAudit) -> set[str]:
    adaptive = [grid.adaptive.corpus] if grid.adaptive.probes else []
    canaries = [CANARY_CORPUS] if grid.canaries.classes else []
    return {*grid.corpora, *adaptive, *canaries}
