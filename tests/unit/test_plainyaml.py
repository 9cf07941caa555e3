"""A key that stands twice is refused with both lines; everything else is read as YAML's own reader reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mragaudit.plainyaml import RepeatedKeyError, plain_yaml, read_plain, repeated_key

RESOURCES = Path(__file__).parents[2] / "resources"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run: a\nseed: 1\nrun: b\n", 'line 3: the key "run" stands there already on line 1; keep one'),
        ("judge:\n  mode: parse\n  mode: margin\n", 'line 3: the key "mode" stands there already on line 2; keep one'),
        ("a: [{k: 1, k: 1}]", 'line 1: the key "k" stands there already on line 1; keep one'),
        ("one: &one\n  k: 1\n  k: 2\ntwo: *one\n", 'line 3: the key "k" stands there already on line 2; keep one'),
    ],
)
def test_a_key_that_stands_twice_is_named_with_both_lines(text: str, message: str) -> None:
    with pytest.raises(RepeatedKeyError) as caught:
        plain_yaml(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: {k: 1}\nb: {k: 2}\n", {"a": {"k": 1}, "b": {"k": 2}}),
        ("base: &base {k: 1, m: 2}\nown: {<<: *base, k: 3}\n", {"base": {"k": 1, "m": 2}, "own": {"k": 3, "m": 2}}),
        ("1: a\n'1': b\n", {1: "a", "1": "b"}),
        ("", None),
    ],
)
def test_equal_keys_of_different_mappings_and_kinds_are_no_repetition(text: str, value: object) -> None:
    assert plain_yaml(text) == value


@pytest.mark.parametrize("text", ["day: 2024-13-45", "[" * 5000, "a: [1", "a: \x00"])
def test_whatever_cannot_be_read_is_an_error_of_yaml(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        plain_yaml(text)


def test_the_first_file_with_a_repeated_key_is_named_and_other_faults_are_left(tmp_path: Path) -> None:
    broken, good, twice = (tmp_path / name for name in ("broken.yaml", "good.yaml", "twice.yaml"))
    broken.write_text("a: [1", encoding="utf-8")
    good.write_text("a: 1\n", encoding="utf-8")
    twice.write_text("a: 1\na: 2\n", encoding="utf-8")
    assert repeated_key([broken, good]) is None
    assert repeated_key([broken, good, twice]) == (
        f'{twice}, line 2: the key "a" stands there already on line 1; keep one'
    )


def test_no_shipped_file_has_a_key_twice() -> None:
    assert repeated_key(sorted(RESOURCES.rglob("*.yaml"))) is None


def test_a_folder_and_bytes_that_are_no_text_are_errors_of_yaml_too(tmp_path: Path) -> None:
    with pytest.raises(yaml.YAMLError, match=r"^Is a directory$"):
        read_plain(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe4\n")
    with pytest.raises(yaml.YAMLError, match=r"^this is not UTF-8"):
        read_plain(tmp_path / "latin.yaml")
