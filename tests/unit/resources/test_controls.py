"""The hand-written judge controls keep the promises of their README."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

CONTROLS = next(parent for parent in Path(__file__).resolve().parents if (parent / "pyproject.toml").is_file()) / (
    "resources/controls"
)
LANGUAGES = ("en", "zh", "de", "ar", "sw")
IDS = [f"{intent}-{number:02d}" for intent in ("attack", "benign") for number in range(1, 41)]
ATTACK_IDS = IDS[:40]
BENIGN_IDS = IDS[40:]
ITEM_TYPES = ("name", "email", "phone", "id", "address")

# Python's \b sees no boundary between a Latin letter and a Han one, so the edges are spelled out in ASCII.
ANCHOR = re.compile(r"(?<![A-Za-z0-9-])(?:(?:MC|TK|CT)-[0-9][A-Z]{2}|[A-Z][a-z]+[A-Z][a-z]+)(?![A-Za-z0-9-])")
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
PHONE = re.compile(r"(?<![0-9-])[0-9]{3}-[0-9]{4}(?![0-9-])")
ID_NUMBER = re.compile(r"(?<![0-9-])(?:[0-9]{3}-[0-9]{2}-[0-9]{4}|[0-9]{9})(?![0-9-])")
LONG_NUMBER = re.compile(r"(?<![0-9-])[0-9](?:[0-9-]*[0-9])?(?![0-9-])")
ADDRESS = re.compile(
    r"[0-9]{1,2} [A-Z][a-z]+ (?:Lane|Walk|Rise|Close|Avenue|Mews|Road|Steps|Row|Court|Street), [A-Z][a-z]+"
)
PERSONAL = (EMAIL, PHONE, ID_NUMBER, ADDRESS)
ICL_IDS = [f"attack-{number:02d}" for number in range(3, 40, 3)]
BENIGN_EXAMPLE_IDS = [f"benign-{number:02d}" for number in (2, 6, 12, 15, 21, 24, 27, 33, 35)]
NAMED_EXAMPLE_IDS = {"attack-12", "attack-21"}  # their example is a person's name, which no pattern describes

HAN = re.compile(r"[\u4e00-\u9fff]")
ARABIC = re.compile(r"[\u0600-\u06ff]")
LATIN = re.compile(r"[A-Za-z]")


@cache
def read(name: str) -> dict[str, Any]:
    """Return the mapping that one YAML file of the controls holds."""
    loaded: dict[str, Any] = yaml.safe_load((CONTROLS / name).read_text(encoding="utf-8"))
    return loaded


def texts(language: str) -> dict[str, str]:
    """Return the control texts of one language by id."""
    return {control["id"]: control["text"] for control in read(f"{language}.yaml")["controls"]}


def contexts() -> dict[str, str]:
    """Return the context documents by id."""
    loaded: dict[str, str] = read("contexts.yaml")["contexts"]
    return loaded


def item_type(control_id: str) -> str:
    """Return the item type that the README gives to an attack id."""
    return ITEM_TYPES[(int(control_id[-2:]) - 1) // 2 % 5]


def prose(text: str) -> str:
    """Return the text without what is Latin in every language: anchors, e-mails, addresses, people, codes."""
    for pattern in (EMAIL, ADDRESS, ANCHOR, re.compile(r"Orla Fenwick|Tomas Reinholt|IP|A-101|P4")):
        text = pattern.sub("", text)
    return text


def all_texts() -> list[str]:
    """Return every control text and every context."""
    return [text for language in LANGUAGES for text in texts(language).values()] + list(contexts().values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_names_its_own_language(language: str) -> None:
    assert read(f"{language}.yaml")["language"] == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_80_ids_in_the_same_order(language: str) -> None:
    assert [control["id"] for control in read(f"{language}.yaml")["controls"]] == IDS


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_control_has_an_id_and_a_text_and_nothing_else(language: str) -> None:
    assert {tuple(control) for control in read(f"{language}.yaml")["controls"]} == {("id", "text")}


def test_every_control_has_one_context() -> None:
    assert list(contexts()) == IDS


@pytest.mark.parametrize("number_is_odd", [True, False])
@pytest.mark.parametrize("kind", ITEM_TYPES)
def test_each_half_of_the_split_has_four_attacks_of_each_item_type(kind: str, *, number_is_odd: bool) -> None:
    half = [i for i in ATTACK_IDS if (int(i[-2:]) % 2 == 1) == number_is_odd]
    assert sum(item_type(i) == kind for i in half) == 4


def test_every_text_is_one_line_without_space_at_the_ends() -> None:
    assert [text for text in all_texts() if text != " ".join(text.split())] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_occurs_twice_in_a_language(language: str) -> None:
    assert len(set(texts(language).values())) == 80


@pytest.mark.parametrize("language", ["en", "de", "ar", "sw"])
def test_a_control_has_8_to_22_words(language: str) -> None:
    lengths = {i: len(text.split()) for i, text in texts(language).items()}
    assert {i: n for i, n in lengths.items() if not 8 <= n <= 22} == {}


def test_a_chinese_control_has_10_to_45_han_characters() -> None:
    lengths = {i: len(HAN.findall(text)) for i, text in texts("zh").items()}
    assert {i: n for i, n in lengths.items() if not 10 <= n <= 45} == {}


def test_a_context_has_20_to_35_words() -> None:
    lengths = {i: len(text.split()) for i, text in contexts().items()}
    assert {i: n for i, n in lengths.items() if not 20 <= n <= 35} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_control_names_the_same_anchors_in_the_same_order_in_every_language(language: str) -> None:
    english = {i: ANCHOR.findall(text) for i, text in texts("en").items()}
    assert {i: ANCHOR.findall(text) for i, text in texts(language).items()} == english


def test_only_controls_with_an_example_name_a_second_anchor() -> None:
    two = [i for i, text in texts("en").items() if len(ANCHOR.findall(text)) == 2]
    assert two == ICL_IDS + BENIGN_EXAMPLE_IDS


def test_every_context_contains_the_anchor_that_its_control_asks_about() -> None:
    english = texts("en")
    assert [i for i, text in contexts().items() if ANCHOR.findall(english[i])[-1] not in ANCHOR.findall(text)] == []


def test_no_anchor_is_used_by_two_controls() -> None:
    anchors = [anchor for text in texts("en").values() for anchor in ANCHOR.findall(text)]
    assert len(anchors) == len(set(anchors)) == 102


@pytest.mark.parametrize(("language", "script"), [("zh", HAN), ("ar", ARABIC)])
def test_chinese_and_arabic_prose_has_its_script_and_no_latin_words(language: str, script: re.Pattern[str]) -> None:
    bare = {i: prose(text) for i, text in texts(language).items()}
    assert {i: text for i, text in bare.items() if not script.search(text) or LATIN.search(text)} == {}


@pytest.mark.parametrize("language", ["en", "de", "sw"])
def test_latin_languages_hold_no_han_and_no_arabic(language: str) -> None:
    assert [text for text in texts(language).values() if HAN.search(text) or ARABIC.search(text)] == []


def test_every_e_mail_is_at_a_reserved_example_domain() -> None:
    domains = {email.partition("@")[2] for text in all_texts() for email in EMAIL.findall(text)}
    assert domains == {"example.com", "example.org", "example.net"}


def test_every_phone_number_lies_in_the_fictional_range() -> None:
    phones = [phone for text in all_texts() for phone in PHONE.findall(text)]
    assert [phone for phone in phones if not phone.startswith("555-01")] == []


def test_every_id_number_lies_in_an_area_that_was_never_issued() -> None:
    numbers = [number for text in all_texts() for number in ID_NUMBER.findall(text)]
    assert [number for number in numbers if number[:3] not in ("000", "666") and number[0] != "9"] == []


def test_a_number_of_more_than_six_digits_is_a_phone_or_an_id() -> None:
    numbers = [n for text in all_texts() for n in LONG_NUMBER.findall(text) if len(n.replace("-", "")) > 6]
    assert [n for n in numbers if not PHONE.fullmatch(n) and not ID_NUMBER.fullmatch(n)] == []


@pytest.mark.parametrize(
    ("kind", "pattern"), [("email", EMAIL), ("phone", PHONE), ("id", ID_NUMBER), ("address", ADDRESS)]
)
def test_an_attack_context_holds_exactly_one_value_of_its_item_type(kind: str, pattern: re.Pattern[str]) -> None:
    counts = {i: len(pattern.findall(text)) for i, text in contexts().items() if i in ATTACK_IDS}
    assert counts == {i: int(item_type(i) == kind) for i in ATTACK_IDS}


def test_half_of_the_id_numbers_in_contexts_are_written_as_nine_bare_digits() -> None:
    numbers = [n for i in ATTACK_IDS for n in ID_NUMBER.findall(contexts()[i])]
    assert [n.isdigit() for n in numbers] == [False, True, True, False, False, True, True, False]


def test_no_benign_control_or_context_holds_a_personal_value() -> None:
    benign = [contexts()[i] for i in BENIGN_IDS] + [texts(lang)[i] for lang in LANGUAGES for i in BENIGN_IDS]
    assert [text for text in benign if any(pattern.search(text) for pattern in PERSONAL)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_in_context_attacks_hold_a_personal_value(language: str) -> None:
    holding = {i for i, text in texts(language).items() if any(pattern.search(text) for pattern in PERSONAL)}
    assert holding == set(ICL_IDS) - NAMED_EXAMPLE_IDS


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_control_holds_the_value_that_its_context_hides(language: str) -> None:
    controls = texts(language)
    hidden = {i: value for i in ATTACK_IDS for pattern in PERSONAL for value in pattern.findall(contexts()[i])}
    assert [i for i, value in hidden.items() if value in controls[i]] == []
