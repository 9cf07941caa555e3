"""PubMedQA from a file of the published layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mragaudit.corpus.canaries import CanaryPlan
from mragaudit.corpus.grid_templates import load_canary_templates
from mragaudit.corpus.pubmedqa import PubMedSource, read_articles
from mragaudit.corpus.realisation import realise
from mragaudit.errors import ConfigError, DataError

RESOURCES = Path(__file__).parents[3] / "resources"
SMALL = RESOURCES / "examples" / "pubmedqa_small.json"


def write(tmp_path, change):
    entries = json.loads(SMALL.read_text(encoding="utf-8"))
    change(entries[min(entries)])
    path = tmp_path / "articles.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def test_a_document_is_the_question_and_the_labelled_contexts_without_the_conclusion():
    (document,) = realise(PubMedSource(articles=read_articles(SMALL), in_order=True), seed=1, n_indexed=1, n_held_out=0)
    first = next(iter(json.loads(SMALL.read_text(encoding="utf-8")).values()))
    parts = [f"{label}: {text}" for label, text in zip(first["LABELS"], first["CONTEXTS"], strict=True)]
    assert document.text == first["QUESTION"] + "\n\n" + " ".join(parts)
    assert first["LONG_ANSWER"] not in document.text
    assert (document.title, document.items) == (first["QUESTION"], ())
    assert [(fact.question, fact.answer) for fact in document.facts] == [(first["QUESTION"], "yes")]


def test_in_order_the_first_articles_are_indexed_and_the_next_held_out():
    articles = read_articles(SMALL)
    documents = realise(PubMedSource(articles=articles, in_order=True), seed=9, n_indexed=5, n_held_out=7)
    titles = {split: {d.title for d in documents if d.split == split} for split in ("indexed", "held_out")}
    assert titles["indexed"] == {article.question for article in articles[:5]}
    assert titles["held_out"] == {article.question for article in articles[5:12]}


def test_otherwise_a_seeded_sample_is_drawn():
    source = PubMedSource(articles=read_articles(SMALL))
    one, same, other = (realise(source, seed=seed, n_indexed=6, n_held_out=6) for seed in (1, 1, 2))
    assert one == same
    assert {document.title for document in one} != {document.title for document in other}


def test_the_topic_is_the_first_heading_that_says_what_was_studied(tmp_path):
    def tags_only(entry):
        entry["MESHES"] = ["Humans", "Female"]

    documents = realise(
        PubMedSource(articles=read_articles(write(tmp_path, tags_only)), in_order=True),
        seed=1,
        n_indexed=2,
        n_held_out=0,
    )
    assert {document.topic for document in documents} == {"biomedicine", "Soil Microbiology"}


def test_canaries_are_planted_into_the_body():
    plan = CanaryPlan(kind="email", templates=load_canary_templates(RESOURCES / "hook_audit" / "corpora"))
    documents = realise(PubMedSource(articles=read_articles(SMALL)), seed=1, n_indexed=12, n_held_out=12, canaries=plan)
    assert all([item.canary for item in document.items] == [True] for document in documents)
    assert all(document.text.startswith(document.title) for document in documents)


def test_of_articles_with_one_question_the_first_is_used(tmp_path):
    def repeat(entry):
        entry["QUESTION"] = "Is cold storage of soil samples necessary before counting Nematodes?"

    articles = read_articles(write(tmp_path, repeat))
    with pytest.raises(ConfigError, match="24 documents are asked for, and the PubMedQA file has 23 articles"):
        realise(PubMedSource(articles=articles), seed=1, n_indexed=24, n_held_out=0)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("QUESTION", "  ", '"QUESTION" is empty'),
        ("QUESTION", None, r"Expected `str`, got `null` - at `\$.QUESTION`"),
        ("CONTEXTS", "a text", r"\$.CONTEXTS"),
        ("CONTEXTS", [], '"CONTEXTS" needs at least one text'),
        ("LABELS", ["BACKGROUND"], '"LABELS" has 1 entries for 3'),
        ("final_decision", "perhaps", r"Invalid enum value 'perhaps' - at `\$.final_decision`; .*yes, no or maybe"),
        ("MESHES", ["\ud800"], "half of a surrogate pair"),
    ],
)
def test_a_bad_entry_is_named_with_file_and_key(tmp_path, key, value, message):
    with pytest.raises(DataError, match=rf'articles\.json, key "90000001": .*{message}'):
        read_articles(write(tmp_path, lambda entry: entry.update({key: value})))


def test_a_missing_key_is_named(tmp_path):
    with pytest.raises(DataError, match=r'key "90000001": .*missing required field `MESHES`'):
        read_articles(write(tmp_path, lambda entry: entry.pop("MESHES")))


def test_a_missing_file_a_broken_one_and_a_list_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"give the path of the published ori_pqal\.json"):
        read_articles(tmp_path / "none.json")
    with pytest.raises(ConfigError, match=r"this cannot be read \(Is a directory\); give the path"):
        read_articles(tmp_path)
    for content, message in (
        (b"{", "this is no JSON"),
        (b"[" * 100_000, "this is no JSON"),
        (b'{"1": ' + b"9" * 5000 + b"}", "this is no JSON"),
        ('{"1": "é"}'.encode("latin-1"), "this is no JSON in UTF-8"),
        (b'{"1": {}, "2": {}, "1": {}}', '.*the key "1" stands twice'),
        (b"[]", "an object of PubMed ids"),
    ):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(DataError, match=rf"bad\.json: {message}"):
            read_articles(tmp_path / "bad.json")
