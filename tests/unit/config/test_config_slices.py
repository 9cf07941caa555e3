"""Every key of the config counts somewhere, and each stage sees its own keys alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from mragaudit.config import Settings, load_settings, settings_from_slice, settings_slice
from mragaudit.config.load import merge, section_model
from mragaudit.config.render import render_config, render_schema
from mragaudit.config.slices import STAGE_KEYS
from mragaudit.errors import ConfigError

REPOSITORY = Path(__file__).parents[3]

# Another value for every leaf of the config; a role's fields stand once.
OTHER: dict[str, Any] = {
    "run": "other",
    "resources": "other",
    "seed": 1,
    "shards": 7,
    "languages": ["en", "de"],
    "allow_remote": True,
    "corpus.source": "x.csv",
    "corpus.personal_data": "real",
    "corpus.n_documents": 25,
    "corpus.min_words": 31,
    "corpus.max_words": 99,
    "corpus.n_facts": 3,
    "queries.source": "x.csv",
    "queries.paraphrases": ["direct"],
    "queries.benign_per_document": 2,
    "translate.protect_anchors": True,
    "translate.max_tokens": 7,
    "backtranslate.max_tokens": 7,
    "retrieve.k": 1,
    "retrieve.method": "sparse",
    "retrieve.candidates": 9,
    "retrieve.weights.dense": 0.5,
    "retrieve.weights.sparse": 0.5,
    "retrieve.weights.multi_vector": 0.5,
    "retrieve.index.kind": "hnsw",
    "retrieve.index.nlist": 7,
    "retrieve.index.nprobe": 7,
    "retrieve.index.m": 7,
    "retrieve.index.ef_construction": 7,
    "retrieve.index.ef_search": 7,
    "retrieve.index.recall_queries": 7,
    "judge.variants": ["english"],
    "judge.mode": "parse",
    "judge.guard": "qwen3guard",
    "judge.guard_reading": "loose",
    "judge.false_positive_rate": 0.25,
    "judge.context_tokens": 77,
    "judge.max_tokens": 7,
    "judge.english_controls_per_class": 3,
    "judge.controls_per_class": 3,
    "generate.context_order": "best_first",
    "generate.max_tokens": 7,
    "filter.variants": ["regex_ascii"],
    "noise.stages": "all",
    "noise.trials": 7,
    "statistics.resamples": 123,
    "statistics.confidence": 0.9,
    "monitor.settings": "x.yaml",
    "monitor.traffic": "x.yaml",
    "monitor.store": "redis://x",
    "monitor.development_seeds": [7],
    "monitor.check_seeds": [8],
    "monitor.days": 7,
    "monitor.users_per_seed": 7,
    "monitor.attackers_per_seed": 7,
    "monitor.access_log": "x.csv",
    "monitor.collection_sizes": {"kb": 7},
    "monitor.answers": True,
    "monitor.false_alarm_budgets": [0.7],
    "monitor.sweep.max_queries": [7],
    "monitor.sweep.coverage_share": [0.7],
    "monitor.sweep.sensitivity_share": [0.7],
    "monitor.sweep.throttle_at": [0.6],
    "monitor.sweep.weights": [[1.0, 0.0, 0.0]],
    "hook_audit.corpora": ["business"],
    "hook_audit.pubmedqa": "x.json",
    "hook_audit.pubmedqa_in_order": True,
    "hook_audit.seeds": [7],
    "hook_audit.indexed": 7,
    "hook_audit.held_out": 7,
    "hook_audit.min_words": 31,
    "hook_audit.max_words": 77,
    "hook_audit.modes": ["in_domain_queries"],
    "hook_audit.defenses": [["none"], ["pad"]],
    "hook_audit.epsilons": [0.7],
    "hook_audit.defense_options": {"ca_dp": {"horizon": 7}},
    "hook_audit.attacks": ["ps"],
    "hook_audit.attack_options": {"ikea": {"max_thoughts": 7}},
    "hook_audit.budget": 7,
    "hook_audit.benign_questions": 7,
    "hook_audit.membership.members": 7,
    "hook_audit.membership.non_members": 7,
    "hook_audit.membership.questions": 2,
    "hook_audit.canaries.classes": ["phone"],
    "hook_audit.canaries.seeds": [7],
    "hook_audit.canaries.per_seed": 7,
    "hook_audit.canaries.held_out": 7,
    "hook_audit.canaries.defenses": [["none"], ["dp_r"]],
    "hook_audit.canaries.attack": "pm",
    "hook_audit.canaries.budget": 7,
    "hook_audit.adaptive.corpus": "business",
    "hook_audit.adaptive.mode": "in_domain_queries",
    "hook_audit.adaptive.probes": ["denoise"],
    "hook_audit.adaptive.fixed_attack": "pm",
    "hook_audit.adaptive.defenses": [["dp_r"]],
    "hook_audit.adaptive.development_seeds": [7, 8],
    "hook_audit.adaptive.check_seeds": [9],
    "hook_audit.adaptive.budget": 7,
    "hook_audit.k": 1,
    "hook_audit.max_tokens": 7,
    "hook_audit.tolerance": 0.3,
}
ROLE = {
    "backend": "scripted",
    "model": "echo",
    "sha256": None,
    "rendering": "chat",
    "context_tokens": 777,
    "attempts": 2,
    "options": {"x": 1},
}
EMBEDDER = {"backend": "hashing", "model": "trigrams", "options": {"x": 1}}
LANGUAGE_ROLES = ("translator", "back_translator", "judge", "generator", "attacker")
OTHER |= {f"roles.{role}.{key}": value for role in LANGUAGE_ROLES for key, value in ROLE.items()}
OTHER |= {f"roles.embedder.{key}": value for key, value in EMBEDDER.items()}

TOKENS = {"roles": {"embedder": EMBEDDER | {"options": {}}}}
"""What the methods of retrieval need that score by tokens."""

BEFORE_ANY_STAGE = {"allow_remote"}
"""Keys that decide whether a run may start, and change nothing in it."""


def _leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for key in model.model_fields:
        section = section_model(model, key)
        if section is None:
            yield prefix + key
        else:
            yield from _leaves(section, f"{prefix}{key}.")


def _with(path: str) -> Settings:
    config: Any = OTHER[path]
    for key in reversed(path.split(".")):
        config = {key: config}
    return load_settings(merge(_base(path).model_dump(mode="json"), config))


def _base(path: str) -> Settings:
    return load_settings(TOKENS if path == "retrieve.method" else {})


def _changed_stages(path: str) -> set[str]:
    default, other = _base(path), _with(path)
    return {stage for stage in STAGE_KEYS if settings_slice(default, stage) != settings_slice(other, stage)}


def test_another_value_is_tried_for_every_key() -> None:
    assert set(_leaves(Settings)) == set(OTHER)


@pytest.mark.parametrize("path", sorted(OTHER))
def test_every_key_changes_what_some_stage_is_given(path: str) -> None:
    assert bool(_changed_stages(path)) == (path not in BEFORE_ANY_STAGE)


@pytest.mark.parametrize(
    ("path", "stages"),
    [
        ("statistics.resamples", {"aggregate", "monitor_tables", "monitor_page", "grid_tables", "grid_page"}),
        ("generate.max_tokens", {"generate", "judge", "grid_calls"}),
        ("judge.guard_reading", {"queries", "calibrate", "judge", "score", "aggregate", "figures"}),
        ("translate.max_tokens", {"translate"}),
        ("monitor.false_alarm_budgets", {"monitor_tables", "monitor_page"}),
        ("monitor.store", {"monitor_replay", "monitor_closed_loop", "monitor_tables", "monitor_page"}),
        ("backtranslate.max_tokens", {"backtranslate"}),
        ("roles.generator.model", {"generate", "figures", "grid_calls", "grid_page"}),
        ("roles.attacker.model", {"figures", "grid_calls", "grid_page"}),
        ("roles.translator.model", {"translate", "figures", "grid_page"}),
        ("roles.embedder.model", {"backtranslate", "index", "retrieve", "figures", "grid_calls", "grid_page"}),
    ],
)
def test_a_key_reaches_the_stages_that_use_it_and_no_others(path: str, stages: set[str]) -> None:
    assert _changed_stages(path) == stages


@pytest.mark.parametrize("stage", STAGE_KEYS)
def test_a_stage_reads_its_own_keys_and_stumbles_over_others(stage: str) -> None:
    settings = Settings()
    seen = settings_from_slice(settings_slice(settings, stage))
    given = {path.partition(".")[0] for path in STAGE_KEYS[stage]}
    for key in Settings.model_fields:
        if key in STAGE_KEYS[stage]:
            assert getattr(seen, key) == getattr(settings, key)
        elif key not in given:
            with pytest.raises(AttributeError):
                getattr(seen, key)


def test_a_stage_sees_the_keys_of_a_section_that_it_uses_alone() -> None:
    seen = settings_from_slice(settings_slice(Settings(), "monitor_replay")).monitor
    assert (seen.settings, seen.store) == (None, "memory://")
    with pytest.raises(AttributeError):
        _ = seen.false_alarm_budgets


@pytest.mark.parametrize("stage", ["translate", "backtranslate", "index", "calibrate", "judge", "generate"])
def test_a_stage_sees_its_own_roles_alone(stage: str) -> None:
    settings = Settings()
    seen = settings_from_slice(settings_slice(settings, stage)).roles
    given = {path.partition(".")[2] for path in STAGE_KEYS[stage] if path.startswith("roles.")}
    for role in (*LANGUAGE_ROLES, "embedder"):
        if role in given:
            assert getattr(seen, role) == getattr(settings.roles, role)
        else:
            with pytest.raises(AttributeError):
                getattr(seen, role)


def test_a_slice_that_does_not_fit_is_refused_by_key() -> None:
    with pytest.raises(ConfigError, match='config key "shards"'):
        settings_from_slice({"shards": "two"})


def test_the_config_file_and_the_schema_are_what_the_settings_say() -> None:
    assert (REPOSITORY / "config.yaml").read_text(encoding="utf-8") == render_config()
    assert (REPOSITORY / "resources" / "config.schema.json").read_text(encoding="utf-8") == render_schema()


def test_the_generated_config_holds_the_defaults_with_a_comment_on_every_key() -> None:
    text = render_config()
    assert load_settings(yaml.safe_load(text)) == Settings()
    lines = text.split("\n")
    keys = [number for number, line in enumerate(lines) if line and not line.lstrip().startswith("#")]
    assert len(keys) == len(OTHER) + 19 + 6  # nineteen sections, six roles
    assert [lines[number] for number in keys if not lines[number - 1].lstrip().startswith("#")] == []


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / "resources" / "configs").glob("*.yaml")), ids=lambda path: path.name
)
def test_every_config_that_ships_is_accepted(path: Path) -> None:
    assert load_settings(yaml.safe_load(path.read_text(encoding="utf-8"))).run
