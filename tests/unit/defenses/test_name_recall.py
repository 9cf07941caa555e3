"""How many names the entity substitution finds, by language and script; the documentation prints these counts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from faker import Faker

from mragaudit.defenses.entity_substitution import EntitySubstitution

CARRIERS = yaml.safe_load((Path(__file__).parent / "name_carriers.yaml").read_text(encoding="utf-8"))
DOCS = Path(__file__).parents[3] / "docs" / "hook_audit" / "defenses.md"
KINDS = ("label", "title", "cue", "plain")
N_NAMES = 50
IN_ENGLISH = ("ru", "zh", "ja", "ko", "ar", "he", "hi")


@cache
def defense() -> EntitySubstitution:
    return EntitySubstitution()


def common_names(language: str) -> list[str]:
    entry = CARRIERS["names"][language]
    source = Faker(entry["locale"])
    source.seed_instance(1)
    drawn = [(source.first_name(), source.last_name()) for _ in range(N_NAMES)]
    return [entry["joiner"].join(pair[::-1] if entry.get("family_first") else pair) for pair in drawn]


def built_names(language: str) -> list[str]:
    entry, rng = CARRIERS["names"][language], np.random.default_rng(1)
    counts = (1, 2) if entry["joiner"] == "" else (2, 3)

    def word() -> str:
        return "".join(rng.choice(entry["syllables"], size=rng.integers(*counts, endpoint=True))).capitalize()

    return [entry["joiner"].join((word(), word())) for _ in range(N_NAMES)]


def is_gone(name: str, text: str) -> bool:
    """Whether neither the name nor a word of it remains, letter by letter."""
    words = [word for word in name.split() if len(word) > 2] if " " in name else [name]
    return not any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)" if " " in name else word, text) for word in words)


def found(names: list[str], carriers: list[str]) -> str:
    """How many of the names are gone, each in one of the sentences in turn."""
    texts = [carriers[number % len(carriers)].format(name=name) for number, name in enumerate(names)]
    gone = sum(is_gone(name, defense().substitute(text)) for name, text in zip(names, texts, strict=True))
    return f"{gone}/{len(names)}"


def rows() -> list[str]:
    lines = []
    for language in CARRIERS["carriers"]:
        for source, names in (("common", common_names(language)), ("built", built_names(language))):
            counts = [found(names, CARRIERS["carriers"][language][kind]) for kind in KINDS]
            lines.append(f"| {language} | {source} | {' | '.join(counts)} |")
    for language in IN_ENGLISH:
        for source, names in (("common", common_names(language)), ("built", built_names(language))):
            counts = [found(names, CARRIERS["carriers"]["en"][kind]) for kind in KINDS]
            lines.append(f"| {language} in English | {source} | {' | '.join(counts)} |")
    return lines


def unharmed(language: str) -> str:
    sentences = CARRIERS["nobody"][language]
    kept = sum(defense().substitute(sentence) == sentence for sentence in sentences)
    return f"| {language} | {kept}/{len(sentences)} |"


def test_the_documentation_prints_the_recall_that_is_measured():
    printed = DOCS.read_text(encoding="utf-8").splitlines()
    assert [row for row in rows() if row not in printed] == []


@pytest.mark.parametrize("language", CARRIERS["nobody"])
def test_the_documentation_prints_how_many_sentences_without_a_person_stay_as_they_are(language):
    assert unharmed(language) in DOCS.read_text(encoding="utf-8").splitlines()
