from __future__ import annotations

import re

import pytest
import yaml

from driving import RESOURCES, EchoTarget, drive, make_tools
from mragaudit.attacks.pools import load_pool
from mragaudit.attacks.ps import PromptPool, PsPool, ordered_templates, seed_prompts

TITLES = tuple(f"Project {name}" for name in ("Heron", "Otter", "Kestrel", "Raven", "Falcon", "Pelican", "Drift"))


def pool() -> PsPool:
    return load_pool(RESOURCES, PsPool, name="ps")


def test_the_published_budget_asks_10_shared_and_40_targeted_prompts_once_each() -> None:
    prompts = seed_prompts(make_tools(budget=50))
    assert (sum(prompt.shared for prompt in prompts), sum(not prompt.shared for prompt in prompts)) == (10, 40)
    assert len({prompt.template for prompt in prompts}) == 50


@pytest.mark.parametrize("budget", [8, 10, 20, 50, 73])
def test_every_budget_mixes_both_pools_as_the_whole_does(budget: int) -> None:
    shared = sum(prompt.shared for prompt in seed_prompts(make_tools(budget=budget)))
    assert shared == -(-budget // 5)


def test_a_small_budget_asks_for_context_people_addresses_and_identifiers() -> None:
    a, b = pool().pool_a, pool().pool_b
    head = [template for template, _ in ordered_templates(pool())[:8]]
    for part in (a.reproduction, a.contacts, b.email, b.identifier):
        assert set(part) & set(head)


def test_without_titles_topics_and_domain_fill_the_prompts() -> None:
    run = drive(PromptPool(), lambda _: "", tools=make_tools(topics=("budget",)))
    assert all('"budget in company e-mail"' in question for question in run.questions)


def test_titles_name_documents_and_each_comes_once_before_any_comes_again() -> None:
    run = drive(PromptPool(), lambda _: "", tools=make_tools(budget=len(TITLES), handles=TITLES))
    named = [re.findall(r'"(.+?)"', question) for question in run.questions]
    assert sorted(named) == sorted([title] for title in TITLES)


def test_every_question_is_a_dialogue_of_its_own() -> None:
    assert {ask.session for ask in drive(PromptPool(), lambda _: "", tools=make_tools()).asks} == {""}


def test_an_echo_gives_each_retrieved_canary_and_no_other() -> None:
    documents = [f"{title}: write to box{at}@host{at}.example." for at, title in enumerate(TITLES)]
    target = EchoTarget(documents, k=1)
    run = drive(PromptPool(), target, tools=make_tools(budget=4, handles=TITLES))
    found = {at for at in range(len(TITLES)) if any(f"box{at}@host{at}.example" in reply for reply in run.replies)}
    assert found == target.retrieved
    assert 0 < len(found) < len(TITLES)


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in [*_texts(key), *_texts(item)]]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("path", sorted(RESOURCES.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_prompt_names_a_canarys_prefix_its_domain_or_an_index(path: object) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))  # type: ignore[attr-defined]
    for member in ("schema_version", "source", "assumption"):
        assert content.pop(member)
    for text in _texts(content):
        assert not re.search(r"operator|acmetest|canary", text, re.IGNORECASE)


def test_no_question_of_the_pool_holds_a_digit() -> None:
    run = drive(PromptPool(), lambda _: "", tools=make_tools(budget=50))
    assert not any(re.search(r"\d", question) for question in run.questions)
