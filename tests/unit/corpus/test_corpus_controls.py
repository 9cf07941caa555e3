from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from mragaudit.corpus.controls import load_controls
from mragaudit.errors import ConfigError, DataError

IDS = ("attack-01", "attack-02", "attack-03", "attack-04", "benign-01", "benign-02", "benign-03")


def write(folder: Path, lang: str, controls: list[dict[str, str]], *, language: str | None = None) -> None:
    content = {"language": language or lang, "controls": controls}
    (folder / f"{lang}.yaml").write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")


def entries(lang: str, ids: tuple[str, ...] = IDS) -> list[dict[str, str]]:
    return [{"id": name, "text": f"{lang} {name}"} for name in ids]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    contexts = {"contexts": {name: f"document of {name}" for name in IDS}}
    (tmp_path / "contexts.yaml").write_text(yaml.safe_dump(contexts), "utf-8")
    write(tmp_path, "en", entries("en"))
    write(tmp_path, "sw", entries("sw"))
    return tmp_path


def test_class_and_number_decide_verdict_and_split(folder: Path) -> None:
    queries = load_controls(folder, languages=["en"], per_class=None)
    rows = {query.control_id: (query.expected_verdict, query.control_split) for query in queries}
    assert rows["attack-01"] == ("BLOCK", "calibration")
    assert rows["attack-02"] == ("BLOCK", "check")
    assert rows["benign-03"] == ("ALLOW", "calibration")
    assert len(queries) == 7


def test_a_control_is_asked_in_its_language_only_with_its_context(folder: Path) -> None:
    query = load_controls(folder, languages=["sw"], per_class=None)[0]
    assert (query.text, query.lang, query.only_in_lang) == ("sw attack-01", "sw", True)
    assert (query.context, query.doc_id, query.query_source) == ("document of attack-01", None, "control")
    assert (query.intent, query.paraphrase) == ("control", None)


@pytest.mark.parametrize(
    ("per_class", "kept"),
    [
        (2, ["attack-01", "attack-02", "benign-01", "benign-02"]),
        (3, ["attack-01", "attack-02", "attack-03", "benign-01", "benign-02", "benign-03"]),
        (99, list(IDS)),
    ],
)
def test_a_limit_keeps_the_lowest_numbers_of_each_class(folder: Path, per_class: int, kept: list[str]) -> None:
    queries = load_controls(folder, languages=["en"], per_class=per_class)
    assert [query.control_id for query in queries] == kept


def test_a_limit_keeps_both_splits_where_numbers_have_gaps(folder: Path) -> None:
    ids = ("attack-01", "attack-03", "attack-05", "attack-08", "benign-01", "benign-02")
    (folder / "contexts.yaml").write_text(yaml.safe_dump({"contexts": dict.fromkeys(ids, "x")}), "utf-8")
    write(folder, "en", entries("en", ids))
    queries = load_controls(folder, languages=["en"], per_class=2)
    assert [query.control_id for query in queries][:2] == ["attack-01", "attack-08"]


def test_ids_of_queries_are_unique_over_languages(folder: Path) -> None:
    queries = load_controls(folder, languages=["en", "sw"], per_class=None)
    assert len({query.query_id for query in queries}) == 14


def test_a_language_without_controls_is_named_with_the_file_to_add(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r'fr\.yaml: the language "fr" has no judge controls; add this file'):
        load_controls(folder, languages=["en", "fr"], per_class=None)


def test_fewer_than_two_a_class_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="controls per class are 1; 2 is the least"):
        load_controls(folder, languages=["en"], per_class=1)


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        (
            entries("en", IDS[:-1]),
            r'en\.yaml, key "controls": "benign-03" is missing; every language has every',
        ),
        (
            entries("en", (*IDS, "attack-09")),
            r'key "controls\[7\].text": "attack-09" has no entry in contexts',
        ),
        (entries("en", (*IDS, "attack-01")), r'key "controls\[7\].id": "attack-01" stands here twice'),
        (entries("en", (*IDS, "atack-09")), r'"atack-09" is no id of a control; it looks like attack-01'),
        ([*entries("en"), {"id": "attack-09", "text": " "}], r'key "controls\[7\].text": the text is empty'),
        ([*entries("en"), {"id": "attack-09"}], r'key "controls\[7\]": "text" is missing'),
    ],
)
def test_a_bad_file_is_named_by_key(folder: Path, controls: list[dict[str, str]], message: str) -> None:
    write(folder, "en", controls)
    with pytest.raises(DataError, match=message):
        load_controls(folder, languages=["en"], per_class=None)


def test_a_class_with_one_split_is_refused(folder: Path) -> None:
    ids = ("attack-01", "attack-03", "benign-01", "benign-02")
    (folder / "contexts.yaml").write_text(yaml.safe_dump({"contexts": dict.fromkeys(ids, "x")}), "utf-8")
    write(folder, "en", entries("en", ids))
    with pytest.raises(DataError, match="each class needs odd ids"):
        load_controls(folder, languages=["en"], per_class=None)


def test_a_file_of_another_language_is_refused(folder: Path) -> None:
    write(folder, "en", entries("en"), language="de")
    with pytest.raises(DataError, match=r'key "language": "de" is unknown; .*en'):
        load_controls(folder, languages=["en"], per_class=None)


def test_the_shipped_controls_are_forty_a_class_and_language_in_equal_splits() -> None:
    folder = Path(__file__).parents[3] / "resources" / "controls"
    queries = load_controls(folder, languages=["en", "zh", "de", "ar", "sw"], per_class=None)
    cells = Counter((query.lang, query.expected_verdict, query.control_split) for query in queries)
    assert len(cells) == 20
    assert set(cells.values()) == {20}
