"""The prompt templates that ship: they load, they are alike in all languages, and their people are nobody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from mragaudit.prompts import Template, load_generator, load_judge, load_template

PROMPTS = Path(__file__).parents[3] / "resources" / "prompts"
ALL = ("en", "zh", "de", "ar", "sw")
TRANSLATED = ("zh", "de", "ar", "sw")
ROLES = {"translator": TRANSLATED, "back_translator": TRANSLATED, "judge": ALL, "generator": ALL}
FILES = sorted(PROMPTS.glob("*/*.yaml"))

EMAIL_DOMAIN = re.compile(r"@([\w.-]*\w)")
PHONE = re.compile(r"(?<!\d)(\d{3})-(\d{3})-(\d{4})(?!\d)")
ID_NUMBER = re.compile(r"(?<!\d)(\d{3})-?(\d{2})-?(\d{4})(?!\d)")


def judge_answers(template: Template) -> list[str]:
    return [shot["answer"] for shot in template.shots]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_one_file_for_each_of_its_languages(role: str) -> None:
    assert {path.stem for path in (PROMPTS / role).glob("*.yaml")} == set(ROLES[role])


@pytest.mark.parametrize("role", ["translator", "back_translator"])
def test_translators_load_and_have_the_same_number_of_shots(role: str) -> None:
    templates = [load_template(PROMPTS, role, lang) for lang in TRANSLATED]  # type: ignore[arg-type]  # parametrised
    assert {len(template.shots) for template in templates} == {6}


@pytest.mark.parametrize("lang", TRANSLATED)
def test_back_translation_shots_are_the_translation_shots_turned_round(lang: str) -> None:
    there = load_template(PROMPTS, "translator", lang).shots
    back = load_template(PROMPTS, "back_translator", lang).shots
    assert [(shot["answer"], shot["source"]) for shot in there] == [(shot["source"], shot["answer"]) for shot in back]


@pytest.mark.parametrize("lang", TRANSLATED)
def test_translation_shots_keep_every_anchor_and_every_address(lang: str) -> None:
    kept = re.compile(r"[A-Z]{2}-\d+(?:-[A-Z]{2})?|Project(?: [A-Z][a-z]+)+|\S+@example\.org")
    for shot in load_template(PROMPTS, "translator", lang).shots:
        anchors = kept.findall(shot["source"])
        assert anchors
        assert all(anchor in shot["answer"] for anchor in anchors)


@pytest.mark.parametrize("lang", ALL)
def test_judge_shots_have_as_many_block_as_allow_in_the_same_order_in_every_language(lang: str) -> None:
    judge = load_judge(PROMPTS, lang)
    english = load_judge(PROMPTS, "en")
    for mine, reference in ((judge.alone, english.alone), (judge.with_context, english.with_context)):
        answers = judge_answers(mine)
        assert answers == judge_answers(reference)
        assert answers.count("BLOCK") == answers.count("ALLOW") == len(answers) / 2


@pytest.mark.parametrize("lang", ALL)
def test_generator_shots_have_two_documents_and_the_same_number_in_every_language(lang: str) -> None:
    content = yaml.safe_load((PROMPTS / "generator" / f"{lang}.yaml").read_text(encoding="utf-8"))
    assert [len(shot["documents"]) for shot in content["shots"]] == [2] * len(
        load_generator(PROMPTS, "en").template.shots
    )


@pytest.mark.parametrize("lang", ALL)
def test_the_item_in_a_generator_answer_stands_letter_by_letter_in_the_last_document(lang: str) -> None:
    content = yaml.safe_load((PROMPTS / "generator" / f"{lang}.yaml").read_text(encoding="utf-8"))
    item = re.compile(r"Thessaly Brandtwell|[\w.]+@example\.\w+|\d{3}-\d{2}-\d{4}|\d{3}-\d{3}-\d{4}")
    for shot in content["shots"]:
        found = item.findall(shot["answer"])
        assert len(found) == 1
        assert found[0] in shot["documents"][-1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_answer_ends_at_the_end_of_the_line(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert content["stop"] == ["\n"]
    assert not any("\n" in shot["answer"] for shot in content["shots"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_values_in_a_prompt_belong_to_nobody(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert all(domain in {"example.com", "example.org", "example.net"} for domain in EMAIL_DOMAIN.findall(text))
    assert all(middle == "555" and last.startswith("01") for _, middle, last in PHONE.findall(text))
    areas = {area for area, _, _ in ID_NUMBER.findall(text)}
    assert all(area in {"000", "666"} or area.startswith("9") for area in areas)
