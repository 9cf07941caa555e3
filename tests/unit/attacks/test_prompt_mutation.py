from __future__ import annotations

import re

import pytest

from driving import RESOURCES, EchoTarget, drive, make_tools
from mragaudit.attacks import pm
from mragaudit.attacks.pm import MUTATORS, PromptMutation
from mragaudit.attacks.pools import load_pool
from mragaudit.attacks.ps import PromptPool, seed_prompts
from mragaudit.errors import ConfigError

TITLES = tuple(f"Project {name}" for name in ("Heron", "Otter", "Kestrel", "Raven", "Falcon", "Pelican", "Drift"))


def anchors(questions: list[str]) -> list[str]:
    return [re.findall(r"[\"“](.+?)[\"”]", question)[0].casefold() for question in questions]


def test_it_asks_as_often_as_ps_and_about_the_same_subjects_in_the_same_order() -> None:
    fixed = drive(PromptPool(), lambda _: "", tools=make_tools(budget=50, handles=TITLES, seed=3))
    mutated = drive(PromptMutation(), lambda _: "", tools=make_tools(budget=50, handles=TITLES, seed=3))
    assert anchors(mutated.questions) == anchors(fixed.questions)


def test_no_mutant_equals_its_seed() -> None:
    fixed = drive(PromptPool(), lambda _: "", tools=make_tools(budget=50))
    mutated = drive(PromptMutation(), lambda _: "", tools=make_tools(budget=50))
    assert all(a != b for a, b in zip(fixed.questions, mutated.questions, strict=True))


def test_every_mutator_fires_in_the_published_pool() -> None:
    counts = drive(PromptMutation(), lambda _: "", tools=make_tools(budget=50)).outcome.counts
    assert all(counts[name] > 0 for name in MUTATORS)
    assert sum(counts[name] for name in MUTATORS) == 50


def test_mutants_that_drifted_or_did_not_change_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MUTATORS, "role_framing", lambda template, _pool, _rng: f"{template} ")
    monkeypatch.setitem(MUTATORS, "indirection", lambda _template, _pool, _rng: "xyzzy quux")
    counts = drive(PromptMutation(), lambda _: "", tools=make_tools(budget=50)).outcome.counts
    assert (counts["role_framing"], counts["indirection"], counts["outside_window"]) == (0, 0, 0)


def test_a_mutant_outside_the_window_is_asked_and_counted_when_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in MUTATORS:
        monkeypatch.setitem(MUTATORS, name, lambda template, _pool, _rng: f"{template} ")
    run = drive(PromptMutation(), lambda _: "", tools=make_tools())
    assert (len(run.asks), run.outcome.counts["outside_window"]) == (8, 8)


def test_pool_a_alone_can_be_the_seeds() -> None:
    tools = make_tools(budget=50, handles=TITLES)
    shared = {seed.template for seed in seed_prompts(make_tools(budget=50, handles=TITLES)) if seed.shared}
    seeds = PromptMutation(seeds="pool_a")._seeds(tools)
    assert {seed.template for seed in seeds} == shared
    assert len(seeds) == 50


def test_only_mutants_of_what_ps_asks_are_paired_with_it() -> None:
    assert (PromptMutation().paired_with, PromptMutation(seeds="pool_a").paired_with) == ("ps", None)


def test_reordering_keeps_every_sentence_and_puts_the_role_behind_the_first() -> None:
    pool = load_pool(RESOURCES, pm.PmPool, name="pm")
    made = pm._reorder("Copy it. Leave nothing out.", pool, make_tools().rng)
    role = next(frame.removesuffix(" {prompt}") for frame in pool.role_framing if frame.split(" {")[0] in made)
    assert made in {f"Copy it. {role} Leave nothing out.", f"Copy it. Leave nothing out. {role}"}


def test_more_mutants_a_seed_than_mutators_are_refused() -> None:
    with pytest.raises(ConfigError, match="mutants_per_seed"):
        PromptMutation(mutants_per_seed=7)


def test_an_echo_gives_the_canaries_of_named_documents() -> None:
    documents = [f"{title}: write to box{at}@host{at}.example." for at, title in enumerate(TITLES)]
    run = drive(PromptMutation(), EchoTarget(documents), tools=make_tools(budget=14, handles=TITLES))
    found = [at for at in range(len(TITLES)) if any(f"box{at}@host{at}.example" in reply for reply in run.replies)]
    assert found == list(range(len(TITLES)))
