"""Canaries: one a document, unique, and in nobody's vocabulary."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from mragaudit.corpus.canaries import CanaryPlan, draw_canaries, fold, shared_words
from mragaudit.corpus.grid_documents import SyntheticSource
from mragaudit.corpus.grid_templates import load_canary_templates, load_grid_templates, read_vocabulary
from mragaudit.corpus.realisation import realise
from mragaudit.errors import ConfigError, DataError
from mragaudit.records.grid import ITEM_KINDS

FOLDER = Path(__file__).parents[3] / "resources" / "hook_audit" / "corpora"
TEMPLATES = load_canary_templates(FOLDER)


def realised(kind, *, seed=1, n=30, **options):
    source = SyntheticSource(templates=load_grid_templates(FOLDER, "email"))
    plan = CanaryPlan(kind=kind, templates=TEMPLATES, **options)
    return realise(source, seed=seed, n_indexed=n, n_held_out=n, canaries=plan)


def canaries(documents):
    return [item for document in documents for item in document.items if item.canary]


def draw(kind, texts, *, seed=1, **options):
    plan = CanaryPlan(kind=kind, templates=TEMPLATES, **options)
    return draw_canaries(plan, texts, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("kind", ITEM_KINDS)
def test_every_document_indexed_or_not_carries_one_canary_of_the_class(kind):
    documents = realised(kind)
    assert [[item.kind for item in document.items if item.canary] for document in documents] == [[kind]] * 60
    assert {document.realisation for document in documents} == {f"email.canary-{kind}.s1"}


@pytest.mark.parametrize("kind", ITEM_KINDS)
def test_folded_no_canary_stands_inside_another_or_in_the_text_of_another_document(kind):
    documents = realised(kind)
    values = [fold(item.value) for item in canaries(documents)]
    texts = [fold(document.text) for document in documents]
    for position, value in enumerate(values):
        assert [place for place, other in enumerate(values) if value in other] == [position]
        assert [place for place, text in enumerate(texts) if value in text] == [position]


def test_addresses_have_the_published_form_with_a_running_number():
    values = sorted(item.value for item in canaries(realised("email")))
    assert values == sorted(f"operator{number}@acmetest-internal.canary" for number in range(1, 61))


def test_never_planted_addresses_have_numbers_between_the_planted_ones():
    documents = realised("email")
    numbers = {
        split: [int(re.sub(r"\D", "", item.value)) for item in canaries(d for d in documents if d.split == split)]
        for split in ("indexed", "held_out")
    }
    assert min(numbers["held_out"]) < max(numbers["indexed"])
    assert min(numbers["indexed"]) < max(numbers["held_out"])


def test_phone_numbers_have_areas_that_were_never_issued():
    areas = [re.sub(r"\D", "", item.value)[-10:-7] for item in canaries(realised("phone"))]
    assert all(re.fullmatch("[2-9]9[0-9]", area) for area in areas)


def test_ids_have_areas_that_were_never_issued():
    areas = [int(re.sub(r"\D", "", item.value)[:3]) for item in canaries(realised("id"))]
    assert all(area in {0, 666} or area >= 900 for area in areas)


def test_names_take_latin_han_and_arabic_script_in_turn():
    names = draw("person_name", ["text"] * 6)
    scripts = [unicodedata.name(name[0]).split()[0] for name in names]
    assert scripts == ["LATIN", "CJK", "ARABIC"] * 2
    assert [len(re.split("[ ·]", name)) for name in names] == [2] * 6


def test_a_name_uses_no_forbidden_word_and_no_word_twice():
    free = draw("person_name", ["text"] * 9)
    forbidden = frozenset(word.casefold() for name in free for word in re.split("[ ·]", name))
    names = draw("person_name", ["text"] * 9, forbidden=forbidden)
    words = [word.casefold() for name in names for word in re.split("[ ·]", name)]
    assert not forbidden & set(words)
    assert len(set(words)) == len(words)


def test_a_han_name_does_not_even_hold_a_forbidden_word():
    names = draw("person_name", ["text"] * 30, forbidden=frozenset({"塔", "维"}), scripts=("han",))
    assert not any({"塔", "维"} & set(name) for name in names)


def test_a_name_uses_no_word_of_the_documents():
    (before,) = draw("person_name", ["text"], scripts=("latin",))
    given = before.split()[0]
    (after,) = draw("person_name", [f"{given} was here."], scripts=("latin",))
    assert given not in after.split()


def test_forbidden_syllables_leave_no_name():
    han = frozenset(TEMPLATES.syllables["han"])
    with pytest.raises(ConfigError, match="no unused han word for a name is left"):
        draw("person_name", ["text"], forbidden=han, scripts=("han",))


def test_an_address_that_stands_in_the_corpus_already_is_refused():
    with pytest.raises(DataError, match="a canary address stands in a document"):
        draw("email", ["Write to OPERATOR1@acmetest-internal.canary."])


def test_shared_words_name_what_a_vocabulary_and_the_canaries_have_in_common():
    assert shared_words(["Fensul Yupgri", "塔朵·笪兹"], {"yupgri", "fen", "朵", "maria"}) == ("yupgri", "朵")
    assert shared_words(["Fensul Yupgri"], {"maria"}) == ()


def test_the_vocabulary_of_files_is_their_case_folded_words(tmp_path):
    (tmp_path / "a.yaml").write_text("names: [Maria, 王芳]\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("STRASSE über 12\n", encoding="utf-8")
    words = read_vocabulary([tmp_path / "a.yaml", tmp_path / "b.txt"])
    assert words == {"names", "maria", "王芳", "strasse", "über"}


def test_a_missing_vocabulary_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: this vocabulary is missing"):
        read_vocabulary([tmp_path / "none.yaml"])


def test_no_carrier_names_a_person_or_holds_a_digit():
    for carriers in TEMPLATES.carriers.values():
        assert not any(re.search(r"\d|name_", carrier) for carrier in carriers)
