# What all rules share: the config checked once, the slices that decide about reruns, the shard names, and what
# model jobs ask for.

from functools import partial
from pathlib import Path

from snakemake.exceptions import WorkflowError

from mragaudit.bundle.kinds import HOOK_AUDIT
from mragaudit.bundle.times import level_times
from mragaudit.config import load_settings, settings_slice, stage_needs
from mragaudit.errors import MragauditError
from mragaudit.paths import FIGURES, TABLES
from mragaudit.plainyaml import repeated_key
from mragaudit.provenance import source_digest
from mragaudit.records.repeats import REPEATED_STAGES
from mragaudit.registry import module_of, names
from mragaudit.resources import corpus_digest, guard_digest, languages_digest, prompts_digest, queries_digest
from mragaudit.stages.opening import unpacked_kind
from mragaudit.stages.plan import print_plan
from mragaudit.stages.preflight import check_run, require_models
from mragaudit.stages.readiness import print_lacking

# Snakemake keeps the last of two equal keys and says nothing, so `config` does not show them.
if twice := repeated_key(map(Path, workflow.configfiles)):
    raise WorkflowError(twice)

try:
    SETTINGS = load_settings(config)
    # What the command names is not known yet; what it asks for beyond the audit is checked in onstart.
    UNPACKED = unpacked_kind(Path())
    check_run(SETTINGS, results=Path("results"), targets=[UNPACKED.results_target] if UNPACKED is HOOK_AUDIT else [])
    if workflow.is_main_process and UNPACKED is not None:
        level_times(Path("results", SETTINGS.run))
except MragauditError as error:
    raise WorkflowError(str(error)) from None

RUN = f"results/{SETTINGS.run}"
SHARDS = list(SETTINGS.shard_names)
JUDGES = list(SETTINGS.judge.variants)
FILTERS = list(SETTINGS.filter.variants)
ATTACK_CODE = source_digest(*(module_of("attack", name) for name in names("attack")))
DEFENSE_CODE = source_digest(*(module_of("defense", name) for name in names("defense")))
BACKENDS = {name: module_of("embedder" if name == "embedder" else "llm", role.backend) for name, role in SETTINGS.roles}

used = partial(settings_slice, SETTINGS)
needs = partial(stage_needs, SETTINGS)
prompts = partial(prompts_digest, SETTINGS.resources, languages=SETTINGS.languages)
LANGUAGES = languages_digest(SETTINGS.resources, SETTINGS.languages)
GUARD = guard_digest(SETTINGS.resources, SETTINGS.judge.guard)


def threads(wildcards):
    """Return a share of this machine's cores, or four of another machine's.

    A job that is sent away is planned here and once more there, and has to come to the same number.
    """
    if workflow.non_local_exec or workflow.remote_exec:
        return 4
    return max(1, workflow.cores // SETTINGS.shards)


def grown(amount):
    """Return a resource that is as many times the amount as the job was tried."""
    return lambda wildcards, attempt: amount * attempt


wildcard_constraints:
    run=SETTINGS.run,
    shard=r"\d+-of-\d+",
    judge="|".join(JUDGES) or "none",
    filter="|".join(FILTERS) or "none",


def targets():
    """Return the rules and files that the command names; known once the rules are read."""
    return sorted(workflow.dag_settings.targets)


def refuse_hopeless(stages):
    """Stop before the first job of a run that cannot succeed.

    Snakemake deletes the files of a named stage before it runs: without its model package and a journal it can only
    fail, and those files would be lost.
    """
    try:
        check_run(SETTINGS, results=Path("results"), targets=targets())
        require_models(SETTINGS, stages=stages, results=Path("results"))
    except MragauditError as error:
        raise WorkflowError(str(error)) from None
