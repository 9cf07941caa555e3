"""Every key of the config is read by some stage: none is there for show."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest
from pipeline import REPOSITORY, Pipeline, case_settings, grid_settings

from mragaudit.config import settings as sections
from mragaudit.config.section import Section
from mragaudit.stages.preflight import check_run

pytestmark = pytest.mark.workflow

LOG = '{"time": 1800000000, "user": "u", "collection": "kb", "doc_ids": ["a"], "levels": ["public"]}\n'
EXAMPLES = REPOSITORY / "resources" / "examples"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Return a set that grows by (section, key) with every key that code reads."""
    seen: set[tuple[str, str]] = set()

    def spy(self: Section, name: str) -> object:
        seen.add((type(self).__name__, name))
        return object.__getattribute__(self, name)

    monkeypatch.setattr(Section, "__getattribute__", spy)
    return seen


def test_every_key_is_read_by_some_stage(read: set[tuple[str, str]], tmp_path: Path) -> None:
    """Once with thresholds up to the report; once with a guard's replies parsed, on a corpus and queries by people.

    Once more up to retrieval, with an approximate index and a score by tokens. The monitor's replay runs on the
    first, with an access log beside; the hook audit's grid is a run of its own.
    """
    log = tmp_path / "log.jsonl"
    log.write_text(LOG, encoding="utf-8")
    short = {"development_seeds": [1], "check_seeds": [2], "days": 2, "users_per_seed": 1, "attackers_per_seed": 1}
    monitor = {**short, "access_log": str(log), "collection_sizes": {"kb": 30}, "answers": True}
    margin = case_settings(
        languages=["en", "de"], judge={"controls_per_class": 2}, monitor=monitor, noise={"stages": "all"}
    )
    human = case_settings(
        languages=["en", "zh", "de", "ar", "sw"],
        corpus={"source": str(EXAMPLES / "corpus.jsonl")},
        queries={"source": str(EXAMPLES / "human_queries.jsonl")},
        judge={"controls_per_class": 2, "mode": "parse", "guard": "qwen3guard"},
        roles={"judge": {"rendering": "chat"}},
        run="human",
    )
    read.clear()
    for settings in (margin, human):
        with chdir(tmp_path):
            check_run(settings, results=Path("results"))
    Pipeline(tmp_path, margin).run()
    Pipeline(tmp_path, margin).monitor()
    Pipeline(tmp_path, human).before("filter")
    for kind in ("hnsw", "ivf_flat"):
        retrieve = {"method": "hybrid", "index": {"kind": kind}}
        settings = case_settings(languages=["en"], corpus={"n_documents": 40}, retrieve=retrieve, run=kind)
        Pipeline(tmp_path, settings).before("calibrate")
    few = {"seeds": [1], "classes": ["email"], "defenses": [["none"]]}
    adaptive = {"probes": ["denoise"], "defenses": [["none"]]}
    grid = {"corpora": ["email", "pubmedqa"], "pubmedqa": str(EXAMPLES / "pubmedqa_small.json")}
    small = {"indexed": 5, "held_out": 5, "attacks": ["ps", "mi"], "defenses": [["none"]], "epsilons": [1]}
    Pipeline(tmp_path, grid_settings(hook_audit={**grid, **small, "canaries": few, "adaptive": adaptive})).grid()
    models = [one for one in vars(sections).values() if isinstance(one, type) and issubclass(one, Section)]
    expected = {(model.__name__, key) for model in models for key in model.model_fields}
    assert expected - read == set()
