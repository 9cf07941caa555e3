from __future__ import annotations

import re

import numpy as np
import pytest

from driving import EchoTarget, drive, make_tools
from mragaudit.attacks.encodings import ENCODINGS, Encoding
from mragaudit.attacks.probes import (
    CrossLingual,
    Denoise,
    EncodingRoundTrip,
    RepeatUnion,
    SessionReset,
    SplitRequest,
)
from mragaudit.attacks.steps import Ask
from mragaudit.pii.email import find_unicode

TITLES = tuple(f"Project {name}" for name in ("Heron", "Otter", "Kestrel", "Raven"))
TEXTS = [
    "Mara Velten, mv@host.example, A/B 4711",
    "Zoë Ünal",
    "莉娜·韦伯 is here",
    "مريم الحسن",
    "",
    "/",
    " a  b ",
    "x\ny",
]


def anchor_of(question: str) -> str:
    return re.findall(r"[\"“](.+?)[\"”]", question)[0]


# Repeat and union


class NoisyTarget:
    """Retrieves one of ten documents at random: anew at each call, or once and for all."""

    def __init__(self, *, fresh: bool) -> None:
        self.rng, self.fresh, self.kept = np.random.default_rng(5), fresh, None

    def __call__(self, _ask: Ask) -> str:
        if self.fresh or self.kept is None:
            self.kept = f"box{int(self.rng.integers(10))}@host.example"
        return self.kept


def recovered(target: NoisyTarget) -> list[int]:
    """Return how many canaries the first 1, 5, 20, 50 replies hold."""
    replies = drive(RepeatUnion(), target, tools=make_tools(budget=50)).replies
    return [len(set(replies[:count])) for count in (1, 5, 20, 50)]


def test_what_repeats_recover_rises_with_fresh_noise_and_stays_flat_with_kept_noise() -> None:
    rising = recovered(NoisyTarget(fresh=True))
    assert rising == sorted(set(rising))
    assert recovered(NoisyTarget(fresh=False)) == [1, 1, 1, 1]


def test_the_budget_goes_into_one_question_or_into_some_in_turn() -> None:
    assert len(set(drive(RepeatUnion(), lambda _: "", tools=make_tools()).questions)) == 1
    several = drive(RepeatUnion(questions=3), lambda _: "", tools=make_tools()).questions
    assert len(set(several)) == 3
    assert several[0] == several[3] == several[6]


# Encoding round trip


@pytest.mark.parametrize("encoding", [encoding for encoding in ENCODINGS if encoding.lossless], ids=lambda e: e.name)
@pytest.mark.parametrize("text", TEXTS)
def test_lossless_encodings_give_back_any_text_exactly(encoding: Encoding, text: str) -> None:
    assert encoding.decode(encoding.encode(text)) == text


def test_the_other_script_gives_back_texts_without_its_letters() -> None:
    [cyrillic] = [encoding for encoding in ENCODINGS if not encoding.lossless]
    assert cyrillic.encode("Mara, mv@host.example") == "Мара, мв@хост.ежампле"
    assert [cyrillic.decode(cyrillic.encode(text)) for text in TEXTS] == TEXTS


def masked(text: str) -> str:
    """Return the text as a mask of e-mail patterns leaves it."""
    for start, end in reversed(find_unicode(text)):
        text = f"{text[:start]}[E-MAIL]{text[end:]}"
    return text


class EncodingTarget:
    """Writes one address in the form that is asked for, behind a mask of e-mail patterns."""

    value = "maravelten@host.example"  # a dot before the sign would make its reverse an address as well

    def __call__(self, ask: Ask) -> str:
        marks = {"spelled": "Spell", "reversed": "backwards|last letter", "base64": "base64", "cyrillic": "Cyrillic"}
        asked = next(form for form in ENCODINGS if re.search(marks[form.name], ask.text))
        return masked(f"Plainly {self.value}. So: {asked.encode(self.value)}")


def test_a_mask_catches_every_plain_address_and_the_probe_decodes_every_encoded_one() -> None:
    run = drive(EncodingRoundTrip(), EncodingTarget(), tools=make_tools(budget=8))
    assert not any(EncodingTarget.value in reply for reply in run.replies)
    found = {(text.call, text.how) for text in run.outcome.derived if EncodingTarget.value in text.text}
    order = [encoding.name for encoding in ENCODINGS]
    assert found == {(call, order[(call - 1) % 4]) for call in range(1, 9)}


def test_all_encodings_are_asked_for_about_the_same_anchor() -> None:
    questions = drive(EncodingRoundTrip(), lambda _: "", tools=make_tools(budget=8, handles=TITLES)).questions
    assert len({anchor_of(question) for question in questions[:4]}) == 1
    assert anchor_of(questions[4]) != anchor_of(questions[0])


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("It is m-v-@-h-o-s-t now", "mv@host"),
        ("It is m v @ h o s t now", "mv@host"),
        ("M a r a / V e l t e n", "Mara Velten"),
    ],
)
def test_spelled_words_are_found_inside_other_words(reply: str, expected: str) -> None:
    [spelled] = [encoding for encoding in ENCODINGS if encoding.name == "spelled"]
    assert expected in spelled.read(reply)


def test_ordinary_words_and_broken_base64_derive_nothing() -> None:
    [form] = [encoding for encoding in ENCODINGS if encoding.name == "base64"]
    assert form.read("Responsibilities extraordinary /////////// aaaaaaaaaaaaaaa=") == []


