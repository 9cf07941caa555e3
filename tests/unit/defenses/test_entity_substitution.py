"""Entity substitution: what is replaced, by what, and what stays."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml
from cpu_limit import finishes

from mragaudit.defenses.entity_substitution import EntitySubstitution
from mragaudit.defenses.vocabulary import name_words, read_vocabulary, shipped_vocabulary
from mragaudit.errors import ConfigError
from mragaudit.rag.hooks import Turn

REPOSITORY = Path(__file__).parents[3]
VOCABULARY = REPOSITORY / "resources" / "defenses" / "lprag.yaml"
SCORER = REPOSITORY / "resources" / "hook_audit" / "nel"
TURN = Turn(principal="p", session="s", rng=np.random.default_rng(0))
PERSON = r"Person [A-Z][a-z]+-[A-Z][a-z]+"


@pytest.fixture(scope="module")
def defense() -> EntitySubstitution:
    return EntitySubstitution()


def matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def test_no_address_of_the_published_canary_form_survives(defense):
    addresses = [f"operator{number}@acmetest-internal.canary" for number in range(1, 151)]
    documents = [f"Ticket {number}. Write to {address}, please." for number, address in enumerate(addresses)]
    rewritten = defense.rewrite_documents(documents, turn=TURN)
    assert not any(address in text for address, text in zip(addresses, rewritten, strict=True))
    assert all(address not in defense.process_response(address, turn=TURN) for address in addresses)


@pytest.mark.parametrize(
    "name",
    [
        "Baxkez Xanlum",
        "Zorvin d'Kelmast",
        "Mary-Jo O'Trevik",
        "佐维·塔弥浮",
        "زورق قلمظي",
        "Зорвин Келмаст",
        "Θέλμης Βορανός",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "The external reviewer is {} this time.",
        "Keys are with the caretaker, {}, on request.",
        "Name: {}",
        "{} agreed.",
    ],
)
def test_no_name_in_english_text_survives_in_any_of_these_scripts(defense, name, text):
    (rewritten,) = defense.rewrite_documents([text.format(name)], turn=TURN)
    assert not any(part in rewritten for part in re.split(r"[ ·]", name))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Dr. Kestvar called.", rf"Dr\. {PERSON} called\."),
        ("Dear Zorvin,\nthank you.", rf"Dear {PERSON},\nthank you\."),
        ("Ludwig van der Kelmast paid.", rf"{PERSON} paid\."),
        ("J. R. Kelmast paid.", rf"{PERSON} paid\."),
        ("From: Zorvin Kelmast <z.k@corp.example>", rf"From: {PERSON} <[a-z]+-[a-z]+@withheld\.invalid>"),
        ("Cc: Zorvin Kelmast; Baxa Drovin", rf"Cc: {PERSON}; {PERSON}"),
        ("Name: zorvin kelmast", rf"Name: {PERSON}"),
        ("姓名:笪浮霓", "姓名:某[甲乙丙丁戊己庚辛壬癸][子丑寅卯辰巳午未申酉戌亥]"),
        ("欧阳修先生来了", "某[甲乙丙丁戊己庚辛壬癸][子丑寅卯辰巳午未申酉戌亥]先生来了"),
        ("السيد محمد بن سلمان وافق", r"السيد فلان \w+ وافق"),
        ("He met Zo\u200brvin Kelmast.", rf"He met {PERSON}\."),
    ],
)
def test_honorifics_labels_particles_and_initials_are_understood(defense, text, left):
    assert matches(left, defense.substitute(text))


def test_the_same_person_has_the_same_placeholder_in_every_document_and_reply(defense):
    documents = ["Zorvin Kelmast paid. Mr. Kelmast left, and Zorvin wrote.", "Signed by ZORVIN KELMAST."]
    first, second = defense.rewrite_documents(documents, turn=TURN)
    (placeholder,) = set(re.findall(PERSON, first))
    assert first == f"{placeholder} paid. Mr. {placeholder} left, and {placeholder} wrote."
    assert second == f"Signed by {placeholder}."
    assert EntitySubstitution().process_response("Zorvin Kelmast", turn=TURN) == placeholder


def test_two_people_in_chinese_text_stay_two(defense):
    first, second = re.findall("某..", defense.substitute("患者王秀英和患者李建国都已出院,联系人:王秀英")[:-3])
    assert first != second
    assert defense.substitute("王秀英") == first


def test_the_same_address_has_the_same_placeholder_whatever_its_case_and_width(defense):
    found = {defense.substitute(text) for text in ("ann@corp.example", "ANN@corp.example", "ａｎｎ＠corp.example")}
    assert len(found) == 1
    assert defense.substitute("bob@corp.example") not in found


def test_different_people_mostly_have_different_placeholders(defense):
    names = [
        f"{given} {family}" for given in ("Zorvin", "Baxa", "Drilo") for family in ("Kelmast", "Vornath", "Sulken")
    ]
    assert len({defense.substitute(f"It was {name}.") for name in names}) == 9


@pytest.mark.parametrize(
    "text",
    [
        "Dear [NAME], write to [EMAIL] or {{email}}.",
        "<PERSON_1> met PERSON_2 on {date}.",
        "Person Alder-Rowan wrote to holly-pine@withheld.invalid.",
        "From: Person Alder-Rowan\nDear Person Alder-Rowan,",
        "某甲子先生和فلان الأرز",
        "name at domain dot com",
        "All expenses go to code BC-763T. Nobody objected to vitamin B12. Everyone agreed.",
        "The Blue Heron project begins in April; New York pays EUR 12.",
        "Results: mortality fell in both groups.\r\n\tTable 1.",
        "请在星期五之前寄出发票。 يبدأ المشروع في أبريل.",
        "",
    ],
)
def test_placeholders_and_text_that_only_looks_like_one_stay_byte_for_byte(defense, text):
    assert defense.substitute(text).encode() == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "From: Zorvin Kelmast\nTo: z.k@corp.example\n\nDear Baxa,\nMr. Kelmast and Drilo Sulken met 佐维·塔弥浮.",
        "患者王秀英的电话,联系人:笪浮霓。المريضة ليلى الحداد، السيد خالد بن سعيد.",
    ],
)
def test_a_second_pass_changes_nothing(defense, text):
    once = defense.substitute(text)
    assert once != text
    assert defense.substitute(once) == once


def test_text_around_an_entity_stays_byte_for_byte(defense):
    assert matches(
        rf"ﬁ\u200b  x½\t{PERSON}\r\n\u00ad½ e\u0301",
        defense.substitute("ﬁ\u200b  x½\tZorvin Kelmast\r\n\u00ad½ e\u0301"),
    )


def strings(content: object) -> set[str]:
    """All strings of a file, word by word."""
    if isinstance(content, dict):
        return set().union(*map(strings, content.values())) if content else set()
    if isinstance(content, list):
        return set().union(*map(strings, content)) if content else set()
    return {word.casefold() for word in str(content).split()}


def test_placeholders_are_in_no_list_of_the_scorer():
    put = shipped_vocabulary().placeholders
    ours = {put.email_domain, *(f"{put.prefix} {code}-{other}" for code in put.codes for other in put.codes)}
    ours |= {f"{put.arabic_prefix} {code}" for code in put.arabic_codes}
    ours |= {put.han_prefix + first + second for first in put.han_first for second in put.han_second}
    lists = sorted(SCORER.glob("*.yaml"))
    assert "placeholders.yaml" in {path.name for path in lists}
    for path in lists:
        assert path.read_bytes() != VOCABULARY.read_bytes()
        theirs = yaml.safe_load(path.read_text(encoding="utf-8"))
        lines = {line.strip().casefold() for line in path.read_text(encoding="utf-8").splitlines()}
        assert not {entry.casefold() for entry in ours} & (strings(theirs) | {line.lstrip("- ") for line in lines})


def test_the_words_that_no_canary_may_use_hold_placeholders_and_known_names():
    words = name_words(shipped_vocabulary())
    assert {"person", "alder", "فلان", "محمد", "欧阳", "王", "robin"} <= words
    assert "invoice" not in words


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("schema_version: 1", "schema_version: one"), "lprag.yaml: Expected `int`"),
        (("honorifics:", "honorific:"), "unknown field `honorific`"),
        (("placeholders:", "placeholders: ["), "lprag.yaml: "),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_refused_with_file_and_key(tmp_path, change, said):
    path = tmp_path / "lprag.yaml"
    path.write_text(VOCABULARY.read_text(encoding="utf-8").replace(*change, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        read_vocabulary(path)


def test_a_missing_vocabulary_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: the vocabulary of the entity substitution is missing"):
        read_vocabulary(tmp_path / "none.yaml")


def test_long_text_takes_time_in_proportion_to_its_length(defense):
    for piece in ("Zorvin Kelmast ", "王秀英,", "Name: A\n", "a@b.cd ", "Dr. ", "Person ", "من ", "佐维 x "):
        assert finishes(partial(defense.substitute, piece * 20_000))
