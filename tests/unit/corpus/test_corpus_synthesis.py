from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from faker.providers.person.en_US import Provider

from mragaudit.corpus.synthesis import Draft, draft_documents, synthesise
from mragaudit.corpus.templates import CorpusTemplates, load_corpus_templates
from mragaudit.corpus.values import ValueSource
from mragaudit.errors import ConfigError
from mragaudit.records.base import encode_record
from mragaudit.records.documents import PII_TYPES, Document

RESOURCES = Path(__file__).parents[3] / "resources"
WORDS = re.compile(r"[^\W\d_]+")


@pytest.fixture(scope="module")
def templates() -> CorpusTemplates:
    return load_corpus_templates(RESOURCES / "corpus")


def make(
    templates: CorpusTemplates,
    *,
    seed: int = 7,
    n_documents: int = 100,
    min_words: int = 40,
    max_words: int = 70,
    n_facts: int = 2,
) -> list[Document]:
    return synthesise(
        n_documents=n_documents,
        min_words=min_words,
        max_words=max_words,
        n_facts=n_facts,
        templates=templates,
        rng=np.random.default_rng(seed),
        seed=seed,
    )


@pytest.fixture(scope="module")
def documents(templates: CorpusTemplates) -> list[Document]:
    return make(templates)


@pytest.fixture(scope="module")
def drafts(templates: CorpusTemplates) -> list[Draft]:
    return draft_documents(
        n_documents=100,
        min_words=40,
        max_words=70,
        n_facts=2,
        templates=templates,
        rng=np.random.default_rng(7),
        seed=7,
    )


def values(documents: list[Document], kind: str) -> list[str]:
    return [document.pii_value for document in documents if document.pii_type == kind]


def test_a_hundred_documents_are_five_a_topic_and_kind(documents: list[Document]) -> None:
    strata = Counter((document.topic, document.pii_type) for document in documents)
    assert len(strata) == 20
    assert set(strata.values()) == {5}


@pytest.mark.parametrize("n_documents", [5, 10, 30, 45])
def test_kinds_are_equal_and_strata_differ_by_at_most_one(templates: CorpusTemplates, n_documents: int) -> None:
    documents = make(templates, n_documents=n_documents)
    kinds = Counter(document.pii_type for document in documents)
    topics = [document.topic for document in documents]
    assert [kinds[kind] for kind in PII_TYPES] == [n_documents // 5] * 5
    assert len(set(topics)) == 4
    for kind in PII_TYPES:
        counts = Counter(document.topic for document in documents if document.pii_type == kind)
        rows = [counts[topic] for topic in set(topics)]
        assert max(rows) - min(rows) <= 1


@pytest.mark.parametrize(
    ("low", "high", "n_facts"), [(40, 70, 2), (80, 200, 2), (80, 200, 3), (195, 200, 2), (50, 70, 2)]
)
def test_every_document_keeps_the_word_bounds(templates: CorpusTemplates, low: int, high: int, n_facts: int) -> None:
    documents = make(templates, min_words=low, max_words=high, n_facts=n_facts)
    lengths = [len(document.text.split()) for document in documents]
    assert min(lengths) >= low
    assert max(lengths) <= high


@pytest.mark.parametrize("seed", [0, 11])
def test_the_same_seed_gives_the_same_bytes(templates: CorpusTemplates, seed: int) -> None:
    once, again = make(templates, seed=seed), make(templates, seed=seed)
    assert [encode_record(row) for row in once] == [encode_record(row) for row in again]


def test_another_seed_gives_other_values(templates: CorpusTemplates, documents: list[Document]) -> None:
    other = {document.pii_value for document in make(templates, seed=8)}
    assert not other & {document.pii_value for document in documents}


def test_documents_are_sorted_by_an_id_that_hashes_the_text(documents: list[Document]) -> None:
    ids = [document.doc_id for document in documents]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch("d[0-9a-f]{12}", doc_id) for doc_id in ids)


def test_no_two_documents_share_a_sequence_of_sentence_templates(drafts: list[Draft]) -> None:
    assert len({draft.skeleton for draft in drafts}) == 100


def test_no_document_repeats_a_sentence_even_at_two_hundred_words(templates: CorpusTemplates) -> None:
    drafts = draft_documents(
        n_documents=40,
        min_words=190,
        max_words=200,
        n_facts=2,
        templates=templates,
        rng=np.random.default_rng(1),
        seed=1,
    )
    assert all(len(set(draft.skeleton)) == len(draft.skeleton) for draft in drafts)


def test_openings_vary(drafts: list[Draft]) -> None:
    assert max(Counter(draft.skeleton[0] for draft in drafts).values()) <= 10


def test_values_and_anchors_are_unique(documents: list[Document]) -> None:
    assert len({document.pii_value.casefold() for document in documents}) == 100
    assert len({document.anchor.casefold() for document in documents}) == 100


def test_no_anchor_begins_another_one(documents: list[Document]) -> None:
    anchors = sorted(document.anchor.casefold() for document in documents)
    assert not any(after.startswith(before) for before, after in pairwise(anchors))


def test_anchors_have_four_kinds_and_look_like_no_personal_item(documents: list[Document]) -> None:
    shapes = {
        "project": r"Project [A-Z][a-z]+ [A-Z][a-z]+",
        "case": r"MC-[1-9]\d{3}-[A-Z]{2}",
        "ticket": r"TK-[1-9]\d{3}-[A-Z]{2}",
        "contract": r"CT-[1-9]\d{3}-[A-Z]{2}",
    }
    assert {document.anchor_type for document in documents} == set(shapes)
    for document in documents:
        assert re.fullmatch(shapes[document.anchor_type], document.anchor)


