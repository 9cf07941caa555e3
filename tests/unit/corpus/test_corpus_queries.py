from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from mragaudit.corpus.queries import attack_queries, benign_queries, query_id_of
from mragaudit.corpus.synthesis import synthesise
from mragaudit.corpus.templates import QueryTemplates, load_corpus_templates, load_query_templates
from mragaudit.errors import DataError
from mragaudit.records.documents import Document
from mragaudit.records.queries import PARAPHRASES, Query

RESOURCES = Path(__file__).parents[3] / "resources"


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return synthesise(
        n_documents=100,
        min_words=40,
        max_words=70,
        n_facts=2,
        templates=load_corpus_templates(RESOURCES / "corpus"),
        rng=np.random.default_rng(5),
        seed=5,
    )


@pytest.fixture(scope="module")
def templates() -> QueryTemplates:
    return load_query_templates(RESOURCES / "corpus")


@pytest.fixture(scope="module")
def attacks(documents: list[Document], templates: QueryTemplates) -> list[Query]:
    return attack_queries(documents, templates, paraphrases=PARAPHRASES)


def test_each_document_is_attacked_once_in_each_shape(documents: list[Document], attacks: list[Query]) -> None:
    pairs = [(query.doc_id, query.paraphrase) for query in attacks]
    assert pairs == [(document.doc_id, shape) for document in documents for shape in PARAPHRASES]


def test_a_query_is_one_short_line_with_the_anchor_and_no_planted_value(
    documents: list[Document], attacks: list[Query]
) -> None:
    anchors = {document.doc_id: document.anchor for document in documents}
    planted = [document.pii_value.casefold() for document in documents]
    for query in attacks:
        longest = 40 if query.paraphrase == "icl" else 30
        assert 10 <= len(query.text.split()) <= longest, query.text
        assert "\n" not in query.text
        assert query.text.count(anchors[str(query.doc_id)]) == 1
        assert not any(value in query.text.casefold() for value in planted)


def test_ids_are_unique_and_follow_from_the_content(attacks: list[Query]) -> None:
    assert len({query.query_id for query in attacks}) == 300
    query = attacks[0]
    assert query.query_id == query_id_of(
        doc_id=query.doc_id,
        intent="attack",
        paraphrase=query.paraphrase,
        text=query.text,
        lang="en",
        query_source="template",
        author=None,
    )


def test_the_id_of_a_known_query_stays_what_it_was() -> None:
    known = query_id_of(
        doc_id="d1",
        intent="attack",
        paraphrase="direct",
        text="Wer?",
        lang="de",
        query_source="human",
        author="é",
    )
    # printf '["d1", "attack", "direct", "Wer?", "de", "human", "\\u00e9"]' | sha256sum
    assert known == "qd95ca454a399"


def test_the_wording_of_a_document_does_not_depend_on_the_others(
    documents: list[Document], templates: QueryTemplates, attacks: list[Query]
) -> None:
    assert attack_queries(documents[40:41], templates, paraphrases=PARAPHRASES) == attacks[120:123]


def test_wordings_vary_within_a_shape_and_kind(documents: list[Document], attacks: list[Query]) -> None:
    by_id = {document.doc_id: document for document in documents}
    stems: dict[tuple[str | None, str], set[str]] = defaultdict(set)
    for query in attacks:
        document = by_id[str(query.doc_id)]
        stem = re.sub(rf"(case |ticket |contract )?{document.anchor}", "…", query.text)
        stems[query.paraphrase, document.pii_type].add(stem)
    assert {shape: {len(found) for (name, _), found in stems.items() if name == shape} for shape in PARAPHRASES} == {
        "direct": {4},
        "summary": {3},
        "icl": {3},
    }


def test_the_example_gives_way_when_the_corpus_holds_its_value(templates: QueryTemplates) -> None:
    first, second = templates.example_values["name"]
    document = Document(
        doc_id="u1",
        topic="imported",
        pii_type="name",
        pii_value=first,
        anchor="Alpha",
        anchor_type="imported",
        level="confidential",
        text=f"Alpha is led by {first}.",
        facts=(),
    )
    (query,) = attack_queries([document], templates, paraphrases=["icl"])
    assert second in query.text
    assert first not in query.text


def test_a_corpus_that_holds_every_example_is_refused(templates: QueryTemplates, documents: list[Document]) -> None:
    named = next(document for document in documents if document.pii_type == "name")
    poor = replace(templates, example_values={**templates.example_values, "name": (named.pii_value.upper(),)})
    with pytest.raises(DataError, match=r'key "examples.name": every example holds something of the corpus'):
        attack_queries(documents, poor, paraphrases=["icl"])


def test_braces_in_an_anchor_stay_as_they_are(templates: QueryTemplates, documents: list[Document]) -> None:
    hostile = msgspec.structs.replace(
        documents[0], anchor="{{7*7}} {reference}", text=documents[0].text + " {{7*7}} {reference}"
    )
    for query in attack_queries([hostile], templates, paraphrases=PARAPHRASES):
        assert "{{7*7}} {reference}" in query.text


@pytest.mark.parametrize(("n_per_document", "expected"), [(0, 0), (1, 100), (2, 200), (5, 200)])
def test_benign_queries_are_the_first_facts_of_each_document(
    documents: list[Document], n_per_document: int, expected: int
) -> None:
    queries = benign_queries(documents, n_per_document=n_per_document)
    assert len({query.query_id for query in queries}) == expected
    assert all(query.intent == "benign" and query.expected_answer and query.paraphrase is None for query in queries)


def test_no_documents_give_no_queries(templates: QueryTemplates) -> None:
    assert attack_queries([], templates, paraphrases=PARAPHRASES) == []
    assert benign_queries([], n_per_document=1) == []
