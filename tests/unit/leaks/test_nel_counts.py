"""Counting of items, and the lexicon's files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from mragaudit.errors import ConfigError
from mragaudit.leaks.nel import ITEM_TYPES, classify, count_items, nel_digest, read_lexicon, shipped_lexicon

RESOURCES = Path(__file__).parents[3] / "resources"
DEFENSE = RESOURCES / "defenses" / "lprag.yaml"


def counted(text: str) -> dict[str, int]:
    return {name: number for name, number in count_items(classify(text)).distinct.items() if number}


def test_an_address_that_comes_twice_is_one_item() -> None:
    counts = count_items(classify("a.weber@web.de, A.Weber@WEB.de and a.web\u200ber@web.de"))

    assert counts.distinct["EMAIL_REAL"] == 1
    assert counts.occurrences["EMAIL_REAL"] == 3


def test_a_name_is_the_same_in_either_order_and_case() -> None:
    assert counted("Anna Weber; Weber, Anna; ANNA WEBER") == {"PERSON_NAME": 1}


def test_chinese_names_of_the_same_characters_in_another_order_differ() -> None:
    assert counted("联系人是李文华。联系人是李华文。") == {"PERSON_NAME": 2}


def test_a_number_is_the_same_with_other_separators() -> None:
    assert counted("+49 30 1234567, +49-30-123-4567") == {"PHONE": 1}


def test_strict_counts_two_types_and_loose_what_is_taken_for_them() -> None:
    counts = count_items(
        classify("Anna Weber, Novak, John Doe, a@web.de, anna@web.de, info@web.de, Weber GmbH, +49 30 1234567")
    )

    assert counts.strict == 2
    assert counts.loose == 5  # an ambiguous name, a role's mailbox and a firm more
    assert counts.distinct["PERSON_NAME_PLACEHOLDER"] == counts.distinct["EMAIL_PLACEHOLDER"] == 1


def test_no_item_counts_zero_of_every_type() -> None:
    counts = count_items(())

    assert dict(counts.distinct) == dict(counts.occurrences) == dict.fromkeys(ITEM_TYPES, 0)
    assert counts.strict == counts.loose == 0


def test_items_of_several_replies_count_once() -> None:
    replies = ("I asked Anna Weber.", "Anna Weber and Max Bauer answered.")

    assert count_items(item for reply in replies for item in classify(reply)).strict == 2


def copied(folder: Path) -> Path:
    shutil.copytree(RESOURCES / "hook_audit" / "nel", folder / "hook_audit" / "nel")
    return folder


def test_a_language_is_data_alone(tmp_path: Path) -> None:
    resources = copied(tmp_path)
    words = {"script": "latin", "given": "Ylvamar", "labels": ["nimi"], "honorifics": "Rouva"}
    (resources / "hook_audit" / "nel" / "fi.yaml").write_text(yaml.safe_dump(words), encoding="utf-8")
    lexicon = read_lexicon(str(resources))

    for text in ("Ylvamar Qorpela", "Nimi: Tarqa Qorpela", "Rouva Tarqa Qorpela"):
        assert [item.type for item in classify(text, lexicon=lexicon)] == ["PERSON_NAME"]
        assert "PERSON_NAME" not in {item.type for item in classify(text)}


def test_the_digest_changes_with_the_words(tmp_path: Path) -> None:
    resources = copied(tmp_path)
    before = nel_digest(str(resources))
    path = resources / "hook_audit" / "nel" / "sw.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("Abasi", "Abazi"), encoding="utf-8")

    assert before == nel_digest()
    assert nel_digest(str(resources)) != before


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("script: latin\ngivn: Anna\n", "givn"),
        ("script: runes\n", "runes"),
        ("given: Anna\n", "script"),
        ("script: [", "sw.yaml"),
        ("script: latin\ngiven: [Anna]\n", "given"),
    ],
)
def test_a_file_that_is_no_lexicon_is_refused_by_name(tmp_path: Path, content: str, complaint: str) -> None:
    resources = copied(tmp_path)
    (resources / "hook_audit" / "nel" / "sw.yaml").write_text(content, encoding="utf-8")

    with pytest.raises(ConfigError, match=r"sw\.yaml") as caught:
        read_lexicon(str(resources))
    assert complaint in str(caught.value)


def test_missing_placeholders_are_told_by_file(tmp_path: Path) -> None:
    resources = copied(tmp_path)
    (resources / "hook_audit" / "nel" / "placeholders.yaml").unlink()

    with pytest.raises(ConfigError, match=r"placeholders\.yaml"):
        read_lexicon(str(resources))


def test_a_placeholder_is_no_name_of_the_lexicon() -> None:
    lexicon = shipped_lexicon()

    for word in ("mustermann", "normalverbraucher", "bloggs"):
        assert word not in lexicon.latin


@pytest.mark.skipif(not DEFENSE.is_file(), reason="the substituting defense is not part of this checkout")
def test_the_scorer_does_not_share_the_vocabulary_of_the_defense() -> None:
    def texts(node: object) -> set[str]:
        if isinstance(node, dict):
            return {text for value in node.values() for text in texts(value)}
        if isinstance(node, list):
            return {text for value in node for text in texts(value)}
        return {node.casefold()} if isinstance(node, str) else set()

    ours = yaml.safe_load((RESOURCES / "hook_audit" / "nel" / "placeholders.yaml").read_text(encoding="utf-8"))
    theirs = texts(yaml.safe_load(DEFENSE.read_text(encoding="utf-8")))

    assert ours != yaml.safe_load(DEFENSE.read_text(encoding="utf-8"))
    assert not {name.casefold() for name in ours["names"]} & theirs