def test_each_value_stands_in_its_own_document_once_and_in_no_other(documents: list[Document]) -> None:
    for document in documents:
        holders = [other.doc_id for other in documents if document.pii_value in other.text]
        assert holders == [document.doc_id]
        assert document.text.count(document.pii_value) == 1


def test_emails_are_at_the_reserved_domains(documents: list[Document]) -> None:
    assert len(values(documents, "email")) == 20
    assert all(re.fullmatch(r"[a-z0-9.]+@example\.(com|org|net)", value) for value in values(documents, "email"))


def test_phones_are_in_the_fictional_range_with_several_formats_and_areas(documents: list[Document]) -> None:
    phones = values(documents, "phone")
    digits = [re.sub(r"\D", "", value)[-10:] for value in phones]
    assert all(re.fullmatch(r"[2-9]\d{2}55501\d{2}", value) for value in digits)
    assert len({value[:3] for value in digits}) > 10
    assert len({re.sub(r"\d", "9", value) for value in phones}) == 4


def test_ids_lie_in_areas_never_issued_and_half_are_bare(documents: list[Document]) -> None:
    ids = values(documents, "id")
    assert all(re.fullmatch(r"(000|666|9\d\d)(-?)(?!00)\d\d\2(?!0000)\d{4}", value) for value in ids)
    assert sum("-" in value for value in ids) == 10


def test_addresses_run_over_two_lines(documents: list[Document]) -> None:
    shape = r"[1-9]\d* [A-Z][a-z]+ [A-Z][a-z]+\n[A-Z][a-z]+( [A-Z][a-z]+)?, [A-Z]{2} \d{5}"
    assert all(re.fullmatch(shape, value) for value in values(documents, "address"))


def test_first_lines_of_addresses_do_not_contain_each_other(documents: list[Document]) -> None:
    firsts = [value.split("\n")[0] for value in values(documents, "address")]
    assert not any(one in other for one in firsts for other in firsts if one is not other)


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_no_word_of_a_planted_name_occurs_anywhere_else(templates: CorpusTemplates, seed: int) -> None:
    documents = make(templates, seed=seed, n_documents=200)
    names = values(documents, "name")
    words = Counter(
        word.casefold()
        for document in documents
        for part in (document.text, document.topic, *(fact.question for fact in document.facts))
        for word in WORDS.findall(part)
    )
    assert all(len(name.split()) == 2 for name in names)
    assert {words[word.casefold()] for name in names for word in name.split()} == {1}


def test_no_email_holds_a_word_of_a_planted_name(documents: list[Document]) -> None:
    words = [word.casefold() for name in values(documents, "name") for word in name.split()]
    assert not any(word in email for word in words for email in values(documents, "email"))


def test_the_anchor_stands_within_two_sentences_before_the_item_or_beside_it(
    documents: list[Document],
) -> None:
    for document in documents:
        start = document.text.index(document.anchor)
        between = document.text[start : document.text.index(document.pii_value)]
        assert len(between.split()) <= 25


def test_facts_have_a_question_with_the_anchor_and_an_answer_in_the_text_once(
    documents: list[Document],
) -> None:
    for document in documents:
        assert len(document.facts) == 2
        for fact in document.facts:
            assert document.anchor in fact.question
            assert document.text.count(fact.answer) == 1
            assert fact.answer not in fact.question
            assert fact.answer not in document.pii_value


def test_answers_are_unique_in_the_corpus(documents: list[Document]) -> None:
    answers = [fact.answer for document in documents for fact in document.facts]
    assert len(set(answers)) == 200


def test_levels_follow_the_weights_of_the_topic(documents: list[Document]) -> None:
    levels = {document.level for document in documents}
    medical = {document.level for document in documents if document.topic == "medical_note"}
    assert levels == {"public", "internal", "confidential", "restricted"}
    assert "public" not in medical


@pytest.mark.parametrize("n_documents", [0, -5, 7])
def test_a_number_that_is_no_positive_multiple_of_five_is_refused(templates: CorpusTemplates, n_documents: int) -> None:
    with pytest.raises(ConfigError, match=rf"n_documents is {n_documents}; .* multiple of 5"):
        make(templates, n_documents=n_documents)


@pytest.mark.parametrize(
    ("low", "high", "n_facts", "message"),
    [
        (70, 40, 2, "in this order"),
        (40, 70, 1, "at least 2 facts"),
        (40, 70, 99, "n_facts is 99; topic"),
        (400, 500, 2, "widen corpus.min_words"),
        (10, 20, 2, "widen corpus.min_words"),
    ],
)
def test_bounds_that_leave_no_room_are_refused(
    templates: CorpusTemplates, low: int, high: int, n_facts: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make(templates, n_documents=5, min_words=low, max_words=high, n_facts=n_facts)


def test_names_that_run_out_are_refused_instead_of_repeated(templates: CorpusTemplates) -> None:
    all_names = {name.casefold() for name in (*Provider.first_names, *Provider.last_names)}
    source = ValueSource(
        words=templates.words,
        vocabulary=frozenset(all_names),
        n_ids=0,
        rng=np.random.default_rng(0),
        seed=0,
    )
    with pytest.raises(ConfigError, match=r"no unused word for a person's name .* lower corpus.n_documents"):
        source.draw("name")
