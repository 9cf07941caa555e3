"""The inventory of a tree: which hooks are found, the subjects, and what is written of them."""

from __future__ import annotations

# ruff: noqa: E501  # source of audited code, one string a line of it
import json
from pathlib import Path

import pytest

from mragaudit.errors import ConfigError, DataError
from mragaudit.hookaudit.baseline import failing, read_baseline, write_baseline
from mragaudit.hookaudit.inventory import audit_path
from mragaudit.hookaudit.maps import ORDER, read_map, shipped_maps
from mragaudit.hookaudit.render import printable, render_json
from mragaudit.hookaudit.sarif import RULE_OF_KIND, RULES, render_sarif

SUBJECTS = Path(__file__).parents[3] / "resources" / "hook_audit" / "subjects"
DISCLAIMER = "It is not code\nof the papers that it is named after, which may have no such fault."


@pytest.fixture(scope="module")
def subjects():
    return {(v.class_name, v.hook): v for v in audit_path(SUBJECTS).verdicts}


@pytest.mark.parametrize("name", ["DPRetrieval", "CompositionAwareDP", "PrivateRAGFilter"])
def test_a_dp_stub_acts_on_scores_and_not_on_generation_or_response(subjects, name):
    found = {hook: subjects[name, hook].status for hook in ("scores", "generation", "response")}
    assert found == {"scores": "active", "generation": "inactive", "response": "inactive"}


def test_lprag_acts_on_documents_and_response(subjects):
    found = {hook: v.status for (name, hook), v in subjects.items() if name == "EntitySubstitution"}
    assert found == {"documents": "active", "response": "active"}


def test_pad_acts_on_the_response_alone(subjects):
    assert {hook: v.status for (name, hook), v in subjects.items() if name == "RegexMasker"} == {"response": "active"}


def test_the_stubs_hide_in_different_ways(subjects):
    assert subjects["DPRetrieval", "generation"].kind == "todo_stub"
    assert subjects["CompositionAwareDP", "response"].kind == "delegates_to_identity"
    assert subjects["PrivateRAGFilter", "response"].kind == "result_discarded"
    assert subjects["PrivateRAGFilter", "generation"].kind == "raises_not_implemented"


def test_a_declaration_stands_beside_the_verdict(subjects):
    verdict = subjects["DPRetrieval", "response"]
    assert (verdict.declared, verdict.status) == (True, "inactive")
    assert subjects["CompositionAwareDP", "generation"].declared is False


@pytest.mark.parametrize("path", sorted(SUBJECTS.glob("*.py")), ids=lambda path: path.stem)
def test_each_subject_says_that_it_is_our_reconstruction(path):
    assert DISCLAIMER in path.read_text(encoding="utf-8")


def test_the_shipped_maps_can_be_read():
    assert tuple(hook_map.name for hook_map in shipped_maps()) == ORDER


def test_a_map_of_the_users_own_is_read_and_used(tmp_path):
    (tmp_path / "map.yaml").write_text(
        "name: house\ndescription: ours\nrules:\n  - hook: response\n    methods: [tidy]\n    bases: [House]\n    subject: [answer]\n"
    )
    (tmp_path / "code.py").write_text(
        "class House:\n    pass\nclass Own(House):\n    def tidy(self, other, answer):\n        return answer\n"
        "class Other:\n    def tidy(self, other, answer):\n        return answer\n"
    )
    inventory = audit_path(tmp_path / "code.py", (read_map(tmp_path / "map.yaml"),))
    assert [(v.class_name, v.map, v.status) for v in inventory.verdicts] == [("Own", "house", "inactive")]


def test_an_unknown_key_of_a_map_is_named(tmp_path):
    (tmp_path / "map.yaml").write_text("name: x\ndescription: y\nrules:\n  - hook: answer\n    methods: [a]\n")
    with pytest.raises(ConfigError, match=r"map\.yaml.*rules\[0\]\.hook"):
        read_map(tmp_path / "map.yaml")


def test_abstract_methods_and_protocols_are_no_hooks(tmp_path):
    (tmp_path / "code.py").write_text(
        "from abc import ABC, abstractmethod\nfrom typing import Protocol\n"
        "class Hook(Protocol):\n    def process_response(self, response): ...\n"
        "class Base(ABC):\n    @abstractmethod\n    def process_response(self, response): ...\n"
        "class Real(Base):\n    def process_response(self, response):\n        return response\n"
    )
    assert [v.class_name for v in audit_path(tmp_path).verdicts] == ["Real"]


FRAMEWORKS = """
from langchain_core.documents.compressor import BaseDocumentCompressor
from langchain_core.retrievers import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from haystack import component
import re

class Compressor(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        return [d for d in documents if d.metadata["score"] > 0.5]

class Wrapper(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return self.base.invoke(query)

class Masking(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        found = self.base.invoke(query)
        for document in found:
            document.page_content = re.sub("@", "#", document.page_content)
        return found

class Post(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        if query_bundle is None:
            raise ValueError("a query is needed")
        return nodes

@component
class Cleaner:
    @component.output_types(documents=list)
    def run(self, documents: list):
        return {"documents": documents}

@component
class Retriever:
    @component.output_types(documents=list)
    def run(self, query: str):
        return {"documents": self.store.search(query)}
"""