def test_base64_without_its_padding_is_read() -> None:
    [form] = [encoding for encoding in ENCODINGS if encoding.name == "base64"]
    assert form.read("bXZAaG9zdC5leGFtcGxl, bXZAaG9zdA") == ["mv@host.example", "mv@host"]


# Denoise


def test_a_person_under_one_pseudonym_in_two_documents_is_a_link() -> None:
    named = {TITLES[0]: "Alex Doe", TITLES[1]: "Alex Doe", TITLES[2]: "Kim Roe", TITLES[3]: "Kim Moe"}
    run = drive(
        Denoise(), lambda ask: f"it names {named[anchor_of(ask.text)]}.", tools=make_tools(budget=4, handles=TITLES)
    )
    assert [link.name for link in run.outcome.links] == ["Alex Doe"]
    assert [anchor_of(run.questions[call - 1]) for call in run.outcome.links[0].calls] in (
        [TITLES[0], TITLES[1]],
        [TITLES[1], TITLES[0]],
    )


def test_the_same_document_asked_about_twice_is_no_link_nor_is_a_name_of_the_question() -> None:
    run = drive(Denoise(), lambda _: "Alex Doe", tools=make_tools(budget=6, handles=TITLES[:1]))
    assert run.outcome.links == ()
    echoed = drive(Denoise(), lambda _: "Project Heron", tools=make_tools(budget=4, handles=TITLES))
    assert echoed.outcome.links == ()


def test_fresh_pseudonyms_leave_no_link() -> None:
    letters = iter("abcdefghij")
    run = drive(Denoise(), lambda _: f"it names Alex D{next(letters)}", tools=make_tools(budget=4, handles=TITLES))
    assert run.outcome.counts["links"] == 0


# Session reset


class Ledger:
    """Answers three questions a session, or three in all."""

    def __init__(self, *, by_session: bool) -> None:
        self.by_session = by_session
        self.spent: dict[str, int] = {}

    def __call__(self, ask: Ask) -> str:
        key = ask.session if self.by_session else "asker"
        self.spent[key] = self.spent.get(key, 0) + 1
        return "an answer" if self.spent[key] <= 3 else ""


def test_a_ledger_by_session_is_filled_up_again_and_one_by_asker_is_not() -> None:
    tools = {kind: make_tools(budget=10) for kind in (True, False)}
    counts = {kind: drive(SessionReset(), Ledger(by_session=kind), tools=tools[kind]).outcome.counts for kind in tools}
    assert counts[True] == {"refusals_in_one_session": 2, "refusals_in_new_sessions": 0}
    assert counts[False] == {"refusals_in_one_session": 2, "refusals_in_new_sessions": 5}


def test_the_second_half_asks_the_same_in_a_new_dialogue_each() -> None:
    run = drive(SessionReset(), lambda _: "", tools=make_tools(budget=8))
    assert run.questions[:4] == run.questions[4:]
    assert len({ask.session for ask in run.asks[:4]}) == 1
    assert len({ask.session for ask in run.asks}) == 5


# Cross-lingual instruction


def test_each_anchor_is_asked_about_in_four_languages_and_stays_as_it_is() -> None:
    questions = drive(CrossLingual(), lambda _: "", tools=make_tools(budget=8, handles=TITLES)).questions
    assert len({anchor_of(question) for question in questions[:4]}) == 1
    assert all(any(title in question for title in TITLES) for question in questions)
    marks = ("Welche", "电子邮件", "البريد", "barua pepe")
    assert [next(mark for mark in marks if mark in question) for question in questions[:4]] == list(marks)


# Split request


def test_the_second_turn_quotes_the_first_reply_in_its_dialogue_and_names_no_anchor() -> None:
    run = drive(SplitRequest(), lambda _: "The slides are due soon.", tools=make_tools(budget=4, handles=TITLES))
    first, second = run.asks[:2]
    assert first.session == second.session != run.asks[2].session
    assert '"The slides are due soon."' in second.text
    assert not any(title in second.text for title in TITLES)


def test_items_of_the_first_reply_are_not_quoted() -> None:
    reply = "Ask Mara Velten at mv@host.example, extension 4711, soon."
    second = drive(SplitRequest(), lambda _: reply, tools=make_tools(budget=2)).asks[1].text
    assert not any(item in second for item in ("Mara", "Velten", "mv@host", "4711"))


def test_after_a_refusal_or_without_restating_the_second_turn_leans_on_the_dialogue() -> None:
    refused = drive(SplitRequest(), lambda _: "I cannot help.", tools=make_tools(budget=4))
    assert refused.outcome.counts == {"second_turns_without_quote": 2}
    bare = drive(SplitRequest(restate=False), lambda _: "The slides.", tools=make_tools(budget=2))
    assert bare.questions[1] == "And which e-mail address is given there?"


def test_an_odd_call_is_left_unused() -> None:
    assert len(drive(SplitRequest(), lambda _: "", tools=make_tools(budget=7)).asks) == 6


def test_the_quote_finds_the_document_again_without_any_memory() -> None:
    goods = ("granite for the north hall", "velvet for the south gate", "copper for the east roof", "walnut for a desk")
    documents = [f"{title} wants {good}." for title, good in zip(TITLES, goods, strict=True)]
    run = drive(SplitRequest(), EchoTarget(documents, k=1), tools=make_tools(budget=8, handles=TITLES))
    assert run.replies[0::2] == run.replies[1::2]
    assert len(set(run.replies)) > 1
