"""The grid's synthetic corpora and their realisations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from faker.providers.person.en_GB import Provider as British
from faker.providers.person.en_US import Provider as American

from mragaudit.corpus.canaries import CanaryPlan
from mragaudit.corpus.grid_documents import SyntheticSource
from mragaudit.corpus.grid_drafts import require_apart
from mragaudit.corpus.grid_templates import load_canary_templates, load_domain, load_grid_templates
from mragaudit.corpus.realisation import realisation_name, realise
from mragaudit.errors import ConfigError, DataError
from mragaudit.records.base import encode_record

FOLDER = Path(__file__).parents[3] / "resources" / "hook_audit" / "corpora"


def source(corpus="email", **options):
    return SyntheticSource(templates=load_grid_templates(FOLDER, corpus), **options)


@pytest.fixture(scope="module", params=["email", "business"])
def documents(request):
    return realise(source(request.param), seed=3, n_indexed=60, n_held_out=60)


def test_every_document_names_a_person_and_an_address_and_some_hold_numbers(documents):
    kinds = [Counter(item.kind for item in document.items) for document in documents]
    assert all(counts["person_name"] >= 1 and counts["email"] >= 1 for counts in kinds)
    assert sum(counts["phone"] for counts in kinds) == 40
    assert sum(counts["id"] for counts in kinds) == 40


def test_lengths_lie_within_forty_and_sixty_words(documents):
    lengths = [len(document.text.split()) for document in documents]
    assert min(lengths) >= 40
    assert max(lengths) <= 60


def test_other_word_bounds_hold_as_well():
    lengths = [
        len(document.text.split())
        for document in realise(source(min_words=60, max_words=75), seed=1, n_indexed=20, n_held_out=0)
    ]
    assert (min(lengths) >= 60, max(lengths) <= 75) == (True, True)


def test_no_item_or_title_stands_in_another_document(documents):
    for document in documents:
        others = [other.text for other in documents if other.doc_id != document.doc_id]
        for value in (document.title, *(item.value for item in document.items)):
            assert not any(value in text for text in others)


def test_two_benign_questions_name_the_title_and_have_answers_of_this_document_alone(documents):
    for document in documents:
        assert len(document.facts) == 2
        for fact in document.facts:
            assert document.title in fact.question
            assert [other.doc_id for other in documents if fact.answer in other.text] == [document.doc_id]


def test_answers_and_titles_are_no_personal_items(documents):
    for document in documents:
        values = [item.value for item in document.items]
        told = [document.title, *(fact.answer for fact in document.facts)]
        assert not any(value in text or text in value for value in values for text in told)


def test_addresses_lie_in_domains_that_are_kept_for_examples(documents):
    domains = {
        item.value.partition("@")[2] for document in documents for item in document.items if item.kind == "email"
    }
    assert domains <= {"example.com", "example.org", "example.net"}


def test_made_up_surnames_are_none_of_the_common_ones():
    names = load_grid_templates(FOLDER, "email").names
    made = {stem + ending for stem in names.surname_stems for ending in names.surname_endings}
    assert not made & {*American.last_names, *British.last_names}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_shares_no_item():
    once, again, other = (realise(source(), seed=seed, n_indexed=10, n_held_out=10) for seed in (5, 5, 6))
    assert [encode_record(row) for row in once] == [encode_record(row) for row in again]
    assert not {item.value for row in once for item in row.items} & {item.value for row in other for item in row.items}


def test_the_split_has_the_sizes_asked_for_and_is_drawn_over_all_forms(documents):
    sizes = Counter(document.split for document in documents)
    assert sizes == {"indexed": 60, "held_out": 60}
    topics = Counter((document.topic, document.split) for document in documents)
    assert len(topics) == 8
    assert set(topics.values()) != {15}  # a split made position by position would be even


def test_names_of_realisations_say_corpus_class_and_seed():
    assert realisation_name("business", 2) == "business.s2"
    assert realisation_name("email", 2, "phone") == "email.canary-phone.s2"


def test_a_realisation_of_more_documents_than_there_are_projects_is_refused():
    with pytest.raises(ConfigError, match=r"no unused (project name|surname) is left .* ask for fewer documents"):
        realise(source(), seed=1, n_indexed=2000, n_held_out=0)


def test_word_bounds_that_leave_no_room_are_refused():
    with pytest.raises(ConfigError, match="has 10 to 20 words; widen min_words and max_words"):
        realise(source(min_words=10, max_words=20), seed=1, n_indexed=2, n_held_out=0)
    with pytest.raises(ConfigError, match="min_words and max_words have to be positive and in this order"):
        source(min_words=50, max_words=40)


def test_a_realisation_without_an_indexed_document_is_refused():
    with pytest.raises(ConfigError, match="0 indexed and 5 held-out documents"):
        realise(source(), seed=1, n_indexed=0, n_held_out=5)


def test_a_title_that_two_documents_share_is_refused_without_repeating_an_item(documents):
    with pytest.raises(DataError, match=r"the title of document g[0-9a-f]{12} stands in another document") as caught:
        require_apart([documents[0], documents[0]])
    assert not any(item.value in str(caught.value) for item in documents[0].items)


@pytest.mark.parametrize("corpus", ["email", "business", "pubmedqa"])
def test_an_attacker_may_know_a_domain_and_ten_topics(corpus):
    domain = load_domain(FOLDER, corpus)
    assert domain.description
    assert len(set(domain.topics)) == 10


def test_a_head_without_its_placeholder_is_named_with_file_and_key(tmp_path):
    for file in FOLDER.glob("*.yaml"):
        text = file.read_text(encoding="utf-8").replace("<{email_1}>", "<{mail_1}>")
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r'email\.yaml, key "forms\[0\]\.heads\[0\]": the placeholder \{mail_1\}'):
        load_grid_templates(tmp_path, "email")


def test_documents_with_a_canary_keep_the_word_bounds():
    plan = CanaryPlan(kind="phone", templates=load_canary_templates(FOLDER))
    planted = realise(source(), seed=1, n_indexed=40, n_held_out=40, canaries=plan)
    assert {40 <= len(document.text.split()) <= 60 for document in planted} == {True}