def test_hooks_of_the_frameworks_are_found_by_base_class_and_decorator(tmp_path):
    (tmp_path / "code.py").write_text(FRAMEWORKS)
    found = {v.class_name: (v.map, v.hook, v.status) for v in audit_path(tmp_path).verdicts}
    assert found == {
        "Compressor": ("langchain", "documents", "active"),
        "Wrapper": ("langchain", "documents", "inactive"),
        "Masking": ("langchain", "documents", "active"),
        "Post": ("llama_index", "documents", "inactive"),
        "Cleaner": ("haystack", "documents", "inactive"),
    }


def test_functions_of_a_module_are_guessed_by_name_and_parameter(tmp_path):
    (tmp_path / "code.py").write_text(
        "def redact(text):\n    return text\n\ndef mask_output(answer):\n    return answer.upper()\n\ndef mask(image):\n    return image\n"
    )
    found = {v.method: (v.map, v.status) for v in audit_path(tmp_path).verdicts}
    assert found == {"redact": ("generic", "inactive"), "mask_output": ("generic", "active")}


def test_a_gate_that_always_allows_is_inactive(tmp_path):
    (tmp_path / "code.py").write_text(
        "class A:\n    def allow_query(self, query):\n        return True\n"
        "class B:\n    def allow_query(self, query):\n        return '@' not in query\n"
    )
    found = {v.class_name: (v.status, v.kind) for v in audit_path(tmp_path).verdicts}
    assert found == {"A": ("inactive", "constant_answer"), "B": ("active", None)}


def test_a_finding_keeps_its_fingerprint_when_lines_move(tmp_path):
    code = "class A:\n    def process_response(self, response):\n        return response\n"
    (tmp_path / "code.py").write_text(code)
    (before,) = audit_path(tmp_path).verdicts
    (tmp_path / "code.py").write_text("# a comment\n\n" + code)
    (after,) = audit_path(tmp_path).verdicts
    assert before.line != after.line
    assert before.fingerprint == after.fingerprint


def test_a_baseline_knows_old_findings_and_not_new_ones(tmp_path):
    (tmp_path / "code.py").write_text("class A:\n    def process_response(self, response):\n        return response\n")
    old = audit_path(tmp_path / "code.py")
    assert write_baseline(tmp_path / "baseline.json", old) == 1
    known = read_baseline(tmp_path / "baseline.json")
    assert failing(old, ["inactive"], known=known) == []
    (tmp_path / "code.py").write_text("class B:\n    def process_response(self, response):\n        return response\n")
    new = audit_path(tmp_path / "code.py")
    assert [v.class_name for v in failing(new, ["inactive"], known=known)] == ["B"]


def test_a_missing_baseline_is_named(tmp_path):
    with pytest.raises(DataError, match="missing"):
        read_baseline(tmp_path / "none.json")


def test_sarif_names_rule_file_line_and_fingerprint():
    log = json.loads(render_sarif(audit_path(SUBJECTS), folder="resources/hook_audit/subjects", known=()))
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert (log["version"], rules) == ("2.1.0", list(RULES))
    (stub,) = [r for r in run["results"] if "DPRetrieval.process_generation" in r["message"]["text"]]
    place = stub["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "resources/hook_audit/subjects/dp_r.py"
    assert place["region"]["startLine"] == 27
    assert rules[stub["ruleIndex"]] == stub["ruleId"] == RULE_OF_KIND["todo_stub"]
    assert (stub["level"], stub["baselineState"]) == ("error", "new")
    assert len(stub["partialFingerprints"]["mragauditHook/v1"]) == 32


def test_sarif_has_no_result_for_an_active_hook():
    log = json.loads(render_sarif(audit_path(SUBJECTS / "pad.py"), folder="."))
    assert log["runs"][0]["results"] == []


def test_sarif_tells_of_files_that_could_not_be_audited(tmp_path):
    (tmp_path / "bad file.py").write_text("def (:\n")
    log = json.loads(render_sarif(audit_path(tmp_path), folder="src"))
    (note,) = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/bad%20file.py"


def test_json_counts_every_status():
    report = json.loads(render_json(audit_path(SUBJECTS)))
    assert report["counts"] == {"active": 6, "inactive": 8, "conditional": 0, "unknown": 0}
    assert report["observations"] is None


def test_control_characters_of_the_source_do_not_reach_the_terminal():
    assert printable("a\x1b[31mb\u202ec") == "a\\x1b[31mb\\x202ec"


REBUILT = """
from langchain_core.documents import BaseDocumentCompressor, Document

class Masker(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        return [Document(page_content=d.page_content.replace("@", "#"), metadata=d.metadata) for d in documents]

class Keeper(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        return [Document(page_content=d.page_content, metadata=d.metadata) for d in documents]
"""
ACCESSED = """
from llama_index.core.postprocessor.types import BaseNodePostprocessor

class Masker(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        for node in nodes:
            node.node.set_content(node.node.get_content().replace("@", "#"))
        return nodes

class Reader(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        for node in nodes:
            print(node.node.get_content())
        return nodes
"""


def statuses(tmp_path, text):
    (tmp_path / "hooks.py").write_text(text, encoding="utf-8")
    return {verdict.class_name: verdict.status for verdict in audit_path(tmp_path).verdicts}


def test_a_record_of_the_framework_made_of_changed_fields_is_a_change(tmp_path):
    assert statuses(tmp_path, REBUILT) == {"Masker": "active", "Keeper": "unknown"}


def test_methods_of_records_read_and_write_the_field_that_the_map_names(tmp_path):
    assert statuses(tmp_path, ACCESSED) == {"Masker": "active", "Reader": "inactive"}
