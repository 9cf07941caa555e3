"""The finders by themselves, on normalised text."""

from __future__ import annotations

import pytest

from mragaudit.pii import email, phone, ssn
from mragaudit.pii.cues import ID, ID_CUES, OTHER_CUES, announced
from mragaudit.pii.lookalikes import blank_lookalikes


@pytest.mark.parametrize("language", sorted(ID_CUES))
def test_every_cue_of_a_language_announces_a_bare_id(language: str) -> None:
    for cue in ID_CUES[language]:
        assert ssn.find_unicode(f"{cue}: 219099999") == [(len(cue) + 2, len(cue) + 11)], cue


@pytest.mark.parametrize("language", sorted(OTHER_CUES))
def test_every_name_of_another_number_keeps_a_bare_number_from_being_an_id(language: str) -> None:
    for cue in OTHER_CUES[language]:
        assert ssn.find_unicode(f"{cue}: 219099999") == [], cue


def test_a_cue_in_the_sentence_before_announces_nothing() -> None:
    assert ssn.find_unicode("He lost his passport. 219099999 units were sold.") == []


def test_a_cue_too_far_before_announces_nothing() -> None:
    assert not announced("ssn" + " x" * 40 + " 219099999", (84, 93), cues=ID)


def test_a_sentence_may_say_afterwards_what_the_number_is() -> None:
    assert ssn.find_unicode("219099999是她的身份证号码") == [(0, 9)]


@pytest.mark.parametrize("area", ["000", "666", "900", "999"])
def test_areas_that_were_never_issued_count(area: str) -> None:
    assert ssn.find_unicode(f"{area}-12-3456") == [(0, 11)]


def test_an_id_is_no_piece_of_a_telephone_number() -> None:
    assert ssn.find_unicode("+49 219 09 9999") == []


def test_an_extension_belongs_to_the_telephone_number() -> None:
    assert phone.find_unicode("(212)555-0142x8901!") == [(0, 18)]


def test_trailing_groups_beyond_fifteen_digits_are_cut_off() -> None:
    assert phone.find_unicode("+49 30 901820 14 2026 03 14 12") == [(0, 16)]


def test_a_domain_in_punycode_is_a_domain() -> None:
    assert email.find_unicode("an anna@xn--bcher-kva.example bitte") == [(3, 29)]


def test_lookalikes_are_blanked_in_place() -> None:
    text = "IP 192.168.100.200, am 2024-01-15 12 Uhr"
    blanked = blank_lookalikes(text)
    assert len(blanked) == len(text)
    assert not any(map(str.isdecimal, blanked))
