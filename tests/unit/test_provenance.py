"""Digests change with what a result was made from, and with nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mragaudit import provenance
from mragaudit.provenance import file_sha256, source_digest, tree_sha256, versions

MODULES = {
    "__init__": '"""A package."""\n',
    "stage": '"""A stage."""\nfrom mragaudit.helper import half\n\ndef run(x):\n    return half(x)\n',
    "helper": "import math\nfrom mragaudit import deep\n\ndef half(x):\n    return x / deep.TWO\n",
    "deep": "TWO = 2\n",
    "unrelated": "X = 1\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a small package in place of the library."""
    folder = tmp_path / "mragaudit"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(provenance, "PACKAGE_ROOT", folder)
    provenance._read_module.cache_clear()
    yield folder
    provenance._read_module.cache_clear()


def _changed(package: Path, name: str, text: str) -> bool:
    """Return whether a module's new text changes the stage's digest."""
    before = source_digest("mragaudit.stage")
    (package / f"{name}.py").write_text(text, encoding="utf-8")
    provenance._read_module.cache_clear()
    return source_digest("mragaudit.stage") != before


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\nTWO = 2  # another\n",
        '"""A docstring."""\n\nTWO = 2\n',
        "\n\nTWO = (\n    2\n)\n",
    ],
)
def test_comments_docstrings_and_layout_are_no_code(text: str, package: Path) -> None:
    assert not _changed(package, "deep", text)


def test_a_functions_docstring_is_no_code(package: Path) -> None:
    assert not _changed(package, "stage", MODULES["stage"].replace("return half", '"""Half."""\n    return half'))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("stage", MODULES["stage"].replace("half(x)", "half(x + 1)")),
        ("helper", MODULES["helper"].replace("x /", "x //")),
        ("deep", "TWO = 3\n"),
        ("deep", "TWO = '2'\n"),
    ],
)
def test_code_of_the_stage_or_of_what_it_imports_changes_the_digest(name: str, text: str, package: Path) -> None:
    assert _changed(package, name, text)


def test_code_that_the_stage_does_not_import_leaves_the_digest(package: Path) -> None:
    assert not _changed(package, "unrelated", "X = 2\n")


def test_modules_that_import_each_other_have_a_digest(package: Path) -> None:
    assert _changed(package, "deep", "from mragaudit import stage\nTWO = 2\n")


def test_a_backend_named_beside_the_stage_counts(package: Path) -> None:
    assert package.is_dir()
    assert source_digest("mragaudit.stage", "mragaudit.unrelated") != source_digest("mragaudit.stage")


def test_every_rule_of_the_workflow_names_modules_that_exist() -> None:
    rules = (Path(__file__).parents[2] / "workflow" / "rules").glob("*.smk")
    named = {part for path in rules for part in path.read_text("utf-8").split('"') if part.startswith("mragaudit.")}
    assert len(named) >= 14
    assert [name for name in named if provenance._module_path(name) is None] == []


def test_a_files_digest_is_its_sha256(tmp_path: Path) -> None:
    """Known value: sha256 of the three bytes abc, FIPS 180-2 appendix B.1."""
    (tmp_path / "a").write_bytes(b"abc")
    assert file_sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_folders_digest_sees_names_and_contents(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "a").write_bytes(b"x")
    (tmp_path / "two" / "a").write_bytes(b"x")
    (tmp_path / "three" / "b").write_bytes(b"x")
    assert tree_sha256(tmp_path / "one") == tree_sha256(tmp_path / "two")
    assert tree_sha256(tmp_path / "one") != tree_sha256(tmp_path / "three")


def test_absent_packages_have_no_version() -> None:
    assert set(versions(("numpy", "no-such-package"))) == {"python", "numpy"}
