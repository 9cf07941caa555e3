"""Reading of other people's source: what is hostile or broken is named, the rest is audited, nothing is imported."""

from __future__ import annotations

import os
import sys

import pytest

from mragaudit.errors import DataError
from mragaudit.hookaudit.inventory import audit_path, audit_source
from mragaudit.hookaudit.source import load_tree, locate

GOOD = """
class Masker:
    def process_response(self, response):
        return response.replace("@", " [at] ")
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "good.py").write_text(GOOD, encoding="utf-8")
    return tmp_path


def only_good_is_audited(inventory):
    return [(v.file, v.status) for v in inventory.verdicts] == [("good.py", "active")]


def test_a_syntax_error_is_named_with_its_line_and_the_rest_is_audited(tree):
    (tree / "bad.py").write_text("x = 1\ndef broken(:\n", encoding="utf-8")
    inventory = audit_path(tree)
    assert only_good_is_audited(inventory)
    (problem,) = inventory.problems
    assert (problem.file, problem.line) == ("bad.py", 2)
    assert "syntax error" in problem.reason


def test_text_that_is_not_utf_8_is_named(tree):
    (tree / "latin.py").write_bytes(b"name = 'caf\xe9'\n")
    inventory = audit_path(tree)
    assert only_good_is_audited(inventory)
    assert "encoding" in inventory.problems[0].reason


def test_a_declared_encoding_is_honoured(tree):
    (tree / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nname = 'caf\xe9'\n")
    assert audit_path(tree).problems == ()


def test_null_bytes_are_named(tree):
    (tree / "null.py").write_bytes(b"x = 1\x00\n")
    inventory = audit_path(tree)
    assert only_good_is_audited(inventory)
    assert [problem.file for problem in inventory.problems] == ["null.py"]


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "-" * 20000 + "1",
        "x = " + "+".join(["1"] * 50000),
        "x = a" + ".b" * 20000,
    ],
    ids=["parentheses", "signs", "sums", "attributes"],
)
def test_deep_nesting_ends_in_a_message_or_is_parsed(tree, text):
    (tree / "deep.py").write_text(text, encoding="utf-8")
    inventory = audit_path(tree)
    assert only_good_is_audited(inventory)
    assert all(problem.file == "deep.py" and problem.reason for problem in inventory.problems)


def test_a_hook_of_deep_nesting_is_unknown_and_the_others_are_audited(tree):
    deep = "response" + ".strip()" * 900
    (tree / "deep.py").write_text(f"class A:\n    def process_response(self, response):\n        return {deep}\n")
    found = {v.file: v.status for v in audit_path(tree).verdicts}
    assert found["good.py"] == "active"
    assert found["deep.py"] in {"unknown", "active"}


def test_a_file_of_50000_lines_is_audited(tree):
    lines = ["TABLE = {"] + [f'    "key{i}": {i},' for i in range(50_000)] + ["}"]
    (tree / "large.py").write_text("\n".join(lines) + GOOD.replace("Masker", "Large"), encoding="utf-8")
    inventory = audit_path(tree)
    assert {v.class_name: v.status for v in inventory.verdicts} == {"Masker": "active", "Large": "active"}


def test_modules_that_import_each_other_are_audited(tree):
    (tree / "a.py").write_text("from b import mask\nfrom b import Base\n\ndef keep(text):\n    return text\n")
    (tree / "b.py").write_text(
        "from a import keep\n\ndef mask(text):\n    return keep(text).upper()\n\n"
        "class Base:\n    def process_response(self, response):\n        return mask(response)\n"
    )
    found = {v.file: v.status for v in audit_path(tree).verdicts}
    assert found["b.py"] == "active"


def test_names_that_are_imported_in_a_circle_are_unknown(tree):
    (tree / "a.py").write_text("from b import mask\n")
    (tree / "b.py").write_text("from a import mask\n")
    (tree / "c.py").write_text(
        "from a import mask\nclass C:\n    def process_response(self, response):\n        return mask(response)\n"
    )
    assert {v.class_name: v.status for v in audit_path(tree).verdicts}["C"] == "unknown"


def test_a_class_that_inherits_from_itself_does_not_loop(tree):
    (tree / "a.py").write_text("class A(A):\n    def process_response(self, response):\n        return response\n")
    (tree / "b.py").write_text(
        "class B(C):\n    pass\nclass C(B):\n    def process_response(self, response):\n        return response\n"
    )
    found = {v.class_name: v.status for v in audit_path(tree).verdicts}
    assert found["A"] == "inactive"


def test_a_loop_of_links_ends(tree):
    (tree / "inside").mkdir()
    (tree / "inside" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "self.py").symlink_to(tree / "self.py")
    inventory = audit_path(tree)
    assert only_good_is_audited(inventory)
    assert [problem.file for problem in inventory.problems] == ["self.py"]


def test_a_file_reached_by_a_link_is_read_once(tree):
    (tree / "other.py").symlink_to(tree / "good.py")
    assert len(audit_path(tree).verdicts) == 1


def test_a_file_that_is_no_file_is_named(tree):
    os.mkfifo(tree / "pipe.py")
    inventory = audit_path(tree)
    assert only_good_is_audited(inventory)
    assert [problem.file for problem in inventory.problems] == ["pipe.py"]


def test_nothing_is_imported(tree):
    (tree / "boom.py").write_text("raise SystemExit('imported')\n")
    before = set(sys.modules)
    assert only_good_is_audited(audit_path(tree))
    assert not {name for name in set(sys.modules) - before if name in {"boom", "good"}}


def test_a_helper_in_another_module_of_a_package_is_followed(tmp_path):
    package = tmp_path / "shop" / "privacy"
    package.mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from .masks import mask_text as mask\n")
    (package / "masks.py").write_text("def mask_text(text):\n    return text.replace('@', '#')\n")
    (package / "hook.py").write_text(
        "from shop import privacy\nfrom . import mask as m\n"
        "class One:\n    def process_response(self, response):\n        return m(response)\n"
        "class Two:\n    def process_response(self, response):\n        return privacy.mask(response)\n"
    )
    assert {v.class_name: v.status for v in audit_path(tmp_path).verdicts} == {"One": "active", "Two": "active"}


KEEPS = "def scrub(text):\n    return text\n"
MASKS = "def scrub(text):\n    return text.replace('@', '#')\n"
CALLS = "class Hook:\n    def process_response(self, response):\n        return scrub(response)\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"{KEEPS}from masks import *\n", "active"),
        (f"from masks import *\n{KEEPS}", "inactive"),
        ("from keeps import *\nfrom masks import *\n", "active"),
        ("from masks import *\nfrom keeps import *\n", "inactive"),
        (f"{KEEPS}from listed import *\n", "inactive"),
    ],
    ids=["below", "above", "the last of two", "the other way round", "not in __all__"],
)
def test_a_star_import_takes_the_place_of_what_stands_above_it(head, status):
    modules = {"main": head + CALLS, "masks": MASKS, "keeps": KEEPS, "listed": f"__all__ = ['other']\n{MASKS}"}
    (verdict,) = audit_source(modules, class_name="Hook", hooks=["process_response"])
    assert verdict.status == status


def test_a_function_of_another_module_is_what_this_module_makes_it():
    main = "import masks\nmasks.scrub = lambda text: text\n" + CALLS.replace("scrub(", "masks.scrub(")
    (verdict,) = audit_source({"main": main, "masks": MASKS}, class_name="Hook", hooks=["process_response"])
    assert verdict.status == "inactive"


def test_a_module_is_located_by_name_without_importing_its_parents(monkeypatch, tmp_path):
    package = tmp_path / "noisy_parent"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "inner" / "hooks.py").write_text(GOOD)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert locate("noisy_parent.inner.hooks") == package / "inner" / "hooks.py"
    assert locate("noisy_parent") == package


def test_what_is_neither_path_nor_module_is_refused():
    with pytest.raises(DataError, match="no such file or folder"):
        locate("no/such/place")


def test_an_unknown_class_is_refused_with_a_hint():
    with pytest.raises(DataError, match='did you mean "Masker"'):
        audit_source(GOOD, class_name="Maskr", hooks=["process_response"])


def test_a_tree_without_python_has_no_hooks(tmp_path):
    assert load_tree(tmp_path).files == ()
    assert audit_path(tmp_path).verdicts == ()
