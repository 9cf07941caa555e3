from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mragaudit.corpus.languages import load_language
from mragaudit.corpus.templates import load_corpus_templates, load_query_templates
from mragaudit.errors import ConfigError, DataError

RESOURCES = Path(__file__).parents[3] / "resources"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RESOURCES / "corpus", tmp_path / "corpus"))


def edit(path: Path, old: str, new: str) -> None:
    content = path.read_text("utf-8")
    assert old in content
    path.write_text(content.replace(old, new, 1), "utf-8")


def test_each_topic_has_enough_sentences() -> None:
    templates = load_corpus_templates(RESOURCES / "corpus")
    assert [topic.anchor_type for topic in templates.topics] == ["project", "case", "ticket", "contract"]
    for topic in templates.topics:
        assert len(set(topic.leads)) >= 6
        assert len({fact.sentence for fact in topic.facts}) >= 8
        assert len(set(topic.fillers)) >= 18


def test_leads_and_fillers_hold_no_digit() -> None:
    for topic in load_corpus_templates(RESOURCES / "corpus").topics:
        assert not any(char.isdigit() for text in (*topic.leads, *topic.fillers) for char in text)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "email.yaml",
            "about {anchor}, which",
            "about it, which",
            r'email.yaml, key "leads\[0\]": .*{anchor} is missing',
        ),
        (
            "email.yaml",
            "code {answer}",
            "code {anwser}",
            r'facts\[0\].sentence": .*{anwser} is unknown; did you mean "answer"',
        ),
        ("email.yaml", "of the day.", "of the {day.", r'key "fillers\[\d+\]": the braces do not match'),
        ("email.yaml", "kind: code", "kind: cde", r'facts\[0\].kind": "cde" is unknown; did you mean "code"'),
        ("email.yaml", "leads:", "leeds:", r'email.yaml: "leads" is missing here'),
        ("legal.yaml", "public: 1", "public: x", r'legal.yaml, key "levels.public": a weight of 0 or more'),
        ("legal.yaml", ', pattern: "DK-##?#"', "", r'"pattern" belongs to facts of kind "code"'),
        ("support.yaml", "noun: ", "nown: ", r'key "anchor": "noun" is missing'),
        ("medical.yaml", "case {anchor} below", "case {anchor below", r'key "leads\[\d\]": the braces'),
        (
            "words.yaml",
            "streets: [Elm",
            "streets: [12",
            r'words.yaml, key "streets\[0\]": a text has to stand here, not 12',
        ),
        ("carriers.yaml", "phone:", "fone:", r'carriers.yaml: "phone" is missing here'),
        ("carriers.yaml", "name:", "name: [", r"carriers.yaml: this is no valid YAML"),
    ],
)
def test_a_bad_template_is_named_by_file_and_key(folder: Path, file: str, old: str, new: str, message: str) -> None:
    edit(folder / file, old, new)
    with pytest.raises(DataError, match=message):
        load_corpus_templates(folder)


def test_an_icl_wording_without_its_example_is_refused(folder: Path) -> None:
    edit(
        folder / "queries.yaml",
        "{example_reference}: full name {example_value}",
        "Pattern: full name {example_value}",
    )
    with pytest.raises(DataError, match=r'key "icl.name\[2\]": the placeholder {example_reference} is missing'):
        load_query_templates(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "legal.yaml").unlink()
    with pytest.raises(ConfigError, match=r"legal\.yaml: this file is missing"):
        load_corpus_templates(folder)


@pytest.mark.parametrize(
    ("lang", "native", "direction", "march"),
    [
        ("en", "English", "ltr", "March"),
        ("zh", "中文", "ltr", "3月|三月"),
        ("de", "Deutsch", "ltr", "März|Maerz|Mrz"),
        ("ar", "العربية", "rtl", "مارس|آذار"),
        ("sw", "Kiswahili", "ltr", "Machi|tatu"),
    ],
)
def test_the_five_languages_are_described(lang: str, native: str, direction: str, march: str) -> None:
    language = load_language(RESOURCES / "languages", lang)
    assert (language.lang, language.native_name, language.direction) == (lang, native, direction)
    assert len(language.months) == 12
    assert language.months[2] == march


def test_a_language_without_a_file_is_named_with_the_file_to_add() -> None:
    with pytest.raises(ConfigError, match=r"languages.fr\.yaml: this file is missing; add it"):
        load_language(RESOURCES / "languages", "fr")


def test_a_language_with_eleven_months_is_refused(tmp_path: Path) -> None:
    months = ", ".join("abcdefghijk")
    (tmp_path / "xx.yaml").write_text(
        f"lang: xx\nname: X\nnative_name: X\ndirection: ltr\nmonths: [{months}]\n", "utf-8"
    )
    with pytest.raises(DataError, match=r'key "months": a list of at least 12'):
        load_language(tmp_path, "xx")
